"""The embedding cache: its vectors, when each was last used, and which are evicted. It survives rebuilds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from klaw_store_postgres.texts import digest, to_text

if TYPE_CHECKING:
    from klaw_core import Vector, VectorSpace
    from klaw_store_postgres.session import Session

# A space that no collection uses is one that a reindex is building. After this time the reindex counts as given up.
_ABANDONED_MICROSECONDS = 30 * 24 * 3600 * 1_000_000
_TOLERANCE = 1e-3  # of half precision

_USED_SPACES = "SELECT space FROM collections WHERE tenant = %s AND generation = %s AND space IS NOT NULL"


def space_id(session: Session, space: VectorSpace) -> int | None:
    """Return the number of a vector space; None if this database has never used it."""
    sql = "SELECT id FROM vector_spaces WHERE tenant = %s AND digest = %s"
    found = session.value(sql, (session.tenant, digest(space.identity)))
    return None if found is None else int(found)


def put_space(session: Session, space: VectorSpace) -> int:
    """Return the number of a vector space, adding it if it is new."""
    found = space_id(session, space)
    if found is not None:
        return found
    sql = """INSERT INTO vector_spaces (tenant, model, revision, dimension, metric, pooling, digest)
             VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id"""
    names = (to_text(space.model), to_text(space.revision), space.dimension, to_text(space.metric))
    values = (session.tenant, *names, to_text(space.pooling), digest(space.identity))
    return int(session.value(sql, values))


def cached(session: Session, space: VectorSpace, hashes: Sequence[str]) -> Mapping[str, Vector]:
    """Return the cached vectors among these chunk hashes."""
    number = space_id(session, space) if hashes else None
    if number is None:
        return {}
    sql = "SELECT hash, vector FROM embedding_cache WHERE tenant = %s AND space = %s AND hash = ANY(%s)"
    rows = session.rows(sql, (session.tenant, number, _raw(hashes)))
    found = {bytes(key).hex(): _decoded(bytes(blob), space.dimension) for key, blob in rows}
    return {key: vector for key, vector in found.items() if vector is not None}


def put(session: Session, space: VectorSpace, vectors: Mapping[str, Vector]) -> None:
    """Put vectors in the cache; existing entries are not changed."""
    if not vectors:
        return
    hashes = sorted(vectors)  # in one order, so that concurrent writers wait and do not deadlock
    blobs = [np.asarray(vectors[one], "<f2").tobytes() for one in hashes]
    sql = """INSERT INTO embedding_cache (tenant, space, hash, vector, used)
             SELECT space.tenant, space.id, hash, vector, %s
             FROM vector_spaces AS space, unnest(%s::bytea[], %s::bytea[]) AS new (hash, vector)
             WHERE space.tenant = %s AND space.digest = %s
             ON CONFLICT (tenant, space, hash) DO UPDATE SET used = excluded.used"""
    values = (_now(), _raw(hashes), blobs, session.tenant, digest(space.identity))
    if not session.run(sql, values):  # the space is new
        put_space(session, space)
        session.run(sql, values)


def use(session: Session, space: VectorSpace, hashes: Sequence[str]) -> None:
    """Record that these entries are used now."""
    number = space_id(session, space) if hashes else None
    if number is not None:
        sql = "UPDATE embedding_cache SET used = %s WHERE tenant = %s AND space = %s AND hash = ANY(%s)"
        session.run(sql, (_now(), session.tenant, number, _raw(sorted(hashes))))


def evict(session: Session, max_entries: int) -> int:
    """Evict the least recently used entries and those of abandoned spaces; return their number."""
    session.run(
        """DELETE FROM vector_spaces AS space WHERE tenant = %s
           AND NOT EXISTS (SELECT 1 FROM collections AS own WHERE (own.tenant, own.space) = (space.tenant, space.id))
           AND NOT EXISTS (SELECT 1 FROM embedding_cache AS cache
                           WHERE (cache.tenant, cache.space) = (space.tenant, space.id) AND cache.used >= %s)""",
        (session.tenant, _now() - _ABANDONED_MICROSECONDS),
    )
    of_use = f"tenant = %s AND space IN ({_USED_SPACES})"
    values = (session.tenant, *session.scope)
    count = session.value(f"SELECT COUNT(*) FROM embedding_cache WHERE {of_use}", values)
    if count <= max_entries:  # counting is faster than sorting
        return 0
    return session.run(
        f"""DELETE FROM embedding_cache WHERE (tenant, space, hash) IN (
                SELECT tenant, space, hash FROM embedding_cache WHERE {of_use}
                ORDER BY used DESC, hash OFFSET %s)""",
        (*values, max_entries),
    )


def count_lookups(session: Session, found: int, computed: int) -> None:
    """Add cache hits and misses to the statistics."""
    session.run(
        """INSERT INTO cache_counts AS held (tenant, found, computed) VALUES (%s, %s, %s) ON CONFLICT (tenant)
           DO UPDATE SET found = held.found + excluded.found, computed = held.computed + excluded.computed""",
        (session.tenant, found, computed),
    )


def statistics(session: Session) -> Mapping[str, int | str]:
    """Return the cache's entries, its bytes and its hit rate."""
    sql = "SELECT COUNT(*), COALESCE(SUM(octet_length(vector)), 0)::bigint FROM embedding_cache WHERE tenant = %s"
    entries, size = session.row(sql, (session.tenant,))
    counted = session.row("SELECT found, computed FROM cache_counts WHERE tenant = %s", (session.tenant,))
    found, computed = counted or (0, 0)
    wanted = found + computed
    rate = f"{found / wanted:.0%} of {wanted:,}" if wanted else "no lookups yet"
    return {"cached_vectors": entries, "cache_bytes": size, "cache_hit_rate": rate}


def note_documents(session: Session, space: VectorSpace, documents: Mapping[tuple[str, str], Sequence[str]]) -> None:
    """Record which cached vectors were computed for which documents."""
    number = space_id(session, space)
    if number is None:
        return
    for (collection, path), hashes in documents.items():
        session.run(
            """INSERT INTO cache_documents (tenant, collection, path, space, hash)
               SELECT tenant, %s, %s, space, hash FROM embedding_cache
               WHERE tenant = %s AND space = %s AND hash = ANY(%s) ON CONFLICT DO NOTHING""",
            (to_text(collection), digest(path), session.tenant, number, _raw(hashes)),
        )


def forget_documents(session: Session, collection: str, paths: Sequence[str]) -> None:
    """Remove the cached vectors recorded for these documents."""
    session.run(
        """DELETE FROM embedding_cache AS cache USING cache_documents AS noted
           WHERE (noted.tenant, noted.space, noted.hash) = (cache.tenant, cache.space, cache.hash)
           AND cache.tenant = %s AND noted.collection = %s AND noted.path = ANY(%s)""",
        (session.tenant, to_text(collection), [digest(path) for path in paths]),
    )


def forget_hashes(session: Session, hashes: Sequence[str]) -> None:
    """Remove the vectors of these hashes in every space."""
    if hashes:
        # The primary key is tenant, space, hash: without the space every vector of the agent would be read.
        sql = """DELETE FROM embedding_cache AS cache USING vector_spaces AS space
                 WHERE space.tenant = %s AND (cache.tenant, cache.space) = (space.tenant, space.id)
                 AND cache.hash = ANY(%s)"""
        session.run(sql, (session.tenant, _raw(hashes)))


def prune(session: Session, left: Sequence[int] = ()) -> None:
    """Remove vectors whose text no chunk has, in the spaces of this generation, and the spaces in ``left``."""
    session.run(
        f"DELETE FROM vector_spaces WHERE tenant = %s AND id = ANY(%s) AND id NOT IN ({_USED_SPACES})",
        (session.tenant, list(left), *session.scope),
    )
    in_use = f"tenant = %s AND space IN ({_USED_SPACES})"
    # In a space in use, the chunks tell which documents the vectors belong to.
    session.run(f"DELETE FROM cache_documents WHERE {in_use}", (session.tenant, *session.scope))
    session.run(
        f"""DELETE FROM embedding_cache AS cache WHERE {in_use} AND NOT EXISTS (
                SELECT 1 FROM chunks WHERE (chunks.tenant, chunks.embedding_hash) = (cache.tenant, cache.hash)
                AND chunks.generation = %s)""",
        (session.tenant, *session.scope, session.generation),
    )


def used_spaces(session: Session) -> list[int]:
    """Return the spaces that collections use."""
    return [number for (number,) in session.rows(_USED_SPACES, session.scope)]


def _now() -> int:
    return time.time_ns() // 1000


def _raw(hashes: Sequence[str] | Mapping[str, Vector]) -> list[bytes]:
    return [bytes.fromhex(one) for one in hashes]


def _decoded(blob: bytes, dimension: int) -> Vector | None:
    """Return the unit vector in a half-precision blob; None if the blob does not hold one."""
    if len(blob) != dimension * 2:
        return None
    vector = np.frombuffer(blob, "<f2").astype(np.float32)
    length = float(np.linalg.norm(vector))
    if not abs(length - 1.0) <= _TOLERANCE * 10:  # so that NaN counts
        return None
    return np.asarray(vector / np.float32(length), np.float32)
