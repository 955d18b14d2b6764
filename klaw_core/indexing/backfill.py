"""Compute the vectors that the indexes of a collection lack.

No transaction is open while an embedder works. The vectors of one or more calls are committed together; see
:func:`~klaw_core.embedding.run.gathered`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from attrs import frozen

from klaw_core.embedding.run import (
    SAME_WEIGHTS,
    EmbeddingRun,
    ModelChangedError,
    agreement,
    embed_chunk_texts,
    gathered,
    require_same_space,
)
from klaw_core.errors import VectorSpaceError
from klaw_core.indexing.collection import BATCH, Collection
from klaw_core.indexing.reconcile import compare_keys
from klaw_core.indexing.retrying import retried
from klaw_core.interfaces.index import Index
from klaw_core.values.text import Chunk, StoredChunk
from klaw_core.values.vectors import SpaceRecord, Vector, VectorSpace

#: Chunks read at once to be embedded: a few megabytes, sorted so that one call gets texts of similar length.
POOL = 1024
_NEWEST = 128  # documents whose chunks are embedded before the others, newest first

#: Called with the number of chunks that are done, and their total.
OnProgress = Callable[[int, int], None]


@frozen
class Backfill:
    """Adds missing vectors to the indexes of one collection. ``run`` collects counts and the last error."""

    collection: Collection
    run: EmbeddingRun

    def fill(self, on_progress: OnProgress = lambda *_: None, *, limit: int | None = None) -> int:
        """Give every index exactly the chunks that the store has; embed at most ``limit``, of new documents first.

        The call is idempotent, and can be interrupted: the next call adds what is still missing. It also removes
        keys that an index holds for chunks that no longer exist. If the embedder fails, chunks stay without a
        vector, and ``run.error`` has the reason. Return how many chunks lack a vector.
        """
        collection, lacking = self.collection, 0
        with collection.read() as snapshot:
            indexes = [index for _, index in collection.indexes]
            found = compare_keys(snapshot, collection.name, indexes, self.run.waiting.pop(collection.name, ()))
        for index, missing, stale in found:
            if stale:
                self._remove_stale(index, stale)
            if index.needs_vectors:
                done = self._embed_missing(index, self._newest_first(missing)[:limit], on_progress)
                lacking = max(lacking, len(missing) - done)
                continue
            for first in range(0, len(missing), BATCH):
                self._add_missing(index, missing[first : first + BATCH])
            self._compact(index)
        return collection.lacking() if lacking else 0

    def _newest_first(self, keys: Sequence[int]) -> Sequence[int]:
        """Return keys in order, but first those of the newest documents, so that vectors soon find what is new."""
        if len(keys) <= POOL:
            return keys
        wanted, first = set(keys), dict[int, None]()
        with self.collection.read() as snapshot:
            for document in snapshot.newest(self.collection.name, _NEWEST):
                stored = snapshot.outline(self.collection.name, document.path)
                first |= dict.fromkeys(chunk.key for chunk in stored if chunk.key in wanted)
        return [*first, *(key for key in keys if key not in first)]

    def embed(self, keys: Sequence[int]) -> None:
        """Give these chunks their vectors. If the embedder fails, ``run.error`` has the reason."""
        for _, index in self.collection.indexes:
            if index.needs_vectors:
                self._embed_missing(index, keys, lambda *_: None)

    def cache(
        self,
        documents: Mapping[str, Sequence[Chunk]],
        record: SpaceRecord,
        on_progress: OnProgress = lambda *_: None,
        *,
        gone: Callable[[Sequence[str]], Container[str]] = lambda _paths: (),
    ) -> None:
        """Put the vectors of these chunks, in the space of ``record``, into the cache, and into no index.

        ``documents`` maps paths to chunks. ``gone`` returns those of the given paths whose text has changed or was
        forgotten since it was read. It is called inside the transaction: a text that was forgotten before is not
        cached, and a text that is forgotten later is removed from the cache with its document. ``on_progress``
        counts texts, including those that were cached already.
        """
        space = record.space
        hashes = {path: [chunk.embedding_hash for chunk in chunks] for path, chunks in documents.items()}
        texts = {chunk.embedding_hash: chunk.embedding_text for chunks in documents.values() for chunk in chunks}
        with self.collection.read() as snapshot:
            known = snapshot.cached_vectors(space, list(texts))
        self.run.cached += len(known)
        done = len(known)
        missing = {digest: text for digest, text in texts.items() if digest not in known}
        on_progress(done, len(texts))
        for part in self._embedded(missing, record):
            self._cache_part(space, part, hashes, gone)
            done += len(part)
            on_progress(done, len(texts))

    def _embedded(self, texts: Mapping[str, str], record: SpaceRecord) -> Iterator[Mapping[str, Vector]]:
        """Yield the vectors of these texts, by hash, in the parts that are committed together."""
        embedder = self.collection.embedder
        return gathered(embed_chunk_texts(texts, embedder, self.run, record), embedder)

    @retried
    def _cache_part(
        self,
        space: VectorSpace,
        part: Mapping[str, Vector],
        hashes: Mapping[str, Sequence[str]],
        gone: Callable[[Sequence[str]], Container[str]],
    ) -> None:
        with self.collection.write() as transaction:
            left = gone(list(hashes))
            current = {path: digests for path, digests in hashes.items() if path not in left}
            wanted = {digest for digests in current.values() for digest in digests}
            transaction.cache_vectors(space, {digest: row for digest, row in part.items() if digest in wanted})
            owners = {
                (self.collection.name, path): [digest for digest in digests if digest in part]
                for path, digests in current.items()
            }
            transaction.note_documents(space, owners)

    @retried
    def _remove_stale(self, index: Index[Any], stale: Sequence[int]) -> None:
        with self.collection.write() as transaction:
            index.remove(transaction.resource, self.collection.name, stale)

    @retried
    def _add_missing(self, index: Index[Any], missing: Sequence[int]) -> None:
        with self.collection.write() as transaction:
            self.collection.put(transaction, index, transaction.chunks(self.collection.name, missing), {})

    def _compact(self, index: Index[Any]) -> None:
        """Let an index merge the pieces of its data, if it says that this is worthwhile."""
        with self.collection.read() as snapshot:
            scattered = index.is_scattered(snapshot.resource, self.collection.name)
        if scattered:
            self._write_together(index)

    @retried
    def _write_together(self, index: Index[Any]) -> None:
        with self.collection.write() as transaction:
            index.compact(transaction.resource, self.collection.name)

    def _embed_missing(self, index: Index[Any], missing: Sequence[int], report: OnProgress) -> int:
        """Compute the vectors that one index lacks until the embedder fails; return how many were added."""
        done = 0
        if self.run.stopped:
            return done
        report(done, len(missing))
        try:
            if not missing and self.collection.record() is None:
                return done
            record = self.collection.prepare_space()
            size = max(POOL, self.run.call_size(self.collection.embedder))
        except VectorSpaceError as error:  # only of this collection: the next may be in the embedder's space
            self.run.error = error
            return done
        except Exception as error:  # noqa: BLE001  # an embedder may raise anything
            if missing:  # without missing vectors the embedder is not needed
                self.run.fail(error)
                self.run.stopped = True
            return done
        # The loop goes on after a failure: cached vectors need no embedder.
        for first in range(0, len(missing), size):
            for count in self._embed_keys(index, missing[first : first + size], record):
                done += count
                report(done, len(missing))
        if isinstance(self.run.error, ModelChangedError):
            self._retire(record)
        return done

    def _embed_keys(self, index: Index[Any], keys: Sequence[int], record: SpaceRecord) -> Iterator[int]:
        """Add the vectors of these chunks to an index; yield how many after each transaction."""
        with self.collection.read() as snapshot:
            chunks: dict[str, list[StoredChunk]] = {}
            for stored in snapshot.chunks(self.collection.name, keys):
                chunks.setdefault(stored.chunk.embedding_hash, []).append(stored)
            known = snapshot.cached_vectors(record.space, list(chunks))
        self.run.cached += len(known)
        missing = {digest: group[0].chunk.embedding_text for digest, group in chunks.items() if digest not in known}
        for vectors in chain([known] if known else [], self._embedded(missing, record)):
            group = [stored for digest in vectors for stored in chunks[digest]]
            try:
                self._keep(index, group, vectors, record.space, new=vectors is not known)
            except VectorSpaceError as error:
                self.run.fail(error)
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
        """Write vectors to an index and, if they are new, to the cache. Drop those of chunks that were forgotten.

        Raise VectorSpaceError, and leave the index as it is, if it has moved to another space in the meantime.
        """
        name = self.collection.name
        with self.collection.write() as transaction:
            # A key is not enough: a rebuild that replaced everything in the meantime assigns keys again.
            ids = transaction.chunk_ids(name, [stored.key for stored in chunks])
            chunks = [stored for stored in chunks if ids.get(stored.key) == stored.chunk.chunk_id]
            if new:
                current = {stored.chunk.embedding_hash for stored in chunks}
                transaction.cache_vectors(space, {digest: row for digest, row in vectors.items() if digest in current})
            else:
                transaction.use_vectors(space, list(vectors))
            record = transaction.space(name)
            moved = record is None or record.space != space
            if not moved:
                self.collection.put(transaction, index, chunks, vectors)
        if moved and record is not None:
            require_same_space(record, space, name)

    @retried
    def _retire(self, record: SpaceRecord) -> None:
        """Retire the cached vectors of weights that the model no longer has, so that none is compared with new ones.

        Do nothing if another process has rebuilt the index with the new weights in the meantime.
        """
        with self.collection.write() as transaction:
            now = transaction.space(self.collection.name)
            if now is not None and now.space == record.space and agreement(now.probe, record.probe) >= SAME_WEIGHTS:
                transaction.retire_space(record.space)
