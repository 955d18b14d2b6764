"""The embedding cache: what of it was of use when, what leaves it, and what a rebuild takes along."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import apsw

from klaw_core import Vector, VectorSpace
from klaw_store_sqlitevec.failures import translated

if TYPE_CHECKING:
    from klaw_store_sqlitevec.snapshot import SqliteSnapshot
    from klaw_store_sqlitevec.transaction import SqliteTransaction

# Chunks that are read at once: a few megabytes of text.
_CHUNKS = 1024
#: SQLite keeps a value of any type in any column, and text that is none cannot even be read.
BLOB = "iif(typeof(vector) = 'blob', vector, NULL)"

_BYTES = 2
# An embedder's vectors are of unit length to a thousandth, and half precision moves that by half as much.
_UNIT_TOLERANCE = 2e-3
# Of one text in one space two vectors agree to this, or are of different weights: other kernels change the last digits.
_SAME_WEIGHTS = 0.999
# So many texts of a space are compared. The first of them is what a rebuild proves the weights by.
_COMPARED = 64
# A space that no collection is in is one that a reindex is building. After so long it will not be finished.
_ABANDONED_MICROSECONDS = 30 * 24 * 3600 * 1_000_000


def to_cached(vector: Vector) -> bytes:
    """Return a unit vector in half precision: its cosines move by some hundred-thousandths."""
    return vector.astype("<f2").tobytes()


def from_cached(blob: object, dimension: int) -> Vector | None:
    """Return the vector that a row of the cache holds, of unit length again; None if the row is damaged."""
    import numpy as np

    if not isinstance(blob, bytes) or len(blob) != dimension * _BYTES:
        return None
    vector = np.frombuffer(blob, "<f2").astype(np.float32)
    length = np.linalg.norm(vector)
    if not abs(length - 1.0) <= _UNIT_TOLERANCE:  # nor if it is no number
        return None
    return np.asarray(vector / length, dtype=np.float32)


def note_use(connection: apsw.Connection, space_id: int, hashes: Sequence[str]) -> None:
    """Note that these entries are of use now. Their own rows, which hold the vectors, are not written."""
    connection.execute(
        """INSERT INTO cache_uses (id, used_at)
           SELECT id, ? FROM embedding_cache WHERE space_id = ? AND hash IN (SELECT value FROM carray(?))
           ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at""",
        (_now(), space_id, apsw.carray(tuple(bytes.fromhex(digest) for digest in hashes))),
    )


def tend(connection: apsw.Connection, max_entries: int) -> int:
    """Drop what was used the longest time ago, and what is left of spaces that were given up; return how many went."""
    connection.execute(
        """DELETE FROM vector_spaces
           WHERE id NOT IN (SELECT space_id FROM collection_spaces) AND NOT EXISTS (
               SELECT 1 FROM embedding_cache AS cache JOIN cache_uses AS uses ON uses.id = cache.id
               WHERE cache.space_id = vector_spaces.id AND uses.used_at >= ?)""",
        (_now() - _ABANDONED_MICROSECONDS,),
    )
    in_use = "space_id IN (SELECT space_id FROM collection_spaces)"
    count = int(connection.execute(f"SELECT COUNT(*) FROM embedding_cache WHERE {in_use}").get)  # noqa: S608  # ours
    excess = max(count - max_entries, 0)
    if excess:
        connection.execute(
            f"""DELETE FROM embedding_cache WHERE id IN (
                    SELECT cache.id FROM cache_uses AS uses JOIN embedding_cache AS cache ON cache.id = uses.id
                    WHERE {in_use} ORDER BY uses.used_at, uses.id LIMIT ?)""",  # noqa: S608  # ours
            (excess,),
        )
    return excess


def count(connection: apsw.Connection, found: int, computed: int) -> None:
    """Add to the statistics: vectors that were wanted and cached, and those that had to be computed."""
    connection.execute(
        """INSERT INTO cache_counts (id, found, computed) VALUES (1, ?, ?)
           ON CONFLICT (id) DO UPDATE SET found = found + excluded.found, computed = computed + excluded.computed""",
        (found, computed),
    )


def facts(connection: apsw.Connection) -> Mapping[str, int | str]:
    """Return the cache's entries and bytes, and how often it had what was wanted."""
    sql = """SELECT COALESCE(SUM(entries), 0), COALESCE(SUM(entries * dimension * 2), 0)
             FROM (SELECT space_id, COUNT(*) AS entries FROM embedding_cache GROUP BY space_id)
             JOIN vector_spaces ON vector_spaces.id = space_id"""
    entries, size = connection.execute(sql).get
    found, computed = connection.execute("SELECT found, computed FROM cache_counts").fetchone() or (0, 0)
    wanted = found + computed
    rate = f"{found / wanted:.0%} of {wanted:,}" if wanted else "nothing was wanted yet"
    return {"cached_vectors": entries, "cache_bytes": size, "cache_hit_rate": rate}


def take_cache(transaction: SqliteTransaction, other: apsw.Connection, location: str) -> None:
    """Copy the embedding cache of another database, space by space: row numbers mean nothing elsewhere.

    What is damaged there is left out. An error of reading names ``location``, which is the other's.
    """

    def read(sql: str, *values: object) -> Iterator[Any]:
        with translated(location):  # here: around the whole it would take the errors of writing for the other's
            yield from other.execute(sql, values)

    mine = transaction.resource
    spaces = "SELECT id, model, revision, dimension, metric, pooling FROM vector_spaces"
    cached = f"SELECT hash, {BLOB} FROM embedding_cache WHERE space_id = ?"  # noqa: S608  # our own
    uses = "SELECT used_at, ?, hash FROM cache_uses AS uses JOIN embedding_cache AS cache USING (id) WHERE space_id = ?"
    for theirs, *names in list(read(spaces)):
        space = VectorSpace(*names)
        own = transaction.put_space(space)
        sound = (row for row in read(cached, theirs) if from_cached(row[1], space.dimension) is not None)
        mine.executemany(
            "INSERT INTO embedding_cache (space_id, hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            ((own, *row) for row in sound),
        )
        mine.executemany(
            """INSERT INTO cache_uses (id, used_at)
               SELECT id, ? FROM embedding_cache WHERE space_id = ? AND hash = ? ON CONFLICT DO NOTHING""",
            read(uses, own, theirs),
        )
    mine.execute("DELETE FROM cache_counts")
    mine.executemany("INSERT INTO cache_counts VALUES (?, ?, ?)", read("SELECT * FROM cache_counts"))


def sample_weights(snapshot: SqliteSnapshot) -> Mapping[VectorSpace, Mapping[str, Vector]]:
    """Return some cached vectors of every space, by hash: enough to tell its model's weights from others."""
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
    """Return whether a text has another vector in one space than here: a model has changed under its name."""
    for space, new in sample.items():
        old = snapshot.cached_vectors(space, list(new))
        if any(float(vector @ new[digest]) < _SAME_WEIGHTS for digest, vector in old.items()):
            return True
    return False


def prune_cache(transaction: SqliteTransaction, left: AbstractSet[VectorSpace]) -> None:
    """Drop the vectors of the spaces that a rebuild has left, and in those it comes to, of texts that no chunk has.

    Any other space is one that an interrupted move was building: its vectors may have been paid for.
    """
    connection = transaction.resource
    for space in left - used_spaces(transaction):
        connection.execute("DELETE FROM vector_spaces WHERE id = ?", (transaction.space_id(space),))  # cascades
    held = _passage_hashes(transaction)
    rows: list[Any] = connection.execute(
        "SELECT id, hash FROM embedding_cache WHERE space_id IN (SELECT space_id FROM collection_spaces)"
    ).fetchall()
    unused = ((key,) for key, digest in rows if digest not in held)
    connection.executemany("DELETE FROM embedding_cache WHERE id = ?", unused)


def _now() -> int:
    """Return microseconds since 1970: fine enough to tell one transaction from the next."""
    return time.time_ns() // 1000


def used_spaces(snapshot: SqliteSnapshot) -> set[VectorSpace]:
    """Return the spaces that the collections are in."""
    return {record.space for record in map(snapshot.space, snapshot.collections()) if record is not None}


def _passage_hashes(transaction: SqliteTransaction) -> set[bytes]:
    """Return the hash of every chunk, of all collections."""
    hashes: set[bytes] = set()
    for collection in transaction.collections():
        keys = transaction.keys(collection).tolist()
        for first in range(0, len(keys), _CHUNKS):
            stored = transaction.chunks(collection, keys[first : first + _CHUNKS])
            hashes.update(bytes.fromhex(item.chunk.embedding_hash) for item in stored)
    return hashes
