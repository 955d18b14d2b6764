"""Write transactions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import apsw
from attrs import evolve, field, frozen

from klaw_core import Chunk, Document, DocumentRecord, Replacement, SpaceRecord, StoredChunk, Vector, VectorSpace
from klaw_store_sqlitevec.cache import count_lookups, evict, note_use
from klaw_store_sqlitevec.cache_pruning import prune_cache
from klaw_store_sqlitevec.checksums import COLUMNS, checksum
from klaw_store_sqlitevec.metadata import add_entries, remove_entries, to_json
from klaw_store_sqlitevec.schema import chunk_table, create_chunks
from klaw_store_sqlitevec.snapshot import SqliteSnapshot
from klaw_store_sqlitevec.text_codec import compress_text
from klaw_store_sqlitevec.timestamps import to_text
from klaw_store_sqlitevec.vector_codec import encode_vector

if TYPE_CHECKING:
    from klaw_store_sqlitevec.conversations import SqliteMessages

# The columns with a chunk's own values in every table of chunks.
_CHUNK_COLUMNS = (*COLUMNS, "checksum", "embedding_hash")


@frozen
class SqliteTransaction(SqliteSnapshot):
    """A write transaction, which also reads its own changes.

    ``erasing`` is not empty if something must also be erased from the bytes of the files. With ``compress``, the texts
    of new chunks are compressed.
    """

    compress: bool = False
    erasing: set[str] = field(factory=set, init=False)
    _written: set[str] = field(factory=set, init=False)

    @property
    def messages(self) -> SqliteMessages:
        """Return the rows of conversations, for writing."""
        from klaw_store_sqlitevec.conversations import SqliteMessages

        return SqliteMessages(self.resource, self.erasing)

    def replace(
        self,
        collection: str,
        document: Document,
        chunks: Sequence[Chunk],
        /,
        *,
        expected: Mapping[str, DocumentRecord] | None = None,
    ) -> Replacement:
        """Replace the document's chunks. A chunk whose id is unchanged keeps its key."""
        record = self.record(collection, document.origin, document.path)
        if expected is not None and record != expected.get(document.path):
            return Replacement(refused=True)
        self._open(collection)
        keys = self._document_keys(collection, document.path)
        held = {stored.key: stored.chunk for stored in self.outline(collection, document.path)}
        ids = [(key, held[key].chunk_id if key in held else "") for key in keys]
        is_relabelled = self._labels(collection, document.path) != (document.title, to_json(document.metadata))
        document_id = self._put_document(collection, document)
        kept, new, removed = Replacement.compare(chunks, ids, lambda key, chunk: held[key].says_the_same(chunk))
        self._delete_chunks(collection, removed)
        if kept:
            self._move(collection, document, kept)
            self._relabel(collection, document, document_id)
        renewed = tuple(_stored(key, document, chunk) for key, chunk in kept) if is_relabelled else ()
        if renewed:  # what is embedded contains the title
            sql = f"UPDATE {chunk_table(collection).name} SET embedding_hash = ? WHERE id = ?"
            self.resource.executemany(sql, ((_embedding_hash(each.chunk), each.key) for each in renewed))
        added = self._insert(collection, document, document_id, new)
        return Replacement(removed, added, renewed, tuple(sorted(key for key, _ in kept)), record is None)

    def replace_all(
        self,
        collection: str,
        documents: Sequence[tuple[Document, Sequence[Chunk]]],
        /,
        *,
        expected: Mapping[str, DocumentRecord] | None = None,
    ) -> Sequence[Replacement]:
        """Replace the chunks of several documents, one after the other."""
        return [self.replace(collection, *each, expected=expected) for each in documents]

    def touch(self, collection: str, document: Document, /) -> None:
        """Update the date and labels of an unchanged document."""
        self._open(collection)
        self._relabel(collection, document, self._put_document(collection, document))

    def delete(self, collection: str, path: str, /) -> Sequence[int]:
        """Remove one document and its chunks; return the chunks' keys."""
        keys = self._document_keys(collection, path)
        self._delete_chunks(collection, keys)
        sql = "DELETE FROM documents WHERE collection = ? AND path = ? RETURNING id, metadata"
        rows: list[Any] = self.resource.execute(sql, (collection, path)).fetchall()
        for document_id, metadata in rows:
            remove_entries(self.resource, collection, document_id, metadata)
        return keys

    def remember(self, collection: str, records: Sequence[DocumentRecord], /) -> None:
        """Store the ``seen`` of documents whose record is otherwise unchanged."""
        self.resource.executemany(
            """UPDATE documents SET seen = ?
               WHERE collection = ? AND path = ? AND origin = ? AND content_hash = ? AND created_at = ?""",
            (
                (record.seen, collection, record.path, record.origin, record.content_hash, to_text(record.created_at))
                for record in records
            ),
        )

    def set_space(self, collection: str, record: SpaceRecord, /) -> None:
        """Record the vector space of the collection."""
        self._open(collection)
        self.resource.execute(
            "INSERT INTO collection_spaces (collection, space_id, probe) VALUES (?, ?, ?) "
            "ON CONFLICT (collection) DO UPDATE SET space_id = excluded.space_id, probe = excluded.probe",
            (collection, self.put_space(record.space), record.probe.astype("<f4").tobytes()),
        )

    def retire_space(self, space: VectorSpace, /) -> None:
        """Change the revision of a space to ``replaced-…``, and remove its cached vectors."""
        old = self.space_id(space)
        if old is not None:
            new = self.put_space(evolve(space, revision=f"replaced-{space.revision}"))
            self.resource.execute("UPDATE collection_spaces SET space_id = ? WHERE space_id = ?", (new, old))
            self.resource.execute("DELETE FROM vector_spaces WHERE id = ?", (old,))

    def cache_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector], /) -> None:
        """Put vectors in the embedding cache, by chunk hash. An existing one is replaced only if it is damaged."""
        if not vectors:
            return
        space_id = self.put_space(space)
        held = self.cached_vectors(space, list(vectors))
        new = {digest: encode_vector(vector) for digest, vector in vectors.items() if digest not in held}
        self.resource.executemany(
            "INSERT INTO embedding_cache (space_id, hash, vector) VALUES (?, ?, ?) "
            "ON CONFLICT (space_id, hash) DO UPDATE SET vector = excluded.vector",
            ((space_id, bytes.fromhex(digest), blob) for digest, blob in new.items()),
        )
        note_use(self.resource, space_id, list(vectors))

    def use_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> None:
        """Record the use of these cached vectors."""
        space_id = self.space_id(space)
        if space_id is not None and hashes:
            note_use(self.resource, space_id, hashes)

    def tend_cache(self, max_entries: int, /, *, found: int = 0, computed: int = 0) -> int:
        """Keep the ``max_entries`` most recently used vectors of the collections' spaces; return the number removed."""
        count_lookups(self.resource, found, computed)
        return evict(self.resource, max_entries)

    def forget_vectors(self, hashes: Sequence[str], /) -> None:
        """Remove these chunk hashes from the embedding cache, in every space."""
        self.erasing.add("vectors")
        if hashes:
            array = apsw.carray(tuple(bytes.fromhex(digest) for digest in hashes))
            self.resource.execute("DELETE FROM embedding_cache WHERE hash IN (SELECT value FROM carray(?))", (array,))

    def note_documents(self, space: VectorSpace, documents: Mapping[tuple[str, str], Sequence[str]], /) -> None:
        """Record which cached vectors (chunk hashes) were computed for which documents (collection and path)."""
        space_id = self.space_id(space)
        sql = """INSERT OR IGNORE INTO cache_documents (collection, path, id)
                 SELECT ?, ?, id FROM embedding_cache WHERE space_id = ? AND hash IN (SELECT value FROM carray(?))"""
        for place, hashes in documents.items():
            if hashes:
                digests = apsw.carray(tuple(bytes.fromhex(digest) for digest in hashes))
                self.resource.execute(sql, (*place, space_id, digests))

    def forget_documents(self, collection: str, paths: Sequence[str], /) -> None:
        """Remove the cached vectors that were recorded for these documents."""
        self.erasing.add("documents")
        sql = """DELETE FROM embedding_cache
                 WHERE id IN (SELECT id FROM cache_documents WHERE collection = ? AND path = ?)"""
        self.resource.executemany(sql, ((collection, path) for path in paths))

    def forget_unused(self) -> None:
        """Remove the cached vectors of the collections' spaces that no chunk needs."""
        self.erasing.add("vectors")
        prune_cache(self, set())

    def put_space(self, space: VectorSpace) -> int:
        """Return the row id of a vector space; add it if it is new."""
        found = self.space_id(space)
        if found is not None:
            return found
        self.resource.execute(
            "INSERT INTO vector_spaces (model, revision, dimension, metric, pooling) VALUES (?, ?, ?, ?, ?)",
            (space.model, space.revision, space.dimension, space.metric, space.pooling),
        )
        return self.resource.last_insert_rowid()

    def _open(self, collection: str) -> None:
        """Record that a collection is written to, and create its tables if they do not exist."""
        if collection in self._written:
            return
        table = chunk_table(collection)
        known = self.resource.execute("SELECT 1 FROM collections WHERE name = ?", (collection,)).fetchone()
        if known is None:
            self.resource.execute("INSERT INTO collections (name) VALUES (?)", (collection,))
            if self._table(collection) is None:
                create_chunks(self.resource, table)
                self._made[collection] = True
        self._written.add(collection)

    def _labels(self, collection: str, path: str) -> tuple[str, str | None]:
        """Return the title of a document, and its metadata as JSON."""
        sql = "SELECT title, metadata FROM documents WHERE collection = ? AND path = ?"
        row: Any = self.resource.execute(sql, (collection, path)).fetchone()
        return row or ("", None)

    def _put_document(self, collection: str, document: Document) -> int:
        metadata = to_json(document.metadata)
        values = (document.origin, document.content_hash, to_text(document.created_at), document.title, metadata)
        sql = "SELECT id, metadata FROM documents WHERE collection = ? AND path = ?"
        row = self.resource.execute(sql, (collection, document.path)).fetchone()
        if row is None:
            sql = """INSERT INTO documents (collection, path, origin, content_hash, created_at, title, metadata)
                     VALUES (?, ?, ?, ?, ?, ?, ?)"""
            self.resource.execute(sql, (collection, document.path, *values))
            document_id, old = self.resource.last_insert_rowid(), None
        else:
            document_id, old = row
            sql = """UPDATE documents
                     SET (origin, content_hash, created_at, title, metadata, seen) = (?, ?, ?, ?, ?, '')
                     WHERE id = ?"""
            self.resource.execute(sql, (*values, document_id))
        if metadata != old:
            remove_entries(self.resource, collection, document_id, old)
            add_entries(self.resource, collection, document_id, metadata)
        return int(document_id)

    def _document_keys(self, collection: str, path: str) -> tuple[int, ...]:
        """Return the keys of a document's chunks, ascending, including those of damaged rows."""
        table = self._table(collection)
        if table is None:
            return ()
        sql = f"""SELECT chunk.id FROM {table.name} AS chunk JOIN documents ON documents.id = chunk.document_id
                  WHERE documents.collection = ? AND documents.path = ? ORDER BY chunk.id"""
        rows: list[Any] = self.resource.execute(sql, (collection, path)).fetchall()
        return tuple(key for (key,) in rows)

    def _delete_chunks(self, collection: str, keys: Sequence[int]) -> None:
        if keys:
            sql = f"DELETE FROM {chunk_table(collection).name} WHERE id = ?"
            self.resource.executemany(sql, ((key,) for key in keys))

    def _move(self, collection: str, document: Document, kept: Sequence[tuple[int, Chunk]]) -> None:
        """Update the position of kept chunks; most have not moved."""
        sql = f"""
            UPDATE {chunk_table(collection).name}
            SET start_offset = ?1, end_offset = ?2, start_line = ?3, end_line = ?4, continues = ?5,
                created_at = COALESCE(?6, created_at), updated_at = ?7, checksum = ?8
            WHERE id = ?9 AND (start_offset, end_offset, start_line, end_line, continues, created_at)
                IS NOT (?1, ?2, ?3, ?4, ?5, COALESCE(?6, created_at))
        """
        updated = to_text(document.created_at)
        self.resource.executemany(
            sql, ((*_place_values(chunk), updated, _chunk_values(chunk)[-1], key) for key, chunk in kept)
        )

    def _relabel(self, collection: str, document: Document, document_id: int) -> None:
        table = chunk_table(collection)
        labels = dict(table.labels(document))
        if not document.times:  # otherwise each chunk has its own date
            labels["created_at"] = to_text(document.created_at)
        names, marks = ", ".join(labels), ", ".join(f"?{number}" for number in range(1, len(labels) + 1))
        sql = f"""
            UPDATE {table.name} SET ({names}) = ({marks})
            WHERE document_id = ?{len(labels) + 1} AND ({names}) IS NOT ({marks})
        """
        self.resource.execute(sql, (*labels.values(), document_id))

    def _insert(
        self, collection: str, document: Document, document_id: int, chunks: Sequence[Chunk]
    ) -> tuple[StoredChunk, ...]:
        """Add chunks; return them with their keys, which are larger than all keys ever used."""
        if not chunks:
            return ()
        table = chunk_table(collection)
        shared = {**table.labels(document), "document_id": document_id}
        created = to_text(document.created_at)
        columns = ("id", *shared, "created_at", *table.own(chunks[0]), *_CHUNK_COLUMNS)
        sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        last = self.resource.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)).get or 0
        keyed = tuple(enumerate(chunks, start=last + 1))
        above = tuple(shared.values())
        self.resource.executemany(
            sql,
            (
                (key, *above, _written_at(chunk) or created, *table.own(chunk).values(), *self._columns(chunk))
                for key, chunk in keyed
            ),
        )
        return tuple(_stored(key, document, chunk) for key, chunk in keyed)

    def _columns(self, chunk: Chunk) -> tuple[object, ...]:
        """Return the column values of a new chunk."""
        text, *others = _chunk_values(chunk)
        return (compress_text(chunk.text) if self.compress else text, *others, _embedding_hash(chunk))


def _stored(key: int, document: Document, chunk: Chunk) -> StoredChunk:
    created = chunk.created_at or document.created_at
    place = (document.path, document.source, created, document.chat_id, document.origin)
    return StoredChunk(key, chunk, *place, dict(document.metadata))


def _embedding_hash(chunk: Chunk) -> bytes:
    return bytes.fromhex(chunk.embedding_hash)


def _written_at(chunk: Chunk) -> str | None:
    return None if chunk.created_at is None else to_text(chunk.created_at)


@lru_cache(maxsize=1024)
def _headings(heading: tuple[str, ...]) -> str:
    """Return headings as JSON. The result is cached, because adjacent chunks share them."""
    return json.dumps(heading, ensure_ascii=False)


def _place_values(chunk: Chunk) -> tuple[object, ...]:
    """Return the values that may change while a chunk's id stays the same."""
    return (chunk.start, chunk.end, chunk.start_line, chunk.end_line, chunk.continues, _written_at(chunk))


def _chunk_values(chunk: Chunk) -> tuple[object, ...]:
    """Return a chunk's values for the columns of every table of chunks."""
    heading = _headings(chunk.heading) if chunk.heading else "[]"
    place = (chunk.start, chunk.end, chunk.start_line, chunk.end_line)
    values = (chunk.text, chunk.chunk_id, *place, heading, chunk.continues, chunk.context)
    return (*values, checksum(values))
