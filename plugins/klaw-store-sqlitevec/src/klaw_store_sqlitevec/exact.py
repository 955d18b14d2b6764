"""Vectors in vec0 tables: exact nearest neighbours.

Vectors have unit length, so the Euclidean distance d that vec0 scans fastest ranks as the cosine does, and
the cosine similarity is 1 - d²/2.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import numpy as np

from klaw_core import Hit, Keys, Matrix, Query, RetrievalError

#: Collection to its vec0 table: the only names that are ever formatted into a statement.
TABLES = {"memory": "vec_memory", "docs": "vec_docs"}


def exists(connection: apsw.Connection, collection: str) -> bool:
    """Return whether the collection has its table."""
    sql = "SELECT 1 FROM sqlite_schema WHERE name = ?"
    return connection.execute(sql, (TABLES[collection],)).fetchone() is not None


def make(connection: apsw.Connection, collection: str, dimension: int) -> None:
    """Make the collection's table, empty."""
    connection.execute(f"CREATE VIRTUAL TABLE {TABLES[collection]} USING vec0(embedding float[{dimension:d}])")


def drop(connection: apsw.Connection, collection: str) -> None:
    """Remove the collection's table and all in it."""
    connection.execute(f"DROP TABLE IF EXISTS {TABLES[collection]}")


def count(connection: apsw.Connection, collection: str) -> int:
    """Return how many vectors there are."""
    return int(connection.execute(f"SELECT COUNT(*) FROM {TABLES[collection]}_rowids").get)  # noqa: S608  # a name of ours


def read_keys(connection: apsw.Connection, collection: str) -> Keys:
    """Return every key, ascending."""
    sql = f"SELECT rowid FROM {TABLES[collection]}_rowids ORDER BY rowid"  # noqa: S608  # a name of ours
    return np.fromiter((row[0] for row in connection.execute(sql)), dtype=np.int64)


def read_vectors(connection: apsw.Connection, collection: str, keys: Keys) -> Matrix:
    """Return the vectors of keys that are there, in their order, float32 of shape (n, d)."""
    sql = f"""
        SELECT stored.embedding FROM carray(?) AS wanted
        CROSS JOIN {TABLES[collection]} AS stored ON stored.rowid = wanted.value
    """  # noqa: S608  # a name of ours
    rows: Iterator[Any] = connection.execute(sql, (apsw.carray(np.ascontiguousarray(keys)),))
    return np.stack([np.frombuffer(blob, "<f4") for (blob,) in rows]).astype(np.float32, copy=False)


def add(connection: apsw.Connection, collection: str, keys: Sequence[int], vectors: Matrix) -> None:
    """Add vectors, row i for key i."""
    sql = f"INSERT INTO {TABLES[collection]} (rowid, embedding) VALUES (?, ?)"  # noqa: S608  # a name of ours
    rows = zip(keys, np.ascontiguousarray(vectors, dtype="<f4"), strict=True)
    connection.executemany(sql, ((key, vector.tobytes()) for key, vector in rows))


def remove(connection: apsw.Connection, collection: str, keys: Sequence[int]) -> None:
    """Remove the vectors of these keys; unknown keys are ignored."""
    sql = f"DELETE FROM {TABLES[collection]} WHERE rowid = ?"  # noqa: S608  # a name of ours
    connection.executemany(sql, ((int(key),) for key in keys))


def search(connection: apsw.Connection, query: Query, limit: int) -> list[Hit]:
    """Return the nearest, best first. Raise RetrievalError."""
    sql = f"SELECT rowid, distance FROM {TABLES[query.collection]} WHERE embedding MATCH ? AND k = ?"  # noqa: S608  # a name of ours
    values: tuple[object, ...] = (np.ascontiguousarray(query.vector, dtype="<f4").tobytes(), limit)
    if query.within is not None:
        sql += " AND rowid IN (SELECT value FROM carray(?))"
        values = (*values, apsw.carray(np.ascontiguousarray(query.within, dtype=np.int64)))
    try:
        rows: list[Any] = connection.execute(sql, values).fetchall()
    except apsw.Error as error:
        raise RetrievalError(f"vec0 could not search: {error}", hint="klaw reindex") from error
    return [Hit(key, 1.0 - distance * distance / 2.0) for key, distance in rows]
