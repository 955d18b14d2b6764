"""The rows of one collection, and its indexes.

Rows and words change in one transaction. Storing a text needs no embedder: :meth:`Collection.replace` writes rows,
words and cached vectors, and :mod:`klaw_core.indexing.backfill` computes the other vectors afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import frozen

from klaw_core.embedding.abilities import model_name
from klaw_core.embedding.run import SAME_MODEL, agreement, make_space_record, require_same_space, stack
from klaw_core.errors import isolated
from klaw_core.indexing.reconcile import compare_keys, count_lacking
from klaw_core.indexing.retrying import retried
from klaw_core.interfaces.components import Embedder
from klaw_core.interfaces.index import Index
from klaw_core.interfaces.store import Snapshot, Store, Transaction
from klaw_core.values.documents import Document, DocumentRecord
from klaw_core.values.text import Chunk, StoredChunk
from klaw_core.values.vectors import SpaceRecord, Vector

#: Chunks per transaction: large enough that the commit is cheap in comparison, small enough that a crash costs little.
BATCH = 512

#: The documents of one origin as they are recorded, by path.
Manifest: TypeAlias = Mapping[str, DocumentRecord]


@frozen
class WriteResult:
    """The outcome of :meth:`Collection.replace`.

    ``lacking`` are the keys of new chunks without a vector; ``cached`` counts vectors that came from the cache.
    ``kept`` are the keys of chunks that existed before; another run may not have embedded them yet.
    ``refused`` are the paths of documents that another run has written in the meantime; they were not changed.
    ``new`` counts documents that did not exist before.
    """

    lacking: tuple[int, ...] = ()
    cached: int = 0
    refused: frozenset[str] = frozenset()
    new: int = 0
    kept: tuple[int, ...] = ()


@frozen
class Removal:
    """The outcome of :meth:`Collection.remove`: the paths of the documents that are gone, and the number of chunks."""

    paths: tuple[str, ...]
    chunks: int


@frozen
class Collection:
    """The rows of one collection, and its indexes by name."""

    store: Store[Any]
    embedder: Embedder
    indexes: Sequence[tuple[str, Index[Any]]]
    name: str = "memory"

    @contextmanager
    def write(self) -> Iterator[Transaction[Any]]:
        """Open a transaction. If an index raises, the transaction is rolled back; raise PluginError."""
        with isolated(f"the store or an index of {self.name!r}"), self.store.write() as transaction:
            yield transaction

    @contextmanager
    def read(self) -> Iterator[Snapshot[Any]]:
        """Open a snapshot. Raise PluginError if an index raises."""
        with isolated(f"the store or an index of {self.name!r}"), self.store.read() as snapshot:
            yield snapshot

    @property
    def uses_vectors(self) -> bool:
        """Whether any index needs vectors."""
        return any(index.needs_vectors for _, index in self.indexes)

    def record(self) -> SpaceRecord | None:
        """Return the vector space of the collection; None if it has none yet."""
        with self.read() as snapshot:
            return snapshot.space(self.name)

    def counted_by(self) -> str:
        """Return the model whose tokens measure the chunks: that of the vector space, or the embedder's if none exists.

        Another embedder in the same space, or a newly configured one before the reindex, is no reason to split every
        document again. Raise EmbeddingError if the embedder cannot name its model.
        """
        record = self.record()
        if record is not None:
            return record.space.model
        # Prefer the configured name: a server may stall, and words must be written first.
        return model_name(self.embedder) or self.embedder.space.model

    @retried
    def prepare_space(self) -> SpaceRecord:
        """Return the vector space of the collection; record the embedder's if it has none.

        Raise VectorSpaceError if the embedder is in another space, EmbeddingError if it fails.
        """
        record = self.record()
        if record is None:
            wanted = make_space_record(self.embedder)
            with self.write() as transaction:
                record = transaction.space(self.name)  # another process may have recorded one
                if record is None:
                    record = wanted
                    _retire_other_weights(transaction, wanted)
                    self._begin_space(transaction, wanted)
        require_same_space(record, self.embedder.space, self.name)
        return record

    @retried
    def adopt_space(self, wanted: SpaceRecord) -> None:
        """Move the collection to this vector space. If it was in another one, empty the indexes of vectors."""
        with self.write() as transaction:
            record = transaction.space(self.name)
            if record is None or record.space != wanted.space:
                self._begin_space(transaction, wanted)

    def _begin_space(self, transaction: Transaction[Any], wanted: SpaceRecord) -> None:
        transaction.set_space(self.name, wanted)
        for _, index in self.indexes:
            if index.needs_vectors:
                index.reset(transaction.resource, self.name, wanted.space)

    def keep_origins(self, origins: Container[str]) -> None:
        """Remove the documents of every other origin."""
        with self.read() as snapshot:
            gone = [
                path
                for origin in snapshot.counts(self.name)
                if origin not in origins
                for path in snapshot.manifest(self.name, origin)
            ]
        if gone:
            self.remove(gone)

    @retried
    def replace(
        self,
        documents: Sequence[tuple[Document, Sequence[Chunk]]],
        manifest: Manifest | None = None,
        seen: Mapping[str, str] = MappingProxyType({}),
        *,
        changed: Callable[[Sequence[str]], Sequence[str]] = lambda _paths: (),
        forget: bool = False,
    ) -> WriteResult:
        """Replace the chunks of these documents, in one transaction.

        Afterwards they are found by words. A chunk whose vector is not cached gets it from
        :class:`~klaw_core.indexing.backfill.Backfill`. ``manifest`` is the manifest before the caller read the
        documents: a document that another run has written since then is refused, because its text may be newer.
        ``seen`` maps paths to the fingerprints to remember. ``changed`` returns which of the paths are refused because
        their text is no longer current; it is called in the transaction. ``forget`` removes the vectors of replaced
        chunks from the embedding cache as well, and their words from the pages of the indexes.
        """
        removed: list[int] = []
        added: list[StoredChunk] = []
        kept: list[int] = []
        new = 0
        paths = [document.path for document, _ in documents]
        with self.write() as transaction, _forgetting(transaction, self.name, paths) if forget else nullcontext():
            refused = set(changed(paths))
            documents = [each for each in documents if each[0].path not in refused]
            record = transaction.space(self.name) if self.uses_vectors else None
            changes = transaction.replace_all(self.name, documents, expected=manifest)
            for (document, _), change in zip(documents, changes, strict=True):
                if change.refused:
                    refused.add(document.path)
                    continue
                new += change.is_new
                removed += (*change.removed, *(stored.key for stored in change.renewed))
                added += (*change.added, *change.renewed)
                kept += change.kept
            written = (document for document, _ in documents if document.path in seen and document.path not in refused)
            if noted := [_record(document, seen[document.path]) for document in written]:
                transaction.remember(self.name, noted)
            vectors = _cached(transaction, record, added)
            for _, index in self.indexes:  # one call for all documents, because each call has a fixed cost
                if removed:
                    index.remove(transaction.resource, self.name, removed)
                if forget:
                    index.erase(transaction.resource, self.name)
                self._add(transaction, index, added, vectors)
        lacking = tuple(stored.key for stored in added if stored.chunk.embedding_hash not in vectors)
        return WriteResult(lacking, len(vectors), frozenset(refused), new, tuple(kept))

    @retried
    def remember(self, records: Sequence[DocumentRecord]) -> None:
        """Store the fingerprint (``seen``) of each document whose record is otherwise unchanged. Raise StoreError."""
        if records:
            with self.write() as transaction:
                transaction.remember(self.name, records)

    @retried
    def touch(
        self, documents: Sequence[Document], manifest: Manifest, seen: Mapping[str, str] = MappingProxyType({})
    ) -> frozenset[str]:
        """Update dates and labels of unchanged documents; return the refused paths, as in :meth:`replace`."""
        with self.write() as transaction:
            refused = {
                document.path
                for document in documents
                if transaction.record(self.name, document.origin, document.path) != manifest.get(document.path)
            }
            kept = [document for document in documents if document.path not in refused]
            for document in kept:
                transaction.touch(self.name, document)
            if noted := [_record(document, seen[document.path]) for document in kept if document.path in seen]:
                transaction.remember(self.name, noted)
        return frozenset(refused)

    @retried
    def remove(
        self,
        paths: Sequence[str],
        *,
        forget: bool = False,
        manifest: Manifest | None = None,
        only: Callable[[Sequence[str]], Sequence[str]] = lambda paths: paths,
    ) -> Removal:
        """Remove documents from the rows and from every index, in one transaction.

        ``forget`` also removes their vectors from the embedding cache, and their words from the pages of the indexes.
        Documents that another run has written since ``manifest`` stay, as in :meth:`replace`. ``only`` returns which of
        the paths to remove; it is called in the transaction, when no other writer can change these documents.
        """
        gone: list[str] = []
        removed: list[int] = []
        damaged = False
        with self.write() as transaction:
            if forget:  # first, because a store with several writers waits here for those that write these documents
                transaction.forget_documents(self.name, paths)
            for path in only(paths):
                if manifest is not None:
                    record = transaction.record(self.name, manifest[path].origin, path)
                    if record is not None and record != manifest[path]:
                        continue
                gone.append(path)
                hashes = {stored.chunk.embedding_hash for stored in transaction.outline(self.name, path)}
                damaged = damaged or (forget and bool(transaction.damaged(self.name, path)))
                removed += transaction.delete(self.name, path)
                if forget:
                    transaction.forget_vectors(sorted(hashes))
            if damaged:  # the hash in a damaged row is unreliable, so its vector cannot be looked up
                transaction.forget_unused()
            for _, index in self.indexes:
                index.remove(transaction.resource, self.name, removed)
                if forget:
                    index.erase(transaction.resource, self.name)
        return Removal(tuple(gone), len(removed))

    @retried
    def forget_cached(self, paths: Sequence[str]) -> None:
        """Remove the vectors that a reindex into another space has cached for these documents."""
        with self.write() as transaction:
            transaction.forget_documents(self.name, paths)

    def lacking(self) -> int:
        """Return how many chunks lack a vector."""
        with self.read() as snapshot:
            return count_lacking(snapshot, self.name, [index for _, index in self.indexes if index.needs_vectors])

    def lacking_of(self, written: WriteResult) -> Sequence[int]:
        """Return the keys of the written and kept chunks that lack a vector.

        Kept chunks are included because another run may have written them a moment ago and been killed since.
        """
        if not written.kept:
            return written.lacking
        indexes = [index for _, index in self.indexes if index.needs_vectors]
        with self.read() as snapshot:
            found = compare_keys(snapshot, self.name, indexes, written.lacking)
        missing = {key for _, keys, _ in found for key in keys}
        return sorted(missing.intersection(written.kept).union(written.lacking))

    def put(
        self,
        transaction: Transaction[Any],
        index: Index[Any],
        chunks: Sequence[StoredChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        """Add stored chunks to an index, and replace those that another process has added in the meantime."""
        index.remove(transaction.resource, self.name, [stored.key for stored in chunks])
        self._add(transaction, index, chunks, vectors)

    def _add(
        self,
        transaction: Transaction[Any],
        index: Index[Any],
        chunks: Sequence[StoredChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        """Add chunks to one index. An index of vectors gets only chunks that have one."""
        if not index.needs_vectors:
            if chunks:
                index.add(transaction.resource, self.name, chunks, None)
            return
        embedded = [stored for stored in chunks if stored.chunk.embedding_hash in vectors]
        if embedded:
            matrix = stack([stored.chunk.embedding_hash for stored in embedded], vectors)
            index.add(transaction.resource, self.name, embedded, matrix)


@contextmanager
def _forgetting(transaction: Transaction[Any], collection: str, paths: Sequence[str]) -> Iterator[None]:
    """Remove the cached vectors of the chunks that these documents have before the block, but not after it."""
    transaction.forget_documents(collection, paths)  # first, for the same reason as in ``Collection.remove``
    before = _hashes(transaction, collection, paths)
    damaged = any(transaction.damaged(collection, path) for path in paths)
    yield
    transaction.forget_vectors(sorted(before - _hashes(transaction, collection, paths)))
    if damaged:  # for the same reason as in ``Collection.remove``
        transaction.forget_unused()


def _hashes(transaction: Transaction[Any], collection: str, paths: Sequence[str]) -> set[str]:
    return {stored.chunk.embedding_hash for path in paths for stored in transaction.outline(collection, path)}


def _record(document: Document, seen: str) -> DocumentRecord:
    return DocumentRecord(document.path, document.origin, document.content_hash, document.created_at, seen)


def _retire_other_weights(transaction: Transaction[Any], now: SpaceRecord) -> None:
    """Retire the cached vectors of this space if another collection has them from different weights."""
    records = [record for record in map(transaction.space, transaction.collections()) if record is not None]
    if any(old.space == now.space and agreement(old.probe, now.probe) < SAME_MODEL for old in records):
        transaction.retire_space(now.space)


def _cached(
    transaction: Transaction[Any], record: SpaceRecord | None, chunks: Sequence[StoredChunk]
) -> Mapping[str, Vector]:
    """Return the cached vectors of these chunks by hash, and update their time of use."""
    hashes = list({stored.chunk.embedding_hash for stored in chunks})
    if record is None or not hashes:
        return {}
    vectors = transaction.cached_vectors(record.space, hashes)
    transaction.use_vectors(record.space, list(vectors))
    return vectors
