"""One collection of a store, kept in step: rows and words change together, vectors follow as they are computed.

Nothing is sent to an embedder to store a text. :meth:`Collection.replace` writes rows, words and the vectors that are
known already; :meth:`Collection.backfill` computes the others, one transaction a call.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from attrs import frozen

from klaw_core.embedding import (
    SAME_WEIGHTS,
    EmbeddingRun,
    ModelChangedError,
    agreement,
    embed_passages,
    make_space_record,
    require_same_space,
    stack,
)
from klaw_core.errors import VectorSpaceError, contained
from klaw_core.interfaces import Embedder, ErasingIndex, Index, Snapshot, Store, Transaction
from klaw_core.values import Chunk, Document, SpaceRecord, StoredChunk, Vector, VectorSpace

# So many chunks are read, or written with their words, at once: enough that a commit costs nothing beside them, few
# enough that a crash costs little.
BATCH = 256

#: Given the number of chunks done and their total.
OnProgress = Callable[[int, int], None]


@frozen
class Written:
    """What a transaction left: the keys of chunks that lack a vector. ``cached`` vectors were known already."""

    lacking: tuple[int, ...] = ()
    cached: int = 0


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
        with contained(f"the store or an index of {self.name!r}"), self.store.write() as transaction:
            yield transaction

    @contextmanager
    def _read(self) -> Iterator[Snapshot[Any]]:
        """Open a snapshot; for what an index raises while it is read, see :meth:`_write`."""
        with contained(f"the store or an index of {self.name!r}"), self.store.read() as snapshot:
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
        return (self.embedder.space if record is None else record.space).model

    def prepare_space(self) -> SpaceRecord:
        """Record the embedder's vector space if there is none yet; refuse another.

        Raise VectorSpaceError, EmbeddingError.
        """
        record = self.record()
        if record is None:
            record = make_space_record(self.embedder)
            self.adopt_space(record)
        require_same_space(record, self.embedder.space, self.name)
        return record

    def adopt_space(self, wanted: SpaceRecord) -> None:
        """Make the index one of this vector space; if it was of another, empty, for :meth:`backfill` to fill."""
        record = self.record()
        if record is not None and record.space == wanted.space:
            return
        with self._write() as transaction:
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

    def replace(self, documents: Sequence[tuple[Document, Sequence[Chunk]]]) -> Written:
        """Make these the chunks of these documents, in one transaction.

        Words find them at once. A chunk whose vector is not cached is left to :meth:`embed` or :meth:`backfill`.
        """
        lacking: list[int] = []
        cached = 0
        with self._write() as transaction:
            record = transaction.space(self.name) if self.uses_vectors else None
            for document, chunks in documents:
                change = transaction.replace(self.name, document, chunks)
                vectors = _cached(transaction, record, change.added)
                cached += len(vectors)
                lacking += [stored.key for stored in change.added if stored.chunk.passage_hash not in vectors]
                for _, index in self.indexes:
                    index.remove(transaction.resource, self.name, change.removed)
                    self._add(transaction, index, change.added, vectors)
        return Written(tuple(lacking), cached)

    def remove(self, paths: Sequence[str], *, forget: bool = False) -> int:
        """Remove documents from the rows and every index, in one transaction; return how many chunks went.

        With ``forget`` their vectors leave the embedding cache as well, and their words the pages of the indexes.
        """
        removed = 0
        with self._write() as transaction:
            for path in paths:
                hashes = {stored.chunk.passage_hash for stored in transaction.outline(self.name, path)}
                keys = transaction.delete(self.name, path)
                for _, index in self.indexes:
                    index.remove(transaction.resource, self.name, keys)
                if forget:
                    transaction.forget_vectors(sorted(hashes))
                removed += len(keys)
            if forget:
                for _, index in self.indexes:
                    if isinstance(index, ErasingIndex):
                        index.erase(transaction.resource, self.name)
        return removed

    def backfill(
        self, run: EmbeddingRun, on_progress: OnProgress = lambda _done, _total: None, *, limit: int | None = None
    ) -> None:
        """Give every index exactly the chunks there are, in order of key; embed at most ``limit``.

        Idempotent and safe to stop: what a crash or a failed embedding left out, the next call adds; what was
        removed while an index was switched off goes from it now. Where the embedder fails, ``run`` says why, and
        the chunks are left without a vector.
        """
        for _, index in self.indexes:
            missing, stale = self._differences(index)
            if stale:
                with self._write() as transaction:
                    index.remove(transaction.resource, self.name, stale)
            if index.needs_vectors:
                self._embed_missing(index, missing[:limit], run, on_progress)
                continue
            for first in range(0, len(missing), BATCH):
                with self._write() as transaction:
                    self._put(transaction, index, transaction.chunks(self.name, missing[first : first + BATCH]), {})

    def embed(self, keys: Sequence[int], run: EmbeddingRun) -> None:
        """Give these chunks their vectors; where the embedder fails, ``run`` says why."""
        for _, index in self.indexes:
            if index.needs_vectors:
                self._embed_missing(index, keys, run, lambda _done, _total: None)

    def lacking(self) -> int:
        """Return how many chunks are without a vector that they should have."""
        with self._read() as snapshot:
            count: int = snapshot.keys(self.name).size
            held = (index.keys(snapshot.resource, self.name).size for _, index in self.indexes if index.needs_vectors)
            return max((count - size for size in held), default=0)

    def cache(self, chunks: Sequence[Chunk], run: EmbeddingRun, record: SpaceRecord) -> None:
        """Put the vectors of these chunks, in the space of ``record``, into the cache, and nowhere else.

        What one call answered is committed before the next is sent.
        """
        space = record.space
        passages = {chunk.passage_hash: chunk.passage for chunk in chunks}
        with self._read() as snapshot:
            known = snapshot.cached_vectors(space, list(passages))
        run.cached += len(known)
        missing = {digest: text for digest, text in passages.items() if digest not in known}
        for part in embed_passages(missing, self.embedder, run, record):
            with self._write() as transaction:
                transaction.cache_vectors(space, part)

    def _embed_missing(self, index: Index[Any], missing: Sequence[int], run: EmbeddingRun, report: OnProgress) -> None:
        """Compute the vectors that one index lacks, as long as the embedder answers."""
        if run.stopped:
            return
        report(0, len(missing))
        try:
            if not missing and self.record() is None:
                return
            record = self.prepare_space()
            size = max(BATCH, run.call_size(self.embedder))
        except Exception as error:  # noqa: BLE001  # an embedder may raise anything
            if missing or isinstance(error, VectorSpaceError):  # where nothing is missing it need not work now
                run.fail(error)
                run.stopped = True
            return
        done = 0
        for first in range(0, len(missing), size):  # also after a failure: what is cached needs no embedder
            for count in self._embed_keys(index, missing[first : first + size], record, run):
                done += count
                report(done, len(missing))
        if isinstance(run.error, ModelChangedError):
            self._retire(record)

    def _embed_keys(
        self, index: Index[Any], keys: Sequence[int], record: SpaceRecord, run: EmbeddingRun
    ) -> Iterator[int]:
        """Add the vectors of these chunks to an index; yield how many after each transaction.

        No transaction is open while the embedder works. What one call answered is committed, to the cache and to the
        index, before the next is sent.
        """
        with self._read() as snapshot:
            chunks: dict[str, list[StoredChunk]] = {}
            for stored in snapshot.chunks(self.name, keys):
                chunks.setdefault(stored.chunk.passage_hash, []).append(stored)
            known = snapshot.cached_vectors(record.space, list(chunks))
        run.cached += len(known)
        missing = {digest: group[0].chunk.passage for digest, group in chunks.items() if digest not in known}
        for vectors in chain([known] if known else [], embed_passages(missing, self.embedder, run, record)):
            group = [stored for digest in vectors for stored in chunks[digest]]
            try:
                self._keep(index, group, vectors, record.space, new=vectors is not known)
            except VectorSpaceError as error:
                run.fail(error)
                return
            yield len(group)

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
            if new:
                held = transaction.chunks(self.name, [stored.key for stored in chunks])
                there = {stored.chunk.passage_hash for stored in held}
                transaction.cache_vectors(space, {digest: row for digest, row in vectors.items() if digest in there})
            else:
                transaction.use_vectors(space, list(vectors))
            record = transaction.space(self.name)
            moved = record is None or record.space != space
            if not moved:
                self._put(transaction, index, chunks, vectors)
        if moved and record is not None:
            require_same_space(record, space, self.name)

    def _retire(self, record: SpaceRecord) -> None:
        """Mark vectors of weights that are gone, so that none is compared with one of the weights that are there.

        Those of an index that another process has made anew meanwhile, with the new weights, stay.
        """
        with self._write() as transaction:
            now = transaction.space(self.name)
            if now is not None and now.space == record.space and agreement(now.probe, record.probe) >= SAME_WEIGHTS:
                transaction.retire_space(record.space)

    def _differences(self, index: Index[Any]) -> tuple[list[int], list[int]]:
        """Return the keys that an index lacks, and those that it holds for chunks that are gone."""
        with self._read() as snapshot:
            present = set(index.keys(snapshot.resource, self.name).tolist())
            wanted = set(snapshot.keys(self.name).tolist())
        return sorted(wanted - present), sorted(present - wanted)

    def _put(
        self,
        transaction: Transaction[Any],
        index: Index[Any],
        chunks: Sequence[StoredChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        """Add chunks to an index, though another process may have removed some meanwhile, or added them there."""
        keys = [stored.key for stored in chunks]
        current = transaction.chunks(self.name, keys)
        index.remove(transaction.resource, self.name, keys)
        self._add(transaction, index, current, vectors)

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
        embedded = [stored for stored in chunks if stored.chunk.passage_hash in vectors]
        if embedded:
            matrix = stack([stored.chunk.passage_hash for stored in embedded], vectors)
            index.add(transaction.resource, self.name, embedded, matrix)


def _cached(
    transaction: Transaction[Any], record: SpaceRecord | None, chunks: Sequence[StoredChunk]
) -> Mapping[str, Vector]:
    """Return the vectors of these chunks that the cache has, and note that they were of use."""
    hashes = list({stored.chunk.passage_hash for stored in chunks})
    if record is None or not hashes:
        return {}
    vectors = transaction.cached_vectors(record.space, hashes)
    transaction.use_vectors(record.space, list(vectors))
    return vectors
