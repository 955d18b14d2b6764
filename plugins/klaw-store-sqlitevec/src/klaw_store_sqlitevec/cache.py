"""The embedding cache: times of use, eviction, and statistics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import apsw

# A space without a collection belongs to an unfinished reindex. After this long it counts as abandoned.
_ABANDONED_MICROSECONDS = 30 * 24 * 3600 * 1_000_000
#: The numbers of vectors that were found in the cache and computed; a damaged number is 0.
COUNTS = """SELECT iif(typeof(found) = 'integer', found, 0), iif(typeof(computed) = 'integer', computed, 0)
            FROM cache_counts"""


def note_use(connection: apsw.Connection, space_id: int, hashes: Sequence[str]) -> None:
    """Record the use of these entries. Their rows with the vectors are not written."""
    connection.execute(
        """INSERT INTO cache_uses (id, used_at)
           SELECT id, ? FROM embedding_cache WHERE space_id = ? AND hash IN (SELECT value FROM carray(?))
           ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at""",
        (now(), space_id, apsw.carray(tuple(bytes.fromhex(digest) for digest in hashes))),
    )


def evict(connection: apsw.Connection, max_entries: int) -> int:
    """Remove the least recently used entries, and those of abandoned spaces; return the number removed."""
    connection.execute(
        """DELETE FROM vector_spaces
           WHERE id NOT IN (SELECT space_id FROM collection_spaces) AND NOT EXISTS (
               SELECT 1 FROM embedding_cache AS cache JOIN cache_uses AS uses ON uses.id = cache.id
               WHERE cache.space_id = vector_spaces.id AND uses.used_at >= ?)""",
        (now() - _ABANDONED_MICROSECONDS,),
    )
    in_use = "space_id IN (SELECT space_id FROM collection_spaces)"
    count = int(connection.execute(f"SELECT COUNT(*) FROM embedding_cache WHERE {in_use}").get)
    excess = max(count - max_entries, 0)
    if excess:
        connection.execute(
            f"""DELETE FROM embedding_cache WHERE id IN (
                    SELECT cache.id FROM cache_uses AS uses JOIN embedding_cache AS cache ON cache.id = uses.id
                    WHERE {in_use} ORDER BY uses.used_at, uses.id LIMIT ?)""",
            (excess,),
        )
    return excess


def count_lookups(connection: apsw.Connection, found: int, computed: int) -> None:
    """Add to the statistics: vectors that were found in the cache, and those that had to be computed."""
    connection.execute(
        """INSERT INTO cache_counts (id, found, computed) VALUES (1, ?, ?)
           ON CONFLICT (id) DO UPDATE SET
               found = iif(typeof(found) = 'integer', found, 0) + excluded.found,
               computed = iif(typeof(computed) = 'integer', computed, 0) + excluded.computed""",
        (found, computed),
    )


def cache_statistics(connection: apsw.Connection) -> Mapping[str, int | str]:
    """Return the cache's number of entries, its bytes, and its hit rate."""
    sql = """SELECT COALESCE(SUM(entries), 0), COALESCE(SUM(entries * dimension * 2), 0)
             FROM (SELECT space_id, COUNT(*) AS entries FROM embedding_cache GROUP BY space_id)
             JOIN vector_spaces ON vector_spaces.id = space_id"""
    entries, size = connection.execute(sql).get
    found, computed = connection.execute(COUNTS).fetchone() or (0, 0)
    wanted = found + computed
    rate = f"{found / wanted:.0%} of {wanted:,}" if wanted else "no lookups yet"
    return {"cached_vectors": entries, "cache_bytes": size, "cache_hit_rate": rate}


def now() -> int:
    """Return microseconds since 1970, fine enough to distinguish consecutive transactions."""
    return time.time_ns() // 1000
