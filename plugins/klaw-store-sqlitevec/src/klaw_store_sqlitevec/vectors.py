"""The index ``sqlite-vec``: exact nearest neighbours over vec0 tables.

Vectors have unit length, so the Euclidean distance d that vec0 scans fastest ranks as the cosine does, and
the cosine similarity is 1 - d²/2.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from klaw_core import Hit, Keys, Matrix, Migration, Query, RetrievalError, StoredChunk, VectorSpace

#: Collection to its vec0 table: the only names that are ever formatted into a statement.
TABLES = {"memory": "vec_memory", "docs": "vec_docs"}

_MOST_NEIGHBOURS = 4096  # vec0 refuses a larger k


class VectorIndex:
    """Keeps one vec0 table a collection, made for the dimension of its vector space."""

    joins = apsw.Connection
    needs_vectors = True

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return none: a table is made by :meth:`reset`, when the dimension is known."""
        return ()

    def prepare(self, resource: apsw.Connection, /) -> None:
        """Load the extension; the SQL function load_extension() stays off. Raise RetrievalError."""
        try:
            resource.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1)
            resource.load_extension(str(_extension()))
        except (apsw.ExtensionLoadingError, AttributeError) as error:
            raise RetrievalError(
                f"the SQLite extension vec0 does not load: {error}", hint="pip install --force-reinstall sqlite-vec"
            ) from error
        finally:
            resource.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0)

    def reset(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> None:
        """Make the collection's table anew, empty, for vectors of ``space``."""
        table = _table(collection)
        resource.execute(f"DROP TABLE IF EXISTS {table}")
        if space is not None:
            resource.execute(f"CREATE VIRTUAL TABLE {table} USING vec0(embedding float[{space.dimension:d}])")

    def add(
        self, resource: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix | None, /
    ) -> None:
        """Add one vector a chunk. Raise RetrievalError if there is no table yet."""
        if vectors is None or not chunks:
            return
        if not _exists(resource, collection):
            raise RetrievalError(f"the index of {collection!r} has no vector space yet", hint="klaw index")
        sql = f"INSERT INTO {_table(collection)} (rowid, embedding) VALUES (?, ?)"  # noqa: S608  # a name of ours
        rows = zip(chunks, np.ascontiguousarray(vectors, dtype="<f4"), strict=True)
        resource.executemany(sql, ((stored.key, vector.tobytes()) for stored, vector in rows))

    def remove(self, resource: apsw.Connection, collection: str, keys: Sequence[int], /) -> None:
        """Remove the vectors of these keys; unknown keys are ignored."""
        if keys and _exists(resource, collection):
            sql = f"DELETE FROM {_table(collection)} WHERE rowid = ?"  # noqa: S608  # a name of ours
            resource.executemany(sql, ((int(key),) for key in keys))

    def keys(self, resource: apsw.Connection, collection: str, /) -> Keys:
        """Return every key in the index, ascending."""
        if not _exists(resource, collection):
            return np.empty(0, dtype=np.int64)
        sql = f"SELECT rowid FROM {_table(collection)}_rowids ORDER BY rowid"  # noqa: S608  # a name of ours
        return np.fromiter((row[0] for row in resource.execute(sql)), dtype=np.int64)

    def check(self, resource: apsw.Connection, collection: str, space: VectorSpace | None, /) -> Sequence[str]:
        """Return what is wrong with the table and the vectors in it, read past vec0."""
        from klaw_store_sqlitevec.vector_check import check_table

        if not _exists(resource, collection):
            return () if space is None else (f"it has no table for the vectors of {space}",)
        return check_table(resource, _table(collection), None if space is None else space.dimension)

    def search(self, resource: apsw.Connection, query: Query, limit: int, /) -> Sequence[Hit]:
        """Return the nearest chunks; the score is the cosine similarity. Raise RetrievalError."""
        within = query.within
        if query.vector is None or (within is not None and not within.size) or not _exists(resource, query.collection):
            return ()
        vector = np.ascontiguousarray(query.vector, dtype="<f4").tobytes()
        sql = f"SELECT rowid, distance FROM {_table(query.collection)} WHERE embedding MATCH ? AND k = ?"  # noqa: S608  # a name of ours
        values: tuple[object, ...] = (vector, min(limit, _MOST_NEIGHBOURS))
        if within is not None:
            sql += " AND rowid IN (SELECT value FROM carray(?))"
            values = (*values, apsw.carray(np.ascontiguousarray(within, dtype=np.int64)))
        try:
            rows: list[Any] = resource.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise RetrievalError(f"vec0 could not search: {error}", hint="klaw reindex") from error
        hits = (Hit(key, 1.0 - distance * distance / 2.0) for key, distance in rows)
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))


def _table(collection: str) -> str:
    try:
        return TABLES[collection]
    except KeyError:
        raise RetrievalError(f"there is no collection {collection!r}") from None


def _exists(resource: apsw.Connection, collection: str) -> bool:
    sql = "SELECT 1 FROM sqlite_schema WHERE name = ?"
    return resource.execute(sql, (_table(collection),)).fetchone() is not None


def _extension() -> Path:
    """Return the extension's path; importing sqlite_vec itself would import numpy's whole public face."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        raise RetrievalError("the package sqlite-vec is not installed", hint="pip install 'klaw[sqlitevec]'")
    return Path(spec.submodule_search_locations[0]) / "vec0"
