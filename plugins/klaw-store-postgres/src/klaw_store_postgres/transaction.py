"""Writing: everything in a transaction is kept, or nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve, frozen

from klaw_core import Chunk, Document, Replacement, SpaceRecord, StoredChunk, Vector, VectorSpace, check_collection_name
from klaw_store_postgres import cache
from klaw_store_postgres.metadata import entries, to_json
from klaw_store_postgres.snapshot import PostgresSnapshot
from klaw_store_postgres.texts import digest, split_path, to_milliseconds, to_text

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

_IN = "tenant = %s AND generation = %s AND collection = %s"


@frozen(eq=False, repr=False)
class PostgresTransaction(PostgresSnapshot):
    """A write transaction; what it has changed it also sees."""

    def replace(self, collection: str, document: Document, chunks: Sequence[Chunk], /) -> Replacement:
        """Make these the document's chunks; a chunk whose id stays keeps its key, the others go or come."""
        self._open(collection)
        held = {stored.chunk.chunk_id: stored for stored in self.outline(collection, document.path)}
        number, title = self._put_document(collection, document)
        is_renamed = title is not None and title != document.title
        kept: list[tuple[int, Chunk]] = []
        new: list[Chunk] = []
        for chunk in chunks:
            old = held.get(chunk.chunk_id)
            if old is None or not old.chunk.says_the_same(chunk):
                new.append(chunk)
                continue
            kept.append((old.key, chunk))
            del held[chunk.chunk_id]
        removed = tuple(sorted(stored.key for stored in held.values()))
        self._delete_chunks(collection, removed)
        self._move(collection, document, kept)
        added = self._insert(collection, document, number, new)
        renewed = tuple(_stored(key, document, chunk) for key, chunk in kept) if is_renamed else ()
        return Replacement(removed, added, renewed, tuple(sorted(key for key, _ in kept)))

    def touch(self, collection: str, document: Document, /) -> None:
        """Record that an unchanged document's date or labels are now these."""
        self._open(collection)
        number, _ = self._put_document(collection, document)
        if not document.times:  # otherwise each chunk has its own
            created = to_milliseconds(document.created_at)
            sql = f"UPDATE chunks SET created_at = %s WHERE {_IN} AND document = %s AND created_at <> %s"
            self.resource.run(sql, (created, *self._in(collection), number, created))

    def delete(self, collection: str, path: str, /) -> Sequence[int]:
        """Remove one document and its chunks; return their keys (none if it is not indexed)."""
        sql = f"DELETE FROM documents WHERE {_IN} AND head = %s AND tail = %s RETURNING id"
        number = self.resource.value(sql, (*self._in(collection), *split_path(path)))
        if number is None:
            return ()
        where = (*self._in(collection), number)
        self.resource.run(f"DELETE FROM document_metadata WHERE {_IN} AND document = %s", where)
        rows = self.resource.rows(f"DELETE FROM chunks WHERE {_IN} AND document = %s RETURNING key", where)
        return sorted(key for (key,) in rows)

    def set_space(self, collection: str, record: SpaceRecord, /) -> None:
        """Record the vector space of the collection."""
        self._open(collection)
        self.resource.run(
            "UPDATE collections SET space = %s, probe = %s WHERE tenant = %s AND generation = %s AND name = %s",
            (cache.put_space(self.resource, record.space), np.asarray(record.probe, "<f4").tobytes(),
             *self._in(collection)),
        )  # fmt: skip

    def retire_space(self, space: VectorSpace, /) -> None:
        """Give a space another revision, ``replaced-…``; its cached vectors, of no use to any embedder, go."""
        session = self.resource
        old = cache.space_id(session, space)
        if old is not None:
            new = cache.put_space(session, evolve(space, revision=f"replaced-{space.revision}"))
            sql = "UPDATE collections SET space = %s WHERE tenant = %s AND space = %s"
            session.run(sql, (new, session.tenant, old))
            session.run("DELETE FROM vector_spaces WHERE tenant = %s AND id = %s", (session.tenant, old))

    def cache_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector], /) -> None:
        """Put vectors in the embedding cache, by chunk hash. One that is there stays."""
        cache.put(self.resource, space, vectors)

    def use_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> None:
        """Note that these cached vectors were of use now."""
        cache.use(self.resource, space, hashes)

    def tend_cache(self, max_entries: int, /, *, found: int = 0, computed: int = 0) -> int:
        """Leave at most ``max_entries`` vectors of the collections' spaces, the last used; return how many went."""
        cache.count_lookups(self.resource, found, computed)
        return cache.evict(self.resource, max_entries)

    def note_documents(self, space: VectorSpace, documents: Mapping[tuple[str, str], Sequence[str]], /) -> None:
        """Note which cached vectors, by chunk hash, were computed for which documents, by collection and path."""
        cache.note_documents(self.resource, space, documents)

    def forget_documents(self, collection: str, paths: Sequence[str], /) -> None:
        """Remove the cached vectors that were noted for these documents."""
        cache.forget_documents(self.resource, collection, paths)

    def forget_unused(self) -> None:
        """Remove the cached vectors of the collections' spaces whose text no chunk has."""
        cache.prune(self.resource)

    def forget_vectors(self, hashes: Sequence[str], /) -> None:
        """Remove these chunk hashes from the embedding cache, in every space."""
        cache.forget_hashes(self.resource, hashes)

    def _open(self, collection: str) -> None:
        sql = "INSERT INTO collections (tenant, generation, name) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        self.resource.run(sql, self._in(check_collection_name(collection)))

    def _put_document(self, collection: str, document: Document) -> tuple[int, str | None]:
        """Write the row of a document; return its number, and the title that it had, None if it is new."""
        session, metadata = self.resource, to_json(document.metadata)
        labels = {
            "origin": to_text(document.origin),
            "content_hash": document.content_hash,
            "created_at": to_milliseconds(document.created_at),
            "source": to_text(document.source),
            "source_digest": digest(document.source),
            "chat_id": None if document.chat_id is None else to_text(document.chat_id),
            "chat_digest": None if document.chat_id is None else digest(document.chat_id),
            "title": to_text(document.title),
            "metadata": metadata,
        }
        head, tail = split_path(document.path)
        sql = f"SELECT id, title, metadata FROM documents WHERE {_IN} AND head = %s AND tail = %s"
        row = session.row(sql, (*self._in(collection), head, tail))
        if row is None:
            columns = ("tenant", "generation", "collection", "head", "tail", *labels)
            sql = f"""INSERT INTO documents (id, {", ".join(columns)})
                      VALUES (nextval('document_ids'), {", ".join(["%s"] * len(columns))}) RETURNING id"""
            number = session.value(sql, (*self._in(collection), head, tail, *labels.values()))
            title, old = None, None
        else:
            number, title, old = row
            changes = ", ".join(f"{name} = %s" for name in labels)
            session.run(
                f"UPDATE documents SET {changes} WHERE {_IN} AND id = %s",
                (*labels.values(), *self._in(collection), number),
            )
        if metadata != old:
            _write_metadata(session, self._in(collection), number, document)
        return int(number), title

    def _delete_chunks(self, collection: str, keys: Sequence[int]) -> None:
        if keys:
            self.resource.run(f"DELETE FROM chunks WHERE {_IN} AND key = ANY(%s)", (*self._in(collection), list(keys)))

    def _move(self, collection: str, document: Document, kept: Sequence[tuple[int, Chunk]]) -> None:
        """Give chunks that stay their new place in the text, and the hash that a new title brings."""
        if not kept:
            return
        rows = [
            (key, chunk.start, chunk.end, chunk.start_line, chunk.end_line, _optional(chunk.continues),
             to_milliseconds(chunk.created_at or document.created_at), bytes.fromhex(chunk.embedding_hash))
            for key, chunk in kept
        ]  # fmt: skip
        self.resource.run(
            f"""UPDATE chunks SET start_offset = new.start_offset, end_offset = new.end_offset,
                    start_line = new.start_line, end_line = new.end_line, continues = new.continues,
                    created_at = new.created_at, embedding_hash = new.hash
                FROM unnest(%s::bigint[], %s::integer[], %s::integer[], %s::integer[], %s::integer[], %s::text[],
                            %s::bigint[], %s::bytea[])
                    AS new (key, start_offset, end_offset, start_line, end_line, continues, created_at, hash)
                WHERE {_IN} AND chunks.key = new.key AND (chunks.start_offset, chunks.end_offset, chunks.start_line,
                    chunks.end_line, chunks.continues, chunks.created_at, chunks.embedding_hash) IS DISTINCT FROM
                    (new.start_offset, new.end_offset, new.start_line, new.end_line, new.continues, new.created_at,
                    new.hash)""",
            (*map(list, zip(*rows, strict=True)), *self._in(collection)),
        )

    def _insert(
        self, collection: str, document: Document, number: int, chunks: Sequence[Chunk]
    ) -> tuple[StoredChunk, ...]:
        """Add chunks; return them with their keys, which no chunk ever had."""
        if not chunks:
            return ()
        sql = "SELECT nextval('chunk_keys') FROM generate_series(1, %s)"
        keys = sorted(key for (key,) in self.resource.rows(sql, (len(chunks),)))
        rows = [
            (key, to_text(chunk.chunk_id), to_text(chunk.text), chunk.start, chunk.end, chunk.start_line,
             chunk.end_line, to_text(json.dumps(chunk.heading, ensure_ascii=False)) if chunk.heading else "[]",
             _optional(chunk.continues), to_text(chunk.context),
             to_milliseconds(chunk.created_at or document.created_at), bytes.fromhex(chunk.embedding_hash))
            for key, chunk in zip(keys, chunks, strict=True)
        ]  # fmt: skip
        self.resource.run(
            """INSERT INTO chunks (tenant, generation, collection, document, key, chunk_id, content, start_offset,
                   end_offset, start_line, end_line, heading, continues, context, created_at, embedding_hash)
               SELECT %s, %s, %s, %s, new.* FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::integer[],
                   %s::integer[], %s::integer[], %s::integer[], %s::text[], %s::text[], %s::text[], %s::bigint[],
                   %s::bytea[]) AS new""",
            (*self._in(collection), number, *map(list, zip(*rows, strict=True))),
        )
        return tuple(_stored(key, document, chunk) for key, chunk in zip(keys, chunks, strict=True))


def _write_metadata(session: Session, place: tuple[int, int, str], number: int, document: Document) -> None:
    session.run(f"DELETE FROM document_metadata WHERE {_IN} AND document = %s", (*place, number))
    rows = [(*place, number, *entry) for entry in entries(document.metadata)]
    if rows:
        session.run_many(
            """INSERT INTO document_metadata (tenant, generation, collection, document, key, digest, number, value)
               VALUES (%s, %s, %s, %s, %s, %s, %s, %s)""",
            rows,
        )


def _optional(text: str | None) -> str | None:
    return None if text is None else to_text(text)


def _stored(key: int, document: Document, chunk: Chunk) -> StoredChunk:
    created = chunk.created_at or document.created_at
    place = (document.path, document.source, created, document.chat_id, document.origin)
    return StoredChunk(key, chunk, *place, dict(document.metadata))
