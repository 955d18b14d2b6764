"""The store ``memory``: everything in dictionaries, lost when the process ends. It is also the oracle of tests.

A transaction works on a copy of the tables and replaces them at commit. So snapshots do not change, and a failed
block has no effect; each transaction costs time linear in the number of rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from heapq import nsmallest
from zlib import crc32

import numpy as np
from attrs import evolve, frozen

from klaw_core import (
    Chunk,
    ChunkSelection,
    Document,
    DocumentRecord,
    Filters,
    Finding,
    Hold,
    Index,
    KeyDigest,
    Keys,
    KeySelection,
    Replacement,
    Snapshot,
    SpaceRecord,
    Store,
    StoredChunk,
    StoreError,
    ThreadLock,
    Transaction,
    Vector,
    VectorSpace,
    check_collection_name,
    quoted,
)
from klaw_testing.memory_messages import MemoryMessages
from klaw_testing.memory_tables import Tables

_LOCK_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


@frozen
class MemorySnapshot:
    """A view of the tables at one moment; in a transaction, of the tables that it changes."""

    resource: Tables

    @property
    def messages(self) -> MemoryMessages:
        """Return the rows of conversations."""
        return MemoryMessages(self.resource)

    def collections(self) -> Sequence[str]:
        """Return the names of the collections that were ever written to, sorted."""
        return sorted(self.resource.collections)

    def is_empty(self, collection: str, /) -> bool:
        """Return whether a collection has no chunks."""
        return not self.resource.chunks.get(collection)

    def documents(self, collection: str, prefix: str, after: str, limit: int, /) -> Sequence[DocumentRecord]:
        """Return documents sorted by path: those that begin with ``prefix`` and come after ``after``."""
        found = (path for owner, path in self.resource.documents if owner == collection and path > after)
        paths = sorted(path for path in found if path.startswith(prefix))[: max(limit, 0)]
        return tuple(self._record(collection, path) for path in paths)

    def manifest(self, collection: str, origin: str, /) -> Mapping[str, DocumentRecord]:
        """Return the indexed documents of one origin, by path."""
        return {
            path: self._record(collection, path)
            for (owner, path), document in self.resource.documents.items()
            if owner == collection and document.origin == origin
        }

    def manifest_digest(self, collection: str, origin: str, /) -> tuple[int, int]:
        """Return the number of documents of an origin, and a number that depends on their paths and content hashes."""
        records = self.manifest(collection, origin).values()
        return len(records), sum(crc32(f"{record.path}\0{record.content_hash}".encode()) for record in records)

    def newest(
        self, collection: str, limit: int, /, *, origin: str | None = None, since: datetime | None = None
    ) -> Sequence[DocumentRecord]:
        """Return the newest documents, newest first."""
        found = (
            self._record(collection, path)
            for (owner, path), document in self.resource.documents.items()
            if owner == collection and origin in {None, document.origin}
            if since is None or document.created_at >= since
        )
        return nsmallest(limit, found, key=lambda record: (-record.created_at.timestamp(), record.path))

    def record(self, collection: str, origin: str, path: str, /) -> DocumentRecord | None:
        """Return the manifest's record of one path."""
        document = self.resource.documents.get((collection, path))
        if document is None or document.origin != origin:
            return None
        return self._record(collection, path)

    def select(self, collection: str, filters: Filters, /) -> ChunkSelection:
        """Return the chunks that pass the filters."""
        return KeySelection(_keys(key for key, chunk in self._chunks(collection) if _passes(chunk, filters)))

    def chunks(self, collection: str, keys: Sequence[int], /) -> Sequence[StoredChunk]:
        """Return the chunks of these keys in the order given."""
        held = self.resource.chunks.get(collection, {})
        found = (held.get(key) for key in keys)
        return tuple(chunk for chunk in found if chunk is not None)

    def chunk_ids(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the id of the chunk of each key."""
        return {stored.key: stored.chunk.chunk_id for stored in self.chunks(collection, keys)}

    def texts(self, collection: str, keys: Sequence[int], /) -> Mapping[int, str]:
        """Return the text of the chunk of each key."""
        return {stored.key: stored.chunk.text for stored in self.chunks(collection, keys)}

    def outline(self, collection: str, path: str, /) -> Sequence[StoredChunk]:
        """Return one document's chunks in order of position."""
        own = (chunk for _, chunk in self._chunks(collection) if chunk.path == path)
        return tuple(sorted(own, key=lambda stored: stored.chunk.start))

    def damaged(self, collection: str, path: str | None = None, /) -> Sequence[int]:
        """Return nothing: there are no files that could be damaged."""
        del collection, path
        return ()

    def find(self, collection: str, chunk_id: str, /) -> Sequence[StoredChunk]:
        """Return the chunks whose id begins with ``chunk_id``."""
        return tuple(chunk for _, chunk in self._chunks(collection) if chunk.chunk.chunk_id.startswith(chunk_id))

    def keys(self, collection: str, /) -> Keys:
        """Return every chunk's key, ascending."""
        return _keys(key for key, _ in self._chunks(collection))

    def key_digest(self, collection: str, /) -> KeyDigest:
        """Return the digest of the keys."""
        return KeyDigest.of(self.keys(collection))

    def count(self, collection: str, /) -> int:
        """Return the number of chunks."""
        return len(self.resource.chunks.get(collection, ()))

    def space(self, collection: str, /) -> SpaceRecord | None:
        """Return the vector space the collection was indexed in."""
        return self.resource.spaces.get(collection)

    def cached_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> Mapping[str, Vector]:
        """Return the cached vectors among these chunk hashes."""
        found = {digest: self.resource.vectors.get((space.identity, digest)) for digest in hashes}
        return {digest: vector for digest, vector in found.items() if vector is not None}

    def counts(self, collection: str, /) -> Mapping[str, tuple[int, int]]:
        """Return (documents, chunks) by origin."""
        owned = {path: document for (owner, path), document in self.resource.documents.items() if owner == collection}
        documents = Counter(document.origin for document in owned.values())
        chunks = Counter(owned[chunk.path].origin for _, chunk in self._chunks(collection))
        return {origin: (count, chunks[origin]) for origin, count in sorted(documents.items())}

    def _record(self, collection: str, path: str) -> DocumentRecord:
        document = self.resource.documents[collection, path]
        seen = self.resource.seen.get((collection, path), "")
        return DocumentRecord(path, document.origin, document.content_hash, document.created_at, seen)

    def _chunks(self, collection: str) -> Iterator[tuple[int, StoredChunk]]:
        return iter(self.resource.chunks.get(collection, {}).items())


@frozen
class MemoryTransaction(MemorySnapshot):
    """Changes to a copy of the tables."""

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
        tables, held = self.resource, self._open(collection)
        old = {stored.key: stored.chunk for stored in self.outline(collection, document.path)}
        before = tables.documents.get((collection, document.path))
        tables.documents[collection, document.path] = document
        tables.seen.pop((collection, document.path), None)
        is_relabelled = before is not None and ((before.title, before.metadata) != (document.title, document.metadata))
        ids = [(key, chunk.chunk_id) for key, chunk in old.items()]
        kept, new, removed = Replacement.compare(chunks, ids, lambda key, chunk: old[key].says_the_same(chunk))
        for key in removed:
            del held[key]
        keys = range(tables.next_key, tables.next_key + len(new))
        tables.next_key += len(new)
        staying, added = (
            tuple(_stored(key, document, chunk) for key, chunk in each) for each in (kept, zip(keys, new, strict=True))
        )
        held.update((stored.key, stored) for stored in (*staying, *added))
        renewed = staying if is_relabelled else ()
        return Replacement(removed, added, renewed, tuple(sorted(key for key, _ in kept)), record is None)

    def touch(self, collection: str, document: Document, /) -> None:
        """Update the date and labels of an unchanged document."""
        held = self._open(collection)
        self.resource.documents[collection, document.path] = document
        self.resource.seen.pop((collection, document.path), None)
        for stored in self.outline(collection, document.path):
            held[stored.key] = evolve(
                stored,
                source=document.source,
                created_at=stored.created_at if document.times else document.created_at,
                chat_id=document.chat_id,
                origin=document.origin,
                metadata=dict(document.metadata),
            )

    def replace_all(
        self,
        collection: str,
        documents: Sequence[tuple[Document, Sequence[Chunk]]],
        /,
        *,
        expected: Mapping[str, DocumentRecord] | None = None,
    ) -> Sequence[Replacement]:
        """Replace the chunks of several documents."""
        return [self.replace(collection, *each, expected=expected) for each in documents]

    def delete(self, collection: str, path: str, /) -> Sequence[int]:
        """Remove one document and its chunks; return their keys."""
        keys = sorted(stored.key for stored in self.outline(collection, path))
        self.resource.documents.pop((collection, path), None)
        self.resource.seen.pop((collection, path), None)
        for key in keys:
            del self.resource.chunks[collection][key]
        return keys

    def remember(self, collection: str, records: Sequence[DocumentRecord], /) -> None:
        """Store the ``seen`` of documents whose record is otherwise unchanged."""
        for record in records:
            if self.record(collection, record.origin, record.path) == record:
                self.resource.seen[collection, record.path] = record.seen

    def set_space(self, collection: str, record: SpaceRecord, /) -> None:
        """Record the vector space of the collection."""
        self._open(collection)
        self.resource.spaces[collection] = record

    def cache_vectors(self, space: VectorSpace, vectors: Mapping[str, Vector], /) -> None:
        """Put vectors in the embedding cache."""
        new = {(space.identity, digest): vector for digest, vector in vectors.items()}
        self.resource.vectors.update({key: vector for key, vector in new.items() if key not in self.resource.vectors})
        self.use_vectors(space, list(vectors))

    def retire_space(self, space: VectorSpace, /) -> None:
        """Change the revision of a space to ``replaced-…``, and remove its cached vectors."""
        tables = self.resource
        for collection, record in list(tables.spaces.items()):
            if record.space == space:
                retired = evolve(space, revision=f"replaced-{space.revision}")
                tables.spaces[collection] = evolve(record, space=retired)
        for entry in [entry for entry in tables.vectors if entry[0] == space.identity]:
            del tables.vectors[entry]

    def use_vectors(self, space: VectorSpace, hashes: Sequence[str], /) -> None:
        """Move these cached vectors to the end, so that they are removed last."""
        vectors = self.resource.vectors
        for entry in [(space.identity, digest) for digest in hashes]:
            if entry in vectors:
                vectors[entry] = vectors.pop(entry)

    def tend_cache(self, max_entries: int, /, *, found: int = 0, computed: int = 0) -> int:
        """Keep the ``max_entries`` most recently used vectors of the collections' spaces."""
        del found, computed  # statistics of a store that ends with the process are not needed
        spaces = {record.space.identity for record in self.resource.spaces.values()}
        held = [entry for entry in self.resource.vectors if entry[0] in spaces]
        gone = held[: max(len(held) - max_entries, 0)]
        for entry in gone:
            del self.resource.vectors[entry]
        return len(gone)

    def note_documents(self, space: VectorSpace, documents: Mapping[tuple[str, str], Sequence[str]], /) -> None:
        """Record which cached vectors were computed for which documents."""
        for place, hashes in documents.items():
            held = self.resource.noted.get(place, frozenset())
            self.resource.noted[place] = held | {(space.identity, digest) for digest in hashes}

    def forget_documents(self, collection: str, paths: Sequence[str], /) -> None:
        """Remove the cached vectors that were recorded for these documents."""
        for path in paths:
            for entry in self.resource.noted.pop((collection, path), frozenset()):
                self.resource.vectors.pop(entry, None)

    def forget_unused(self) -> None:
        """Remove the cached vectors of the collections' spaces whose text no chunk has."""
        self.resource.vectors = _used_vectors(self.resource, set())

    def forget_vectors(self, hashes: Sequence[str], /) -> None:
        """Remove these chunk hashes from the embedding cache, in every space."""
        gone = set(hashes)
        for entry in [entry for entry in self.resource.vectors if entry[1] in gone]:
            del self.resource.vectors[entry]

    def _open(self, collection: str) -> dict[int, StoredChunk]:
        """Return the collection's chunks; create the collection if it does not exist."""
        self.resource.collections.add(check_collection_name(collection))
        return self.resource.chunks.setdefault(collection, {})


def _stored(key: int, document: Document, chunk: Chunk) -> StoredChunk:
    created = chunk.created_at or document.created_at
    place = (document.path, document.source, created, document.chat_id, document.origin)
    return StoredChunk(key, chunk, *place, dict(document.metadata))


class MemoryStore:
    """Keeps everything in this process."""

    offers = Tables
    #: Each memory has its own store object with its own rows.
    isolates = True
    location = "memory"
    erases_later = ""

    def __init__(self) -> None:
        self._tables = Tables()
        self._indexes: dict[str, Index[Tables]] = {}
        self._writing = ThreadLock("the store in memory")
        self._locks: dict[str, ThreadLock] = {}

    def enlist(self, owner: str, index: Index[Tables], /) -> None:
        """Apply the index's migrations that are not applied yet."""
        index.prepare(self._tables)
        self._indexes[owner] = index
        with self.write() as transaction:
            tables = transaction.resource
            for migration in index.migrations():
                if (owner, migration.name) not in tables.migrations:
                    migration.apply(tables)
                    tables.migrations.add((owner, migration.name))

    @contextmanager
    def lock(self, name: str, /, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the lock of this name. Raise StoreError for an unknown name."""
        if not _LOCK_NAME.fullmatch(name):
            raise StoreError(f"invalid lock name: {quoted(name)}", hint="use a-z, 0-9 and hyphens")
        lock = self._locks.setdefault(name, ThreadLock(f"the lock {name!r}"))
        with lock.hold(on_wait=on_wait):
            yield

    def erasing_once(self) -> AbstractContextManager[None]:
        """Do nothing: nothing is left of what is removed."""
        return nullcontext()

    @contextmanager
    def read(self) -> Iterator[Snapshot[Tables]]:
        """Open a snapshot."""
        yield MemorySnapshot(self._tables)

    @contextmanager
    def write(self) -> Iterator[Transaction[Tables]]:
        """Begin a transaction; the tables are replaced at the end of the block."""
        with self._alone():
            tables = self._tables.copy()
            yield MemoryTransaction(tables)
            self._tables = tables

    @contextmanager
    def rebuild(self) -> Iterator[Store[Tables]]:
        """Yield an empty store that replaces this one at the end of the block."""
        with self._alone():
            fresh = MemoryStore()
            for owner, index in self._indexes.items():
                fresh.enlist(owner, index)
            fresh._tables.vectors.update(self._tables.vectors)
            fresh._tables.noted.update(self._tables.noted)
            fresh._locks = self._locks
            yield fresh
            fresh._tables.vectors = _used_vectors(
                fresh._tables, {record.space.identity for record in self._tables.spaces.values()}
            )
            self._tables = fresh._tables

    def _alone(self) -> Hold[None]:
        if self._writing.is_mine:
            raise StoreError("a transaction was started inside another one")
        return self._writing.hold()

    def tidy(self) -> None:
        """Do nothing: an interrupted rebuild leaves nothing."""

    def statistics(self) -> Mapping[str, int | str]:
        """Return nothing, because there is no file."""
        return {}

    def check(self, *, fix: bool = False) -> Sequence[Finding]:
        """Return nothing, because there is no file that could be damaged."""
        del fix
        return ()

    def close(self) -> None:
        """Do nothing: the tables are freed with the object."""


def _used_vectors(tables: Tables, left: Container[str]) -> dict[tuple[str, str], Vector]:
    """Return the cached vectors that some chunk uses, and those of spaces that an interrupted reindex was filling.

    ``left`` are the spaces that the collections were in before.
    """
    spaces = {record.space.identity for record in tables.spaces.values()}
    hashes = {stored.chunk.embedding_hash for chunks in tables.chunks.values() for stored in chunks.values()}
    return {
        entry: vector
        for entry, vector in tables.vectors.items()
        if (entry[1] in hashes if entry[0] in spaces else entry[0] not in left)
    }


def _keys(keys: Iterator[int]) -> Keys:
    return np.array(sorted(keys), dtype=np.int64)


def _passes(stored: StoredChunk, filters: Filters) -> bool:
    return (
        (filters.source is None or stored.source == filters.source)
        and (filters.path is None or stored.path.startswith(filters.path))
        and (filters.chat_id is None or stored.chat_id == filters.chat_id)
        and (filters.since is None or stored.created_at >= filters.since)
        and (filters.until is None or stored.created_at < filters.until)
        and all(condition.holds(stored.metadata) for condition in filters.metadata)
    )
