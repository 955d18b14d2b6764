"""Copy the embedding cache into a rebuilt database, and compare the vectors of an old and a new model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import apsw

from klaw_core import Vector, VectorSpace
from klaw_store_sqlitevec.errors import store_errors
from klaw_store_sqlitevec.vector_codec import VECTOR_COLUMN, decode_vector

if TYPE_CHECKING:
    from klaw_store_sqlitevec.snapshot import SqliteSnapshot
    from klaw_store_sqlitevec.transaction import SqliteTransaction

# The lowest cosine of two vectors of one text from the same weights. Between int8 and float32 the probe agrees to
# .997, but a short text may agree only to .98.
_SAME_MODEL = 0.98
# Texts per space that are compared. A rebuild checks the weights with the first of them.
_COMPARED = 64


def copy_cache(transaction: SqliteTransaction, other: apsw.Connection, location: str) -> None:
    """Copy the embedding cache of another database, space by space, because row ids differ between databases.

    Damaged vectors are left out. An error of reading names ``location``, the path of the other database.
    """

    def read(sql: str, *values: object) -> Iterator[Any]:
        with store_errors(location):  # only around reading: errors of writing belong to this database
            yield from other.execute(sql, values)

    mine = transaction.resource
    spaces = "SELECT id, model, revision, dimension, metric, pooling FROM vector_spaces"
    cached = f"SELECT hash, {VECTOR_COLUMN} FROM embedding_cache WHERE space_id = ?"
    uses = "SELECT used_at, ?, hash FROM cache_uses AS uses JOIN embedding_cache AS cache USING (id) WHERE space_id = ?"
    documents = """SELECT noted.collection, noted.path, ?, cache.hash
                   FROM cache_documents AS noted JOIN embedding_cache AS cache USING (id) WHERE cache.space_id = ?"""
    for theirs, *names in list(read(spaces)):
        space = VectorSpace(*names)
        own = transaction.put_space(space)
        sound = (row for row in read(cached, theirs) if decode_vector(row[1], space.dimension) is not None)
        mine.executemany(
            "INSERT INTO embedding_cache (space_id, hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            ((own, *row) for row in sound),
        )
        mine.executemany(
            """INSERT INTO cache_uses (id, used_at)
               SELECT id, ? FROM embedding_cache WHERE space_id = ? AND hash = ? ON CONFLICT DO NOTHING""",
            read(uses, own, theirs),
        )
        mine.executemany(
            """INSERT OR IGNORE INTO cache_documents (collection, path, id)
               SELECT ?, ?, id FROM embedding_cache WHERE space_id = ? AND hash = ?""",
            read(documents, own, theirs),
        )


def copy_counts(transaction: SqliteTransaction, other: apsw.Connection, location: str) -> None:
    """Replace the statistics of the embedding cache by those of another database; errors as for :func:`copy_cache`."""
    transaction.resource.execute("DELETE FROM cache_counts")
    with store_errors(location):
        counts: list[Any] = other.execute("SELECT * FROM cache_counts").fetchall()
    transaction.resource.executemany("INSERT INTO cache_counts VALUES (?, ?, ?)", counts)


def take_over_cache(transaction: SqliteTransaction, other: SqliteSnapshot, location: str) -> None:
    """Copy the vectors of an interrupted rebuild, except those of documents that are not in this store (any more)."""
    copy_cache(transaction, other.resource, location)
    sql = "SELECT collection, path FROM cache_documents EXCEPT SELECT collection, path FROM documents"
    gone: list[Any] = transaction.resource.execute(sql).fetchall()
    for collection, path in gone:
        transaction.forget_documents(collection, [path])
    transaction.forget_unused()


def sample_weights(snapshot: SqliteSnapshot) -> Mapping[VectorSpace, Mapping[str, Vector]]:
    """Return some cached vectors of every space, by hash, enough to distinguish its model from others."""
    connection = snapshot.resource
    sql = "SELECT hash FROM embedding_cache WHERE space_id = ? ORDER BY id LIMIT ?"
    sample = {}
    for number, *names in connection.execute(
        "SELECT id, model, revision, dimension, metric, pooling FROM vector_spaces"
    ):
        space = VectorSpace(*names)
        hashes = [digest.hex() for (digest,) in connection.execute(sql, (number, _COMPARED))]
        sample[space] = snapshot.cached_vectors(space, hashes)
    return sample


def has_other_weights(snapshot: SqliteSnapshot, sample: Mapping[VectorSpace, Mapping[str, Vector]]) -> bool:
    """Return whether a text has another vector than in the sample, so that a model has changed under its name."""
    for space, new in sample.items():
        old = snapshot.cached_vectors(space, list(new))
        if any(float(vector @ new[digest]) < _SAME_MODEL for digest, vector in old.items()):
            return True
    return False
