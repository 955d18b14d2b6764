"""Copy the embedding cache into a rebuilt database, and compare the vectors of an old and a new model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import apsw

from klaw_core import Vector, VectorSpace
from klaw_store_sqlitevec.cache import COUNTS, now
from klaw_store_sqlitevec.errors import store_errors
from klaw_store_sqlitevec.salvage import cached_vectors
from klaw_store_sqlitevec.vector_codec import VECTOR_COLUMN, decode_vector

if TYPE_CHECKING:
    from klaw_store_sqlitevec.snapshot import SqliteSnapshot
    from klaw_store_sqlitevec.transaction import SqliteTransaction

# The lowest cosine of two vectors of one text from the same weights. Between int8 and float32 the probe agrees to
# .997, but a short text may agree only to .98.
_SAME_MODEL = 0.98
# Texts per space that are compared. A rebuild checks the weights with the first of them.
_COMPARED = 64

_SPACES = "SELECT id, model, revision, dimension, metric, pooling FROM vector_spaces"
_CACHED = f"SELECT hash, {VECTOR_COLUMN} FROM embedding_cache WHERE space_id = ?"
# A damaged time is the earliest.
_USES = """SELECT iif(typeof(used_at) = 'integer', used_at, 0), ?, hash
    FROM cache_uses AS uses JOIN embedding_cache AS cache USING (id) WHERE space_id = ?"""
_DOCUMENTS = """SELECT noted.collection, noted.path, ?, cache.hash
    FROM cache_documents AS noted JOIN embedding_cache AS cache USING (id) WHERE cache.space_id = ?"""
_ADD_VECTOR = "INSERT INTO embedding_cache (space_id, hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_ADD_USE = """INSERT INTO cache_uses (id, used_at)
    SELECT id, ? FROM embedding_cache WHERE space_id = ? AND hash = ? ON CONFLICT DO NOTHING"""
_ADD_DOCUMENT = """INSERT OR IGNORE INTO cache_documents (collection, path, id)
    SELECT ?, ?, id FROM embedding_cache WHERE space_id = ? AND hash = ?"""

_Read: TypeAlias = Callable[..., Iterator[Any]]


def copy_cache(transaction: SqliteTransaction, other: apsw.Connection, location: str) -> None:
    """Copy the embedding cache of another database, space by space, because row ids differ between databases.

    Damaged vectors are left out. An error of reading names ``location``, the path of the other database.
    """

    def read(sql: str, *values: object) -> Iterator[Any]:
        with store_errors(location):  # only around reading: errors of writing belong to this database
            yield from other.execute(sql, values)

    mine = transaction.resource
    for theirs, *names in list(read(_SPACES)):
        space = VectorSpace(*names)
        own = transaction.put_space(space)
        sound = (row for row in read(_CACHED, theirs) if decode_vector(row[1], space.dimension) is not None)
        mine.executemany(_ADD_VECTOR, ((own, *row) for row in sound))
        _copy_notes(mine, read, theirs, own)


def copy_counts(transaction: SqliteTransaction, other: apsw.Connection, location: str) -> None:
    """Replace the statistics of the embedding cache by those of another database; errors as for :func:`copy_cache`."""
    with store_errors(location):
        counts: list[Any] = other.execute(COUNTS).fetchall()
    _put_counts(transaction.resource, counts)


def take_over_cache(transaction: SqliteTransaction, other: SqliteSnapshot, location: str) -> None:
    """Copy the vectors of an interrupted rebuild, except those of documents that are not in this store (any more)."""
    copy_cache(transaction, other.resource, location)
    sql = "SELECT collection, path FROM cache_documents EXCEPT SELECT collection, path FROM documents"
    gone: list[Any] = transaction.resource.execute(sql).fetchall()
    for collection, path in gone:
        transaction.forget_documents(collection, [path])
    transaction.forget_unused()


def salvage_cache(transaction: SqliteTransaction, database: Path, other: apsw.Connection | None) -> None:
    """Copy what can be read of the embedding cache of a damaged database. Nothing of it raises.

    The vectors are read from the pages, the times of their last use and the documents they belong to through SQLite, if
    it can open the database.
    """
    mine = transaction.resource
    found = cached_vectors(database)
    mine.executemany(_ADD_VECTOR, ((transaction.put_space(row.space), row.digest, row.stored) for row in found))

    def read(sql: str, *values: object) -> Iterator[Any]:
        with suppress(apsw.Error, UnicodeDecodeError):
            yield from other.execute(sql, values) if other is not None else ()

    for theirs, *names in list(read(_SPACES)):
        own = transaction.space_id(VectorSpace(*names))
        if own is not None:
            _copy_notes(mine, read, theirs, own)
    mine.execute("INSERT OR IGNORE INTO cache_uses (id, used_at) SELECT id, ? FROM embedding_cache", (now(),))
    _put_counts(mine, list(read(COUNTS)))


def _copy_notes(mine: apsw.Connection, read: _Read, theirs: int, own: int) -> None:
    """Copy the times of use and the documents of the cached vectors of a space, which has another id there."""
    mine.executemany(_ADD_USE, read(_USES, own, theirs))
    mine.executemany(_ADD_DOCUMENT, read(_DOCUMENTS, own, theirs))


def _put_counts(mine: apsw.Connection, counts: Sequence[Any]) -> None:
    mine.execute("DELETE FROM cache_counts")
    mine.executemany("INSERT INTO cache_counts (id, found, computed) VALUES (1, ?, ?)", counts)


def sample_weights(snapshot: SqliteSnapshot) -> Mapping[VectorSpace, Mapping[str, Vector]]:
    """Return some cached vectors of every space, by hash, enough to distinguish its model from others."""
    connection = snapshot.resource
    sql = "SELECT hash FROM embedding_cache WHERE space_id = ? ORDER BY id LIMIT ?"
    sample = {}
    for number, *names in connection.execute(_SPACES):
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
