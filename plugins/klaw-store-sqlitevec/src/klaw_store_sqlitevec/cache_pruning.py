"""Remove vectors from the embedding cache that no collection needs."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from klaw_core import VectorSpace
from klaw_store_sqlitevec.schema import chunk_table
from klaw_store_sqlitevec.snapshot import SqliteSnapshot


def prune_cache(snapshot: SqliteSnapshot, left: AbstractSet[VectorSpace]) -> None:
    """Remove cached vectors of spaces that a rebuild has left, and, in the spaces in use, of texts without a chunk.

    The snapshot must be one of a write transaction.

    Other spaces belong to interrupted reindexes. They are kept, because their vectors may have been paid for.
    """
    connection = snapshot.resource
    for space in left - used_spaces(snapshot):
        connection.execute("DELETE FROM vector_spaces WHERE id = ?", (snapshot.space_id(space),))  # cascades
    in_use = "(SELECT id FROM embedding_cache WHERE space_id IN (SELECT space_id FROM collection_spaces))"
    connection.execute(f"DELETE FROM cache_documents WHERE id IN {in_use}")  # their documents are known from the chunks
    held = _chunk_hashes(snapshot)
    rows: list[Any] = connection.execute(
        "SELECT id, hash FROM embedding_cache WHERE space_id IN (SELECT space_id FROM collection_spaces)"
    ).fetchall()
    unused = ((key,) for key, digest in rows if digest not in held)
    connection.executemany("DELETE FROM embedding_cache WHERE id = ?", unused)


def used_spaces(snapshot: SqliteSnapshot) -> set[VectorSpace]:
    """Return the spaces of all collections."""
    return {record.space for record in map(snapshot.space, snapshot.collections()) if record is not None}


def _chunk_hashes(snapshot: SqliteSnapshot) -> set[bytes]:
    """Return the embedding hash of every chunk of all collections."""
    return {
        digest
        for collection in snapshot.collections()
        for (digest,) in snapshot.resource.execute(f"SELECT embedding_hash FROM {chunk_table(collection).name}")
    }
