"""Writing: everything in a transaction is kept, or nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from attrs import define, evolve, field, frozen

from klaw_core import (
    Chunk,
    Document,
    DocumentRecord,
    Replacement,
    SpaceRecord,
    StoredChunk,
    Vector,
    VectorSpace,
    check_collection_name,
)
from klaw_store_postgres import cache
from klaw_store_postgres.messages import PostgresMessages
from klaw_store_postgres.metadata import entries, to_json
from klaw_store_postgres.snapshot import PostgresSnapshot
from klaw_store_postgres.texts import (
    digest,
    from_milliseconds,
    from_text,
    join_path,
    split_path,
    to_milliseconds,
    to_text,
)

_IN = "tenant = %s AND generation = %s AND collection = %s"
# The columns of documents that can change, and arrays of them.
_LABELS = ("origin", "content_hash", "created_at", "source", "source_digest", "chat_id", "chat_digest", "title",
           "metadata")  # fmt: skip
_LABEL_ARRAYS = ("%s::text[], %s::text[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::bigint[], "
                 "%s::text[], %s::text[]")  # fmt: skip


@frozen(eq=False, repr=False)
class PostgresTransaction(PostgresSnapshot):
    """A write transaction, which sees its own changes."""

    def replace(
        self,
        collection: str,
        document: Document,
        chunks: Sequence[Chunk],
        /,
        *,
        expected: Mapping[str, DocumentRecord] | None = None,
    ) -> Replacement:
        """Make these the document's chunks; a chunk with a known id keeps its key, others are deleted or added."""
        (change,) = self.replace_all(collection, [(document, chunks)], expected=expected)
        return change

    def replace_all(
        self,
        collection: str,
        documents: Sequence[tuple[Document, Sequence[Chunk]]],
        /,
        *,
        expected: Mapping[str, DocumentRecord] | None = None,
    ) -> Sequence[Replacement]:
        """Replace many documents, with few statements for all of them."""
        paths = {document.path for document, _ in documents}
        if len(paths) < len(documents):  # the later one of a path replaces the earlier one
            return [self.replace(collection, *each, expected=expected) for each in documents]
        held = self._held_documents(collection, paths)
        refused = {
            document.path
            for document, _ in documents
            if expected is not None and _record_of(held, document) != expected.get(document.path)
        }
        wanted = [(document, chunks) for document, chunks in documents if document.path not in refused]
        chunks_of = self._held_chunks(collection, [held[item.path].id for item, _ in wanted if item.path in held])
        numbers = self._put_documents(collection, [document for document, _ in wanted], held)
        changes: dict[str, _Change] = {}
        for document, chunks in wanted:
            before = held.get(document.path)
            change = changes[document.path] = _Change(document, numbers[document.path], before)
            change.compare(chunks, chunks_of.get(change.number, ()))
        self._delete_chunks(collection, [key for change in changes.values() for key in change.removed])
        self._move(collection, [(key, chunk, each.document) for each in changes.values() for key, chunk in each.kept])
        new = [(each, chunk) for each in changes.values() for chunk in each.new]
        for (change, chunk), key in zip(new, self._insert(collection, new), strict=True):
            change.added.append(_stored(key, change.document, chunk))
        return [
            changes[document.path].result() if document.path in changes else Replacement(refused=True)
            for document, _ in documents
        ]

    def touch(self, collection: str, document: Document, /) -> None:
        """Record that an unchanged document's date or labels are now these."""
        held = self._held_documents(collection, [document.path])
        number = self._put_documents(collection, [document], held)[document.path]
        if not document.times:  # otherwise each chunk has its own
            created = to_milliseconds(document.created_at)
            sql = f"UPDATE chunks SET created_at = %s WHERE {_IN} AND document = %s AND created_at <> %s"
            self.resource.run(sql, (created, *self._in(collection), number, created))

    def remember(self, collection: str, records: Sequence[DocumentRecord], /) -> None:
        """Note how to recognise documents that are recorded so still."""
        if not records:
            return
        rows = [
            (*split_path(one.path), to_text(one.origin), one.content_hash, to_milliseconds(one.created_at),
             to_text(one.seen))
            for one in sorted(records, key=lambda one: one.path)  # two writers lock in the same order
        ]  # fmt: skip
        self.resource.run(
            f"""UPDATE documents SET seen = new.seen
                FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[])
                    AS new (head, tail, origin, content_hash, created_at, seen)
                WHERE {_IN} AND (documents.head, documents.tail, documents.origin, documents.content_hash,
                    documents.created_at) = (new.head, new.tail, new.origin, new.content_hash, new.created_at)""",
            (*_columns(rows), *self._in(collection)),
        )

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
        self.resource.be_alone()
        self._open(collection)
        self.resource.run(
            "UPDATE collections SET space = %s, probe = %s WHERE tenant = %s AND generation = %s AND name = %s",
            (cache.put_space(self.resource, record.space), np.asarray(record.probe, "<f4").tobytes(),
             *self._in(collection)),
        )  # fmt: skip

    def retire_space(self, space: VectorSpace, /) -> None:
        """Give a space another revision, ``replaced-…``; its cached vectors, of no use to any embedder, go."""
        session = self.resource
        session.be_alone()
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
        """Remove the cached vectors that were noted for these documents, also by writers that have not finished."""
        self.resource.be_alone()
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

    @property
    def messages(self) -> PostgresMessages:
        """Return the rows of conversations, which one transaction at a time changes."""
        self.resource.lock("messages")
        return PostgresMessages(self.resource)

    def chunk_ids(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the id of the chunk of each key; the rows are locked until the end of the transaction."""
        sql = f"SELECT key, chunk_id FROM chunks WHERE {_IN} AND key = ANY(%s) ORDER BY key FOR UPDATE"
        rows = self.resource.rows(sql, (*self._in(collection), list(keys))) if len(keys) else ()
        return {key: from_text(name) for key, name in rows}

    def chunks(self, collection: str, keys: Sequence[int], /) -> Sequence[StoredChunk]:
        """Return the chunks of these keys in the given order; the rows are locked until the end of the transaction."""
        self.chunk_ids(collection, keys)
        return super().chunks(collection, keys)

    def outline(self, collection: str, path: str, /) -> Sequence[StoredChunk]:
        """Return one document's chunks in order of position; the document is locked until the transaction ends."""
        self._held_documents(collection, [path])
        return super().outline(collection, path)

    def record(self, collection: str, origin: str, path: str, /) -> DocumentRecord | None:
        """Return the row of the manifest for one path; the document is locked until the end of the transaction."""
        found = self._held_documents(collection, [path]).get(path)
        return found.record if found is not None and found.record.origin == origin else None

    def _held_documents(self, collection: str, paths: Collection[str]) -> dict[str, _Held]:
        """Return the documents of these paths that there are, locked."""
        heads, tails = zip(*map(split_path, paths), strict=True) if paths else ((), ())
        rows = self.resource.rows(
            f"""SELECT id, head, tail, origin, content_hash, created_at, seen, title, metadata FROM documents
                WHERE {_IN} AND head = ANY(%s) AND tail = ANY(%s) ORDER BY id FOR UPDATE""",
            (*self._in(collection), list(heads), sorted(set(tails))),
        )
        found = {}
        for number, head, tail, origin, content_hash, created, seen, title, metadata in rows:
            path = join_path(head, tail)
            record = DocumentRecord(path, from_text(origin), content_hash, from_milliseconds(created), from_text(seen))
            found[path] = _Held(number, record, title, metadata)
        return found

    def _held_chunks(self, collection: str, numbers: Sequence[int]) -> dict[int, list[_HeldChunk]]:
        """Return the chunks of these documents, locked, by document."""
        found: dict[int, list[_HeldChunk]] = defaultdict(list)
        if numbers:
            rows = self.resource.rows(
                f"""SELECT document, key, chunk_id, content, heading, context FROM chunks
                    WHERE {_IN} AND document = ANY(%s) ORDER BY key FOR UPDATE""",
                (*self._in(collection), list(numbers)),
            )
            for number, *row in rows:
                found[number].append(_HeldChunk(*row))
        return found

    def _put_documents(
        self, collection: str, documents: Sequence[Document], held: Mapping[str, _Held]
    ) -> dict[str, int]:
        """Write the rows of documents; return their numbers by path."""
        rows = {document.path: _labels(document) for document in documents}
        old = [document for document in documents if document.path in held]
        new = [document for document in documents if document.path not in held]
        numbers = {document.path: held[document.path].id for document in old}
        place = self._in(check_collection_name(collection))
        columns = ", ".join(_LABELS)
        if old:
            changes = ", ".join(("seen = ''", *(f"{name} = new.{name}" for name in _LABELS)))
            self.resource.run(
                f"""UPDATE documents SET {changes} FROM unnest(%s::bigint[], {_LABEL_ARRAYS}) AS new (id, {columns})
                    WHERE {_IN} AND documents.id = new.id""",
                ([numbers[one.path] for one in old], *_columns([rows[one.path] for one in old]), *place),
            )
        if new:
            added = self.resource.rows(
                f"""WITH opened AS (INSERT INTO collections (tenant, generation, name) VALUES (%s, %s, %s)
                        ON CONFLICT DO NOTHING)
                    INSERT INTO documents (tenant, generation, collection, id, head, tail, {columns})
                    SELECT %s, %s, %s, nextval('document_ids'), new.*
                    FROM unnest(%s::text[], %s::text[], {_LABEL_ARRAYS}) AS new RETURNING id, head, tail""",
                (*place, *place, *map(list, zip(*(split_path(one.path) for one in new), strict=True)),
                 *_columns([rows[one.path] for one in new])),
            )  # fmt: skip
            numbers.update((join_path(head, tail), number) for number, head, tail in added)
        changed = [one for one in old if held[one.path].metadata != rows[one.path][-1]]
        if changed:
            sql = f"DELETE FROM document_metadata WHERE {_IN} AND document = ANY(%s)"
            self.resource.run(sql, (*place, [numbers[one.path] for one in changed]))
        values = [(numbers[one.path], *entry) for one in (*changed, *new) for entry in entries(one.metadata)]
        if values:
            self.resource.run(
                """INSERT INTO document_metadata (tenant, generation, collection, document, key, digest, number, value)
                   SELECT %s, %s, %s, new.* FROM
                   unnest(%s::bigint[], %s::text[], %s::bigint[], %s::numeric[], %s::text[]) AS new
                   RETURNING tenant""",
                (*place, *_columns(values)),
            )
        return numbers

    def _delete_chunks(self, collection: str, keys: Sequence[int]) -> None:
        if keys:
            self.resource.run(f"DELETE FROM chunks WHERE {_IN} AND key = ANY(%s)", (*self._in(collection), list(keys)))

    def _move(self, collection: str, kept: Sequence[tuple[int, Chunk, Document]]) -> None:
        """Give chunks that stay their new place in the text, and the hash that a new title brings."""
        if not kept:
            return
        rows = [
            (key, chunk.start, chunk.end, chunk.start_line, chunk.end_line, _optional(chunk.continues),
             to_milliseconds(chunk.created_at or document.created_at), bytes.fromhex(chunk.embedding_hash))
            for key, chunk, document in kept
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
            (*_columns(rows), *self._in(collection)),
        )

    def _insert(self, collection: str, new: Sequence[tuple[_Change, Chunk]]) -> list[int]:
        """Add chunks; return their keys, which ascend, and which no chunk ever had."""
        if not new:
            return []
        rows = [
            (change.number, to_text(chunk.chunk_id), to_text(chunk.text), chunk.start, chunk.end, chunk.start_line,
             chunk.end_line, _heading(chunk), _optional(chunk.continues), to_text(chunk.context),
             to_milliseconds(chunk.created_at or change.document.created_at), bytes.fromhex(chunk.embedding_hash))
            for change, chunk in new
        ]  # fmt: skip
        # The rows get their keys in the order of the arrays.
        added = self.resource.rows(
            """INSERT INTO chunks (tenant, generation, collection, key, document, chunk_id, content, start_offset,
                   end_offset, start_line, end_line, heading, continues, context, created_at, embedding_hash)
               SELECT %s, %s, %s, nextval('chunk_keys'), document, chunk_id, content, start_offset, end_offset,
                   start_line, end_line, heading, continues, context, created_at, embedding_hash
               FROM (SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::integer[], %s::integer[],
                   %s::integer[], %s::integer[], %s::text[], %s::text[], %s::text[], %s::bigint[], %s::bytea[])
                   WITH ORDINALITY AS new (document, chunk_id, content, start_offset, end_offset, start_line, end_line,
                       heading, continues, context, created_at, embedding_hash, place) ORDER BY place) AS new
               RETURNING key""",
            (*self._in(collection), *_columns(rows)),
        )
        self.resource.added += len(added)
        return sorted(key for (key,) in added)


@frozen
class _Held:
    """A document as it is: its number, its record, its title and its metadata as JSON."""

    id: int
    record: DocumentRecord
    title: str
    metadata: str | None


@frozen
class _HeldChunk:
    """A stored chunk: its key, and the values that decide whether it stays, in PostgreSQL's form."""

    key: int
    chunk_id: str
    content: str
    heading: str
    context: str

    def stays(self, chunk: Chunk) -> bool:
        texts = (to_text(chunk.text), _heading(chunk), to_text(chunk.context))
        return texts == (self.content, self.heading, self.context)


@define
class _Change:
    """The changes of one document's chunks."""

    document: Document
    number: int
    before: _Held | None
    kept: list[tuple[int, Chunk]] = field(factory=list)
    new: list[Chunk] = field(factory=list)
    removed: tuple[int, ...] = ()
    added: list[StoredChunk] = field(factory=list)

    def compare(self, chunks: Sequence[Chunk], held: Sequence[_HeldChunk]) -> None:
        by_key = {one.key: one for one in held}
        ids = [(one.key, from_text(one.chunk_id)) for one in held]
        self.kept, self.new, self.removed = Replacement.compare(
            chunks, ids, lambda key, chunk: by_key[key].stays(chunk)
        )

    def result(self) -> Replacement:
        labels = to_text(self.document.title), to_json(self.document.metadata)
        is_relabelled = self.before is not None and (self.before.title, self.before.metadata) != labels
        return Replacement(
            self.removed,
            tuple(self.added),
            tuple(_stored(key, self.document, chunk) for key, chunk in self.kept) if is_relabelled else (),
            tuple(sorted(key for key, _ in self.kept)),
            is_new=self.before is None or self.before.record.origin != self.document.origin,
        )


def _record_of(held: Mapping[str, _Held], document: Document) -> DocumentRecord | None:
    found = held.get(document.path)
    return found.record if found is not None and found.record.origin == document.origin else None


def _labels(document: Document) -> tuple[object, ...]:
    """Return the columns of a document that can change, as :data:`_LABELS` names them."""
    return (
        to_text(document.origin),
        document.content_hash,
        to_milliseconds(document.created_at),
        to_text(document.source),
        digest(document.source),
        None if document.chat_id is None else to_text(document.chat_id),
        None if document.chat_id is None else digest(document.chat_id),
        to_text(document.title),
        to_json(document.metadata),
    )


def _columns(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _heading(chunk: Chunk) -> str:
    return to_text(json.dumps(chunk.heading, ensure_ascii=False)) if chunk.heading else "[]"


def _optional(text: str | None) -> str | None:
    return None if text is None else to_text(text)


def _stored(key: int, document: Document, chunk: Chunk) -> StoredChunk:
    created = chunk.created_at or document.created_at
    place = (document.path, document.source, created, document.chat_id, document.origin)
    return StoredChunk(key, chunk, *place, dict(document.metadata))
