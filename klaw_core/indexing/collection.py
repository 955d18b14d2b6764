"""One collection of a store, kept in step: rows and words change together, vectors follow as they are computed.

Nothing is sent to an embedder to store a text. :meth:`Collection.replace` writes rows, words and the vectors that are
known already; :meth:`Collection.backfill` computes the others, one transaction a call.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import chain
from types import MappingProxyType
from typing import Any, ParamSpec, TypeAlias, TypeVar

from attrs import frozen

from klaw_core.embedding.abilities import model_name
from klaw_core.embedding.run import (
    SAME_MODEL,
    SAME_WEIGHTS,
    EmbeddingRun,
    ModelChangedError,
    agreement,
    embed_chunk_texts,
    gathered,
    make_space_record,
    require_same_space,
    stack,
)
from klaw_core.errors import RetryableStoreError, VectorSpaceError, isolated
from klaw_core.indexing.reconcile import compare_keys, count_lacking
from klaw_core.interfaces.components import Embedder
from klaw_core.interfaces.index import ErasingIndex, Index
from klaw_core.interfaces.store import BatchTransaction, RememberingTransaction, Snapshot, Store, Transaction
from klaw_core.values.documents import Document, DocumentRecord, Replacement
from klaw_core.values.text import Chunk, StoredChunk
from klaw_core.values.vectors import SpaceRecord, Vector, VectorSpace

# So many chunks are read, or written with their words, at once: enough that a commit costs nothing beside them, few
# enough that a crash costs little.
BATCH = 512

# So many chunks are read at once to be embedded, some megabytes: calls of them hold texts of similar length.
POOL = 1024

#: The documents of one origin as they are recorded, by path.
Manifest: TypeAlias = Mapping[str, DocumentRecord]

#: Given the number of chunks done and their total.
OnProgress = Callable[[int, int], None]


# How often a transaction is tried that another writer ended, with pauses that grow.
_ATTEMPTS = 8
_PAUSE_SECONDS = 0.01

P = ParamSpec("P")
T = TypeVar("T")


def retried(method: Callable[P, T]) -> Callable[P, T]:
    """Run a method that is one transaction again if another writer or a lost connection ended it."""

    @wraps(method)
    def whole(*args: P.args, **kwargs: P.kwargs) -> T:
        for attempt in range(_ATTEMPTS - 1):
            try:
                return method(*args, **kwargs)
            except RetryableStoreError:
                time.sleep(random.uniform(0, _PAUSE_SECONDS * 2**attempt))  # noqa: S311  # two writers must not meet again
        return method(*args, **kwargs)

    return whole


@frozen
class WriteResult:
    """What a transaction left: the keys of new chunks that lack a vector. ``cached`` vectors were known already.

    ``kept`` are the keys of chunks that were there before; another run may not have embedded them yet.
    ``refused`` are the paths of documents that another run has written meanwhile: they are as that run left them.
    ``new`` documents were not there before.
    """

    lacking: tuple[int, ...] = ()
    cached: int = 0
    refused: frozenset[str] = frozenset()
    new: int = 0
    kept: tuple[int, ...] = ()


@frozen
class Collection:
    """The rows of one collection and the enlisted indexes over them, by name.

    The embedder is asked for vectors only if an index needs them.
    """

    store: Store[Any]
    embedder: Embedder
    indexes: Sequence[tuple[str, Index[Any]]]
    name: str = "memory"

    @contextmanager
    def _write(self) -> Iterator[Transaction[Any]]:
        """Begin a transaction. What an index raises in it ends it, and is raised as a PluginError."""
        with isolated(f"the store or an index of {self.name!r}"), self.store.write() as transaction:
            yield transaction

    @contextmanager
    def _read(self) -> Iterator[Snapshot[Any]]:
        """Open a snapshot; for what an index raises while it is read, see :meth:`_write`."""
        with isolated(f"the store or an index of {self.name!r}"), self.store.read() as snapshot:
            yield snapshot

    @property
    def uses_vectors(self) -> bool:
        """Whether any index needs vectors."""
        return any(index.needs_vectors for _, index in self.indexes)

    def record(self) -> SpaceRecord | None:
        """Return the vector space that the collection is in, None if there is none yet."""
        with self._read() as snapshot:
            return snapshot.space(self.name)

    def counted_by(self) -> str:
        """Return whose tokens its chunks are measured in: the model of its space, or that of the first to come.

        Not the embedder's at the moment: one that serves in the same space, or is configured and has not moved the
        collection to its own space yet, is no reason to cut everything anew. Raise EmbeddingError if it cannot say.
        """
        record = self.record()
        if record is not None:
            return record.space.model
        # A server may stall, and words come first.
        return model_name(self.embedder) or self.embedder.space.model

    @retried
    def prepare_space(self) -> SpaceRecord:
        """Record the embedder's vector space if there is none yet; refuse another.

        Raise VectorSpaceError, EmbeddingError.
        """
        record = self.record()
        if record is None:
            wanted = make_space_record(self.embedder)
            with self._write() as transaction:
                record = transaction.space(self.name)  # another process may have begun meanwhile
                if record is None:
                    record = wanted
                    _retire_other_weights(transaction, wanted)
                    self._begin_space(transaction, wanted)
        require_same_space(record, self.embedder.space, self.name)
        return record

    @retried
    def adopt_space(self, wanted: SpaceRecord) -> None:
        """Make the index one of this vector space; if it was of another, empty, for :meth:`backfill` to fill."""
        with self._write() as transaction:
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
        with self._read() as snapshot:
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
    ) -> WriteResult:
        """Make these the chunks of these documents, in one transaction.

        Words find them at once. A chunk whose vector is not cached is left to :meth:`embed` or :meth:`backfill`.
        With the ``manifest`` that the caller saw before it read them, a document that another run has written since
        is refused: its text may be the newer one. ``seen`` is what is to be remembered of documents, by path.
        """
        removed: list[int] = []
        added: list[StoredChunk] = []
        kept: list[int] = []
        refused: set[str] = set()
        new = 0
        with self._write() as transaction:
            record = transaction.space(self.name) if self.uses_vectors else None
            for (document, _), change in zip(
                documents, _replaced(transaction, self.name, documents, manifest), strict=True
            ):
                if change.refused:
                    refused.add(document.path)
                    continue
                new += change.is_new
                removed += (*change.removed, *(stored.key for stored in change.renewed))
                added += (*change.added, *change.renewed)
                kept += change.kept
            written = (document for document, _ in documents if document.path in seen and document.path not in refused)
            _remember(transaction, self.name, [_record(document, seen[document.path]) for document in written])
            vectors = _cached(transaction, record, added)
            for _, index in self.indexes:  # once for all documents: an index has a price for each call
                if removed:
                    index.remove(transaction.resource, self.name, removed)
                self._add(transaction, index, added, vectors)
        lacking = tuple(stored.key for stored in added if stored.chunk.embedding_hash not in vectors)
        return WriteResult(lacking, len(vectors), frozenset(refused), new, tuple(kept))

    @retried
    def remember(self, records: Sequence[DocumentRecord]) -> None:
        """Note the ``seen`` of documents that are recorded so still. Raise StoreError."""
        if records:
            with self._write() as transaction:
                _remember(transaction, self.name, records)

    @retried
    def touch(
        self, documents: Sequence[Document], manifest: Manifest, seen: Mapping[str, str] = MappingProxyType({})
    ) -> frozenset[str]:
        """Give unchanged documents their dates and labels; return which are refused, as in :meth:`replace`."""
        with self._write() as transaction:
            refused = {
                document.path
                for document in documents
                if self._overtaken(transaction, document.origin, document.path, manifest)
            }
            kept = [document for document in documents if document.path not in refused]
            for document in kept:
                transaction.touch(self.name, document)
            noted = [_record(document, seen[document.path]) for document in kept if document.path in seen]
            _remember(transaction, self.name, noted)
        return frozenset(refused)

    def _overtaken(self, transaction: Transaction[Any], origin: str, path: str, manifest: Manifest) -> bool:
        """Return whether a document is recorded otherwise now than in the manifest that was seen."""
        return transaction.record(self.name, origin, path) != manifest.get(path)

    @retried
    def remove(self, paths: Sequence[str], *, forget: bool = False, manifest: Manifest | None = None) -> int:
        """Remove documents from the rows and every index, in one transaction; return how many chunks went.

        With ``forget`` their vectors leave the embedding cache as well, and their words the pages of the indexes.
        With a ``manifest`` those stay that another run has written since, as in :meth:`replace`.
        """
        removed: list[int] = []
        damaged = False
        with self._write() as transaction:
            if forget:  # first: a store that lets writers work side by side waits for those that may write them now
                transaction.forget_documents(self.name, paths)
            for path in paths:
                if manifest is not None and self._overtaken(transaction, manifest[path].origin, path, manifest):
                    continue
                hashes = {stored.chunk.embedding_hash for stored in transaction.outline(self.name, path)}
                damaged = damaged or (forget and bool(transaction.damaged(self.name, path)))
                removed += transaction.delete(self.name, path)
                if forget:
                    transaction.forget_vectors(sorted(hashes))
            if damaged:  # a damaged row does not tell what its vector is cached under
                transaction.forget_unused()
            for _, index in self.indexes:
                index.remove(transaction.resource, self.name, removed)
                if forget and isinstance(index, ErasingIndex):
                    index.erase(transaction.resource, self.name)
        return len(removed)

    @retried
    def forget_cached(self, paths: Sequence[str]) -> None:
        """Remove the vectors that a run which makes an index in another space has cached for these documents."""
        with self._write() as transaction:
            transaction.forget_documents(self.name, paths)

    def backfill(
        self, run: EmbeddingRun, on_progress: OnProgress = lambda _done, _total: None, *, limit: int | None = None
    ) -> int:
        """Give every index exactly the chunks there are, in order of key; embed at most ``limit``.

        Idempotent and safe to stop: what a crash or a failed embedding left out, the next call adds; what was
        removed while an index was switched off goes from it now. Where the embedder fails, ``run`` says why, and
        the chunks are left without a vector. Return how many are.
        """
        lacking = 0
        with self._read() as snapshot:
            indexes = [index for _, index in self.indexes]
            found = compare_keys(snapshot, self.name, indexes, run.waiting.pop(self.name, ()))
        for index, missing, stale in found:
            if stale:
                self._remove_stale(index, stale)
            if index.needs_vectors:
                done = self._embed_missing(index, missing[:limit], run, on_progress)
                lacking = max(lacking, len(missing) - done)
                continue
            for first in range(0, len(missing), BATCH):
                self._add_missing(index, missing[first : first + BATCH])
        return self.lacking() if lacking else 0

    @retried
    def _remove_stale(self, index: Index[Any], stale: Sequence[int]) -> None:
        with self._write() as transaction:
            index.remove(transaction.resource, self.name, stale)

    @retried
    def _add_missing(self, index: Index[Any], missing: Sequence[int]) -> None:
        with self._write() as transaction:
            self._put(transaction, index, transaction.chunks(self.name, missing), {})

    def embed(self, keys: Sequence[int], run: EmbeddingRun) -> None:
        """Give these chunks their vectors; where the embedder fails, ``run`` says why."""
        for _, index in self.indexes:
            if index.needs_vectors:
                self._embed_missing(index, keys, run, lambda _done, _total: None)

    def lacking(self) -> int:
        """Return how many chunks are without a vector that they should have."""
        with self._read() as snapshot:
            return count_lacking(snapshot, self.name, [index for _, index in self.indexes if index.needs_vectors])

    def lacking_of(self, written: WriteResult) -> Sequence[int]:
        """Return the keys of what was written, or kept, that lack a vector.

        Another run may have written the same documents a moment ago, and may die before it has embedded them.
        """
        if not written.kept:
            return written.lacking
        indexes = [index for _, index in self.indexes if index.needs_vectors]
        with self._read() as snapshot:
            found = compare_keys(snapshot, self.name, indexes, written.lacking)
        missing = {key for _, keys, _ in found for key in keys}
        return sorted(missing.intersection(written.kept).union(written.lacking))

    def cache(
        self,
        documents: Mapping[str, Sequence[Chunk]],
        run: EmbeddingRun,
        record: SpaceRecord,
        on_progress: OnProgress = lambda _done, _total: None,
        *,
        gone: Callable[[Sequence[str]], Container[str]] = lambda _paths: (),
    ) -> None:
        """Put the vectors of these documents' chunks, in the space of ``record``, into the cache, and nowhere else.

        ``documents`` are chunks by path. ``gone`` tells which of them are not what was read any more: it is asked in
        the transaction, so that what was forgotten meanwhile is kept nowhere, and what is forgotten later finds it.
        ``on_progress`` counts texts, those that were cached among them. For what is committed when, see
        :func:`~klaw_core.embedding.run.gathered`.
        """
        space = record.space
        hashes = {path: [chunk.embedding_hash for chunk in chunks] for path, chunks in documents.items()}
        passages = {chunk.embedding_hash: chunk.embedding_text for chunks in documents.values() for chunk in chunks}
        with self._read() as snapshot:
            known = snapshot.cached_vectors(space, list(passages))
        run.cached += len(known)
        done = len(known)
        missing = {digest: text for digest, text in passages.items() if digest not in known}
        on_progress(done, len(passages))
        for part in gathered(embed_chunk_texts(missing, self.embedder, run, record), self.embedder):
            self._cache_part(space, part, hashes, gone)
            done += len(part)
            on_progress(done, len(passages))

    @retried
    def _cache_part(
        self,
        space: VectorSpace,
        part: Mapping[str, Vector],
        hashes: Mapping[str, Sequence[str]],
        gone: Callable[[Sequence[str]], Container[str]],
    ) -> None:
        with self._write() as transaction:
            left = gone(list(hashes))
            there = {path: digests for path, digests in hashes.items() if path not in left}
            wanted = {digest for digests in there.values() for digest in digests}
            transaction.cache_vectors(space, {digest: row for digest, row in part.items() if digest in wanted})
            noted = {(self.name, path): [one for one in digests if one in part] for path, digests in there.items()}
            transaction.note_documents(space, noted)

    def _embed_missing(self, index: Index[Any], missing: Sequence[int], run: EmbeddingRun, report: OnProgress) -> int:
        """Compute the vectors that one index lacks, as long as the embedder answers; return how many it now has."""
        done = 0
        if run.stopped:
            return done
        report(done, len(missing))
        try:
            if not missing and self.record() is None:
                return done
            record = self.prepare_space()
            size = max(POOL, run.call_size(self.embedder))
        except VectorSpaceError as error:  # of this collection: the next may be in the embedder's space
            run.error = error
            return done
        except Exception as error:  # noqa: BLE001  # an embedder may raise anything
            if missing:  # where nothing is, it need not work now
                run.fail(error)
                run.stopped = True
            return done
        for first in range(0, len(missing), size):  # also after a failure: what is cached needs no embedder
            for count in self._embed_keys(index, missing[first : first + size], record, run):
                done += count
                report(done, len(missing))
        if isinstance(run.error, ModelChangedError):
            self._retire(record)
        return done

    def _embed_keys(
        self, index: Index[Any], keys: Sequence[int], record: SpaceRecord, run: EmbeddingRun
    ) -> Iterator[int]:
        """Add the vectors of these chunks to an index; yield how many after each transaction.

        No transaction is open while the embedder works. What is committed, to the cache and to the index, before
        it goes on, says :func:`~klaw_core.embedding.run.gathered`.
        """
        with self._read() as snapshot:
            chunks: dict[str, list[StoredChunk]] = {}
            for stored in snapshot.chunks(self.name, keys):
                chunks.setdefault(stored.chunk.embedding_hash, []).append(stored)
            known = snapshot.cached_vectors(record.space, list(chunks))
        run.cached += len(known)
        missing = {digest: group[0].chunk.embedding_text for digest, group in chunks.items() if digest not in known}
        answers = gathered(embed_chunk_texts(missing, self.embedder, run, record), self.embedder)
        for vectors in chain([known] if known else [], answers):
            group = [stored for digest in vectors for stored in chunks[digest]]
            try:
                self._keep(index, group, vectors, record.space, new=vectors is not known)
            except VectorSpaceError as error:
                run.fail(error)
                return
            yield len(group)

    @retried
    def _keep(
        self,
        index: Index[Any],
        chunks: Sequence[StoredChunk],
        vectors: Mapping[str, Vector],
        space: VectorSpace,
        *,
        new: bool,
    ) -> None:
        """Write vectors to the cache, if they are new, and to an index.

        What was forgotten meanwhile is kept nowhere. Raise VectorSpaceError, and leave the index as it is, if it has
        moved to another space meanwhile.
        """
        with self._write() as transaction:
            # Not by key alone: a rebuild that has replaced everything meanwhile gives keys anew.
            ids = transaction.chunk_ids(self.name, [stored.key for stored in chunks])
            chunks = [stored for stored in chunks if ids.get(stored.key) == stored.chunk.chunk_id]
            if new:
                there = {stored.chunk.embedding_hash for stored in chunks}
                transaction.cache_vectors(space, {digest: row for digest, row in vectors.items() if digest in there})
            else:
                transaction.use_vectors(space, list(vectors))
            record = transaction.space(self.name)
            moved = record is None or record.space != space
            if not moved:
                self._put(transaction, index, chunks, vectors)
        if moved and record is not None:
            require_same_space(record, space, self.name)

    @retried
    def _retire(self, record: SpaceRecord) -> None:
        """Mark vectors of weights that are gone, so that none is compared with one of the weights that are there.

        Those of an index that another process has made anew meanwhile, with the new weights, stay.
        """
        with self._write() as transaction:
            now = transaction.space(self.name)
            if now is not None and now.space == record.space and agreement(now.probe, record.probe) >= SAME_WEIGHTS:
                transaction.retire_space(record.space)

    def _put(
        self,
        transaction: Transaction[Any],
        index: Index[Any],
        chunks: Sequence[StoredChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        """Add chunks that the transaction holds to an index, though another process may have added some meanwhile."""
        index.remove(transaction.resource, self.name, [stored.key for stored in chunks])
        self._add(transaction, index, chunks, vectors)

    def _add(
        self,
        transaction: Transaction[Any],
        index: Index[Any],
        chunks: Sequence[StoredChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        """Add chunks to one index; those without a vector, where one is needed, are left out."""
        if not index.needs_vectors:
            if chunks:
                index.add(transaction.resource, self.name, chunks, None)
            return
        embedded = [stored for stored in chunks if stored.chunk.embedding_hash in vectors]
        if embedded:
            matrix = stack([stored.chunk.embedding_hash for stored in embedded], vectors)
            index.add(transaction.resource, self.name, embedded, matrix)


def _replaced(
    transaction: Transaction[Any],
    collection: str,
    documents: Sequence[tuple[Document, Sequence[Chunk]]],
    expected: Manifest | None,
) -> Sequence[Replacement]:
    if isinstance(transaction, BatchTransaction):
        return transaction.replace_all(collection, documents, expected=expected)
    return [transaction.replace(collection, *each, expected=expected) for each in documents]


def _remember(transaction: Transaction[Any], collection: str, records: Sequence[DocumentRecord]) -> None:
    if records and isinstance(transaction, RememberingTransaction):
        transaction.remember(collection, records)


def _record(document: Document, seen: str) -> DocumentRecord:
    return DocumentRecord(document.path, document.origin, document.content_hash, document.created_at, seen)


def _retire_other_weights(transaction: Transaction[Any], now: SpaceRecord) -> None:
    """Where the model of another collection has changed under its name, let none of its vectors be taken for one's."""
    records = [record for record in map(transaction.space, transaction.collections()) if record is not None]
    if any(old.space == now.space and agreement(old.probe, now.probe) < SAME_MODEL for old in records):
        transaction.retire_space(now.space)


def _cached(
    transaction: Transaction[Any], record: SpaceRecord | None, chunks: Sequence[StoredChunk]
) -> Mapping[str, Vector]:
    """Return the vectors of these chunks that the cache has, and note that they were of use."""
    hashes = list({stored.chunk.embedding_hash for stored in chunks})
    if record is None or not hashes:
        return {}
    vectors = transaction.cached_vectors(record.space, hashes)
    transaction.use_vectors(record.space, list(vectors))
    return vectors
