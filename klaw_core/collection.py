"""One collection of a store, kept in step: canonical rows, words and vectors change together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from klaw_core.embedding import embed_passages, make_space_record, require_same_space, stack
from klaw_core.interfaces import Embedder, ErasingIndex, Index, Store, Transaction
from klaw_core.values import Chunk, Document, StoredChunk, Vector

# A transaction ends at this many chunks: a few seconds of a small model's time, so that a crash costs
# little, and enough rows that the commit costs nothing beside them.
BATCH = 256


@frozen
class Embedded:
    """Vectors by passage hash, all of one space; ``count`` of them were computed just now."""

    vectors: Mapping[str, Vector] = field(factory=dict)
    count: int = 0


@frozen
class Collection:
    """The rows of one collection and the enlisted indexes over them, by name.

    The embedder is asked for vectors only if an index needs them.
    """

    store: Store[Any]
    embedder: Embedder
    indexes: Sequence[tuple[str, Index[Any]]]
    name: str = "memory"

    @property
    def uses_vectors(self) -> bool:
        """Whether any index needs vectors."""
        return any(index.needs_vectors for _, index in self.indexes)

    def prepare_space(self) -> None:
        """Record the embedder's vector space at the first index; later refuse another. Raise VectorSpaceError."""
        if not self.uses_vectors:
            return
        with self.store.read() as snapshot:
            record = snapshot.space(self.name)
        if record is None:
            self.reset_space()
        else:
            require_same_space(record, self.embedder, self.name)

    def adopt_space(self) -> None:
        """Make the index one of the embedder's vector space, whatever it was before."""
        if not self.uses_vectors:
            return
        with self.store.read() as snapshot:
            record = snapshot.space(self.name)
        if record is None or record.space != self.embedder.space:
            self.reset_space()

    def keep_origins(self, origins: Container[str]) -> None:
        """Remove the documents of every other origin."""
        with self.store.read() as snapshot:
            gone = [
                path
                for origin in snapshot.counts(self.name)
                if origin not in origins
                for path in snapshot.manifest(self.name, origin)
            ]
        if gone:
            self.remove(gone)

    def reset_space(self) -> None:
        """Empty every vector index and record the embedder's space; :meth:`backfill` fills them again."""
        record = make_space_record(self.embedder)
        with self.store.write() as transaction:
            transaction.set_space(self.name, record)
            for _, index in self.indexes:
                if index.needs_vectors:
                    index.reset(transaction.resource, self.name, record.space)

    def embed(self, chunks: Sequence[Chunk], on_done: Callable[[int], None] = lambda _: None) -> Embedded:
        """Return a vector for each distinct passage, computing those that the cache lacks.

        No transaction is open meanwhile. What a call to the embedder computed is saved before the next, so
        that it is not computed again after a crash. ``on_done`` is given the number of texts after each call.
        """
        passages = {chunk.passage_hash: chunk.passage for chunk in chunks}
        if not passages:
            return Embedded()
        space = self.embedder.space
        with self.store.read() as snapshot:
            vectors = dict(snapshot.cached_vectors(space, list(passages)))
        missing = {digest: text for digest, text in passages.items() if digest not in vectors}
        for part in embed_passages(missing, self.embedder):
            vectors.update(part)
            with self.store.write() as transaction:
                transaction.cache_vectors(space, part)
            on_done(len(part))
        return Embedded(vectors, len(missing))

    def replace(self, documents: Sequence[tuple[Document, Sequence[Chunk]]], embedded: Embedded) -> None:
        """Make these the chunks of these documents, in one transaction.

        Raise VectorSpaceError, and change nothing, if the index has moved to another space since they were
        embedded.
        """
        with self.store.write() as transaction:
            if embedded.vectors:
                self._require_space(transaction)
            for document, chunks in documents:
                change = transaction.replace(self.name, document, chunks)
                for _, index in self.indexes:
                    index.remove(transaction.resource, self.name, change.removed)
                    self._add(transaction, index, change.added, embedded.vectors)

    def remove(self, paths: Sequence[str], *, forget: bool = False) -> int:
        """Remove documents from the rows and every index, in one transaction; return how many chunks went.

        With ``forget`` their vectors leave the embedding cache as well, and their words the pages of the indexes.
        """
        removed = 0
        with self.store.write() as transaction:
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

    def backfill(self, on_progress: Callable[[int, int], None] = lambda _done, _total: None) -> int:
        """Give every index exactly the chunks there are, in order of key; return how many texts were embedded.

        Idempotent and safe to stop: what a crash or a failed embedding left out, the next call adds; what was
        removed while an index was switched off goes from it now.
        ``on_progress`` is given the number of chunks done and their total, index by index.
        """
        count = 0
        for _, index in self.indexes:
            missing, stale = self._differences(index)
            if stale:
                with self.store.write() as transaction:
                    index.remove(transaction.resource, self.name, stale)
            done = 0
            on_progress(done, len(missing))
            for first in range(0, len(missing), BATCH):
                with self.store.read() as snapshot:
                    stored = snapshot.chunks(self.name, missing[first : first + BATCH])
                chunks = [item.chunk for item in stored] if index.needs_vectors else []
                embedded = self.embed(chunks)
                with self.store.write() as transaction:
                    if index.needs_vectors:
                        self._require_space(transaction)
                    self._add(transaction, index, self._still_missing(transaction, index, stored), embedded.vectors)
                count += embedded.count
                done += len(stored)
                on_progress(done, len(missing))
        return count

    def _require_space(self, transaction: Transaction[Any]) -> None:
        """Raise VectorSpaceError unless the index is, at this moment, of the embedder's space."""
        record = transaction.space(self.name)
        if record is not None:
            require_same_space(record, self.embedder, self.name)

    def _differences(self, index: Index[Any]) -> tuple[list[int], list[int]]:
        """Return the keys that an index lacks, and those that it holds for chunks that are gone."""
        with self.store.read() as snapshot:
            present = set(index.keys(snapshot.resource, self.name).tolist())
            wanted = set(snapshot.keys(self.name).tolist())
        return sorted(wanted - present), sorted(present - wanted)

    def _still_missing(
        self, transaction: Transaction[Any], index: Index[Any], stored: Sequence[StoredChunk]
    ) -> Sequence[StoredChunk]:
        """Leave out what another process removed or added since it was looked up."""
        current = {item.key for item in transaction.chunks(self.name, [item.key for item in stored])}
        present = set(index.keys(transaction.resource, self.name).tolist())
        return [item for item in stored if item.key in current - present]

    def _add(
        self,
        transaction: Transaction[Any],
        index: Index[Any],
        chunks: Sequence[StoredChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        """Add chunks to one index; those without a vector, where one is needed, are left to :meth:`backfill`."""
        if not index.needs_vectors:
            if chunks:
                index.add(transaction.resource, self.name, chunks, None)
            return
        embedded = [stored for stored in chunks if stored.chunk.passage_hash in vectors]
        if embedded:
            matrix = stack([stored.chunk.passage_hash for stored in embedded], vectors)
            index.add(transaction.resource, self.name, embedded, matrix)
