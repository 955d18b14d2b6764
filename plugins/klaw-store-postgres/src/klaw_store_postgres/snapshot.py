"""A snapshot: one consistent view of an agent's rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from klaw_core import Chunk, DocumentRecord, KeyDigest, SpaceRecord, StoredChunk, VectorSpace
from klaw_store_postgres import cache
from klaw_store_postgres.filtering import as_keys, path_condition, select
from klaw_store_postgres.messages import PostgresMessages
from klaw_store_postgres.metadata import from_json
from klaw_store_postgres.session import Session
from klaw_store_postgres.texts import (
    from_milliseconds,
    from_text,
    join_path,
    prefix_end,
    split_path,
    to_milliseconds,
    to_text,
)

if TYPE_CHECKING:
    from datetime import datetime

    from klaw_core import ChunkSelection, Filters, Keys, Vector

_OWN = "tenant = %s AND generation = %s"
_IN = f"{_OWN} AND collection = %s"
_MAX_LIMIT = 2**31 - 1
# The fingerprint of a document; empty if its chunks are damaged, so that the index run reads the file.
_SEEN = "CASE WHEN content_hash <> '' THEN seen ELSE '' END"

_CHUNKS = """
SELECT chunk.key, chunk.chunk_id, chunk.content, chunk.start_offset, chunk.end_offset, chunk.start_line, chunk.end_line,
    chunk.heading, chunk.continues, chunk.context, document.title,
    document.head, document.tail, document.source, chunk.created_at, document.chat_id, document.origin,
    document.metadata
FROM chunks AS chunk
JOIN documents AS document ON (document.tenant, document.generation, document.collection, document.id)
    = (chunk.tenant, chunk.generation, chunk.collection, chunk.document)
WHERE chunk.tenant = %s AND chunk.generation = %s AND chunk.collection = %s AND
"""


@frozen(eq=False, repr=False)
class PostgresSnapshot:
    """The view of one transaction. Indexes read through the session ``resource``."""

    resource: Session

    @property
    def messages(self) -> PostgresMessages:
        """Return the rows of conversations."""
        return PostgresMessages(self.resource)

    def collections(self) -> Sequence[str]:
        """Return the names of all collections that have been written to, sorted."""
        sql = f"SELECT name FROM collections WHERE {_OWN} ORDER BY name"
        return [name for (name,) in self.resource.rows(sql, self.resource.scope)]

    def is_empty(self, collection: str, /) -> bool:
        """Return whether a collection has no chunks."""
        return self.resource.row(f"SELECT 1 FROM chunks WHERE {_IN} LIMIT 1", self._in(collection)) is None

    def documents(self, collection: str, prefix: str, after: str, limit: int, /) -> Sequence[DocumentRecord]:
        """Return documents ordered by path: those whose path starts with ``prefix`` and comes after ``after``."""
        begins, values = path_condition("documents", prefix)
        rows = self.resource.rows(
            f"SELECT head, tail, origin, content_hash, created_at, {_SEEN} FROM documents "
            f"WHERE {_IN} AND (head, tail) > (%s, %s) AND {begins} ORDER BY head, tail LIMIT %s",
            (*self._in(collection), *split_path(after), *values, min(max(limit, 0), _MAX_LIMIT)),
        )
        return tuple(_record(join_path(head, tail), *row) for head, tail, *row in rows)

    def newest(
        self, collection: str, limit: int, /, *, origin: str | None = None, since: datetime | None = None
    ) -> Sequence[DocumentRecord]:
        """Return the newest documents, newest first."""
        conditions: list[tuple[str, object]] = [("origin = %s", None if origin is None else to_text(origin))]
        conditions.append(("created_at >= %s", None if since is None else to_milliseconds(since)))
        given = [(condition, value) for condition, value in conditions if value is not None]
        rows = self.resource.rows(
            f"SELECT head, tail, origin, content_hash, created_at, {_SEEN} FROM documents "
            f"WHERE {' AND '.join([_IN, *(condition for condition, _ in given)])} "
            "ORDER BY created_at DESC, head, tail LIMIT %s",
            (*self._in(collection), *(value for _, value in given), min(max(limit, 0), _MAX_LIMIT)),
        )
        return tuple(_record(join_path(head, tail), *row) for head, tail, *row in rows)

    def manifest(self, collection: str, origin: str, /) -> Mapping[str, DocumentRecord]:
        """Return the indexed documents of one origin, by path."""
        rows = self.resource.rows(
            f"SELECT head, tail, content_hash, created_at, {_SEEN} FROM documents WHERE {_IN} AND origin = %s",
            (*self._in(collection), to_text(origin)),
        )
        paths = ((join_path(head, tail), row) for head, tail, *row in rows)
        return {path: _record(path, to_text(origin), *row) for path, row in paths}

    def manifest_digest(self, collection: str, origin: str, /) -> tuple[int, int]:
        """Return the number of documents of an origin, and a number that depends on their rows and content hashes."""
        count, number = self.resource.row(
            "SELECT COUNT(*), COALESCE(SUM(hashtextextended(content_hash, id)), 0)::text FROM documents "
            f"WHERE {_IN} AND origin = %s",
            (*self._in(collection), to_text(origin)),
        )
        return count, int(number)

    def record(self, collection: str, origin: str, path: str, /) -> DocumentRecord | None:
        """Return the manifest's record of one path."""
        row = self.resource.row(
            f"SELECT content_hash, created_at, {_SEEN} FROM documents "
            f"WHERE {_IN} AND head = %s AND tail = %s AND origin = %s",
            (*self._in(collection), *split_path(path), to_text(origin)),
        )
        return None if row is None else _record(path, to_text(origin), *row)

    def select(self, collection: str, filters: Filters, /) -> ChunkSelection:
        """Return the chunks that pass the filters, as a condition with which retrievers of this store join."""
        return select(self.resource, collection, filters)

    def chunks(self, collection: str, keys: Sequence[int], /) -> Sequence[StoredChunk]:
        """Return the chunks of these keys in the order given; unknown keys are left out."""
        if not len(keys):
            return ()
        found = {stored.key: stored for stored in self._chunks(collection, "chunk.key = ANY(%s)", [list(keys)])}
        return tuple(found[key] for key in keys if key in found)

    def chunk_ids(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the id of the chunk of each key; unknown keys are left out."""
        if not len(keys):
            return {}
        sql = f"SELECT key, chunk_id FROM chunks WHERE {_IN} AND key = ANY(%s)"
        return dict(self.resource.rows(sql, (*self._in(collection), list(keys))))

    def texts(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the text of the chunk of each key; unknown keys are left out."""
        if not len(keys):
            return {}
        sql = f"SELECT key, content FROM chunks WHERE {_IN} AND key = ANY(%s)"
        return {key: from_text(text) for key, text in self.resource.rows(sql, (*self._in(collection), list(keys)))}

    def outline(self, collection: str, path: str, /) -> Sequence[StoredChunk]:
        """Return one document's chunks in order of position; empty if it is not indexed."""
        where = "document.head = %s AND document.tail = %s ORDER BY chunk.start_offset, chunk.key"
        return self._chunks(collection, where, split_path(path))

    def damaged(self, collection: str, path: str | None = None, /) -> Sequence[int]:
        """Return nothing: the server keeps checksums of its pages and raises an error for a damaged page."""
        del collection, path
        return ()

    def find(self, collection: str, chunk_id: str, /) -> Sequence[StoredChunk]:
        """Return the chunks whose id starts with ``chunk_id``."""
        begin, end = to_text(chunk_id), prefix_end(to_text(chunk_id))
        if end is None:
            return self._chunks(collection, "chunk.chunk_id >= %s ORDER BY chunk.key", [begin])
        where = "chunk.chunk_id >= %s AND chunk.chunk_id < %s ORDER BY chunk.key"
        return self._chunks(collection, where, [begin, end])

    def keys(self, collection: str, /) -> Keys:
        """Return the keys of all chunks, ascending."""
        rows = self.resource.rows(f"SELECT key FROM chunks WHERE {_IN} ORDER BY key", self._in(collection))
        return as_keys(key for (key,) in rows)

    def key_digest(self, collection: str, /) -> KeyDigest:
        """Return the digest of the keys."""
        return read_key_digest(self.resource, "chunks", collection)

    def count(self, collection: str, /) -> int:
        """Return the number of chunks."""
        return int(self.resource.value(f"SELECT COUNT(*) FROM chunks WHERE {_IN}", self._in(collection)))

    def space(self, collection: str, /) -> SpaceRecord | None:
        """Return the vector space the collection was indexed in, or None if there is none yet."""
        row = self.resource.row(
            """SELECT model, revision, dimension, metric, pooling, probe
               FROM collections AS own JOIN vector_spaces AS space ON (space.tenant, space.id) = (own.tenant, own.space)
               WHERE own.tenant = %s AND own.generation = %s AND own.name = %s""",
            self._in(collection),
        )
        if row is None:
            return None
        model, revision, dimension, metric, pooling, probe = row
        space = VectorSpace(from_text(model), from_text(revision), dimension, from_text(metric), from_text(pooling))
        return SpaceRecord(space, np.frombuffer(probe, "<f4").astype(np.float32, copy=False))

    def cached_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> Mapping[str, Vector]:
        """Return the cached vectors among these chunk hashes."""
        return cache.cached(self.resource, space, hashes)

    def counts(self, collection: str, /) -> Mapping[str, tuple[int, int]]:
        """Return (documents, chunks) by origin."""
        rows = self.resource.rows(
            """SELECT document.origin, COUNT(*), SUM(COALESCE(held.chunks, 0))::bigint FROM documents AS document
               LEFT JOIN (SELECT document, COUNT(*) AS chunks FROM chunks
                          WHERE tenant = %s AND generation = %s AND collection = %s GROUP BY document) AS held
                   ON held.document = document.id
               WHERE document.tenant = %s AND document.generation = %s AND document.collection = %s
               GROUP BY document.origin ORDER BY document.origin""",
            (*self._in(collection), *self._in(collection)),
        )
        return {from_text(origin): (documents, chunks) for origin, documents, chunks in rows}

    def _in(self, collection: str) -> tuple[int, int, str]:
        return (*self.resource.scope, collection)

    def _chunks(self, collection: str, where: str, values: Sequence[object]) -> tuple[StoredChunk, ...]:
        rows = self.resource.rows(_CHUNKS + where, (*self._in(collection), *values))
        return tuple(_stored(row) for row in rows)


def read_key_digest(session: Session, table: str, collection: str) -> KeyDigest:
    """Return the digest of a collection's keys in a table."""
    modulus = KeyDigest.MODULUS
    row = session.row(
        f"SELECT COUNT(*), COALESCE(SUM(key %% {modulus}), 0)::bigint, "
        f"COALESCE(SUM((key %% {modulus}) * (key %% {modulus}) %% {modulus}), 0)::bigint FROM {table} WHERE {_IN}",
        (*session.scope, collection),
    )
    return KeyDigest(*row)


def _record(path: str, origin: str, digest: str, created: int, seen: str) -> DocumentRecord:
    return DocumentRecord(path, from_text(origin), digest, from_milliseconds(created), from_text(seen))


@lru_cache(maxsize=4096)
def _headings(text: str) -> tuple[str, ...]:
    return tuple(json.loads(from_text(text)))


def _stored(row: Any) -> StoredChunk:
    key, chunk_id, content, start, end, first, last, heading, continues, context, title, *place = row
    head, tail, source, created, chat, origin, metadata = place
    chunk = Chunk(
        from_text(chunk_id),
        from_text(content),
        start,
        end,
        first,
        last,
        () if heading == "[]" else _headings(heading),
        None if continues is None else from_text(continues),
        from_text(context),
        from_text(title),
    )
    chat_id = None if chat is None else from_text(chat)
    path, source, origin = join_path(head, tail), from_text(source), from_text(origin)
    return StoredChunk(key, chunk, path, source, from_milliseconds(created), chat_id, origin, from_json(metadata))


__all__ = ["PostgresSnapshot", "read_key_digest"]
