"""The embedding cache across a rebuild: what the new database is given to begin with, and what it keeps."""

from typing import Any

import apsw

from klaw_core import VectorSpace
from klaw_store_sqlitevec.schema import CHUNK_TABLES
from klaw_store_sqlitevec.transaction import SqliteTransaction

# Chunks that are read at once: a few megabytes of text.
_CHUNKS = 1024


def take_cache(transaction: SqliteTransaction, other: apsw.Connection) -> None:
    """Copy the embedding cache of another database, space by space: row numbers mean nothing elsewhere."""
    spaces = "SELECT id, model, revision, dimension, metric, pooling FROM vector_spaces"
    cached = "SELECT ?, hash, vector FROM embedding_cache WHERE space_id = ?"
    insert = "INSERT INTO embedding_cache (space_id, hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    rows: list[Any] = other.execute(spaces).fetchall()
    for theirs, *space in rows:
        mine = transaction.put_space(VectorSpace(*space))
        transaction.resource.executemany(insert, other.execute(cached, (mine, theirs)))


def prune_cache(transaction: SqliteTransaction) -> None:
    """Drop the vectors of spaces that no collection is in, and those of texts that no chunk has."""
    connection = transaction.resource
    connection.execute("DELETE FROM vector_spaces WHERE id NOT IN (SELECT space_id FROM collection_spaces)")  # cascades
    held = _passage_hashes(transaction)
    rows: list[Any] = connection.execute("SELECT id, hash FROM embedding_cache").fetchall()
    unused = ((key,) for key, digest in rows if digest not in held)
    connection.executemany("DELETE FROM embedding_cache WHERE id = ?", unused)


def _passage_hashes(transaction: SqliteTransaction) -> set[bytes]:
    """Return the hash of every passage, of all collections."""
    hashes: set[bytes] = set()
    for collection in CHUNK_TABLES:
        keys = transaction.keys(collection).tolist()
        for first in range(0, len(keys), _CHUNKS):
            stored = transaction.chunks(collection, keys[first : first + _CHUNKS])
            hashes.update(bytes.fromhex(item.chunk.passage_hash) for item in stored)
    return hashes
