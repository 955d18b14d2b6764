"""The index flow: a source in, an index that agrees with it out.

scan → unchanged by hash? skip → chunk → embed only what is missing, no lock held →
one transaction a batch → what the scan no longer found is removed → what lacks a vector gets one
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from klaw_core.chunking import make_chunks
from klaw_core.collection import BATCH, Collection, Embedded
from klaw_core.conversations.source import CONVERSATIONS
from klaw_core.errors import EmbeddingError, KlawError, VectorSpaceError
from klaw_core.interfaces import Chunker, Source
from klaw_core.saved_source import SAVED
from klaw_core.values import Chunk, Document, DocumentRecord, Entry, IndexReport, Progress, Skipped

ProgressCallback = Callable[[Progress], None]

# What is gone from Klaw's own files was forgotten, and a crash, or a person, left the rest of it to the next run.
_FORGOTTEN_IF_GONE = {SAVED, CONVERSATIONS}


@frozen
class _Cut:
    """A document that has changed, cut into chunks. ``size`` is in bytes, as the scan found it."""

    document: Document
    chunks: tuple[Chunk, ...]
    size: int


@define
class _Tally:
    """What a run has done so far: the one mutable thing of the flow."""

    on_progress: ProgressCallback
    total: int
    skipped: list[Skipped]
    bytes: int = 0
    documents: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    embedded: int = 0
    cached: int = 0
    seen: set[str] = field(factory=set)

    def report(self, ahead: float = 0.0) -> None:
        """Tell the caller; ``ahead`` is the part of the current batch, in bytes, that is embedded already."""
        done = min(self.bytes + round(ahead), self.total)
        self.on_progress(Progress("index", done, self.total, self.documents, self.chunks))


@frozen
class Indexer:
    """Makes a collection agree with its sources.

    ``recipe`` names the chunkers, their options and what counts its tokens: when it changes, every document
    is cut again. ``formats`` are the chunkers of documents that are not Markdown, by ``Document.format``.
    """

    collection: Collection
    chunker: Chunker
    recipe: str = ""
    formats: Mapping[str, Chunker] = field(factory=dict)

    def sync(
        self, source: Source, *, force: bool = False, on_progress: ProgressCallback = lambda _: None
    ) -> IndexReport:
        """Index what is new or changed, remove what is gone, and embed whatever has no vector yet.

        ``force`` cuts and writes every document again, changed or not. What lies below a place that could
        not be looked at stays. Raise WorkspaceError, EmbeddingError, StoreError, VectorSpaceError.
        """
        started = time.monotonic()
        self.collection.prepare_space()
        # Read before the scan: what another process adds in between is then not taken for something deleted.
        with self.collection.store.read() as snapshot:
            manifest = snapshot.manifest(self.collection.name, source.origin)
        scanned = list(source.scan())
        entries = [item for item in scanned if isinstance(item, Entry)]
        skipped = [item for item in scanned if isinstance(item, Skipped)]
        tally = _Tally(on_progress, sum(entry.size for entry in entries), skipped)
        tally.report()
        for batch in _batches(self._changed(source, entries, manifest, tally, force=force)):
            self._write(batch, manifest, tally)
        self._remove_missing(manifest, tally, forget=source.origin in _FORGOTTEN_IF_GONE)
        tally.embedded += self.collection.backfill(lambda done, total: on_progress(Progress("embed", done, total)))
        return IndexReport(
            added=tally.added,
            changed=tally.changed,
            unchanged=tally.unchanged,
            removed=tally.removed,
            skipped=tuple(tally.skipped),
            chunks=tally.chunks,
            embedded=tally.embedded,
            cached=tally.cached,
            seconds=time.monotonic() - started,
        )

    def add(self, document: Document) -> KlawError | None:
        """Index one document now; return what kept it from being embedded, if anything did.

        Words find it at once in any case, and the next :meth:`sync` tries again to embed it.
        """
        document = evolve(document, recipe=self.recipe)
        chunks = self._cut(document)
        failure: KlawError | None = None
        try:
            self.collection.prepare_space()
            self.collection.replace([(document, chunks)], self._embed(chunks))
        except (EmbeddingError, VectorSpaceError) as error:
            failure = error
            self.collection.replace([(document, chunks)], Embedded())
        return failure

    def _changed(
        self,
        source: Source,
        entries: Sequence[Entry],
        manifest: Mapping[str, DocumentRecord],
        tally: _Tally,
        *,
        force: bool,
    ) -> Iterator[_Cut]:
        """Read every entry; yield the documents whose text is not what the manifest says, cut into chunks."""
        for entry in entries:
            document = source.read(entry)
            if isinstance(document, Skipped):
                tally.skipped.append(document)
                tally.bytes += entry.size
                continue
            document = evolve(document, recipe=self.recipe)
            tally.seen.add(document.path)
            record = manifest.get(document.path)
            if force or record is None or record.content_hash != document.content_hash:
                yield _Cut(document, self._cut(document), entry.size)
                continue
            if record.created_at != document.created_at:
                with self.collection.store.write() as transaction:
                    transaction.touch(self.collection.name, document)
            tally.unchanged += 1
            tally.documents += 1
            tally.bytes += entry.size
            tally.report()

    def _write(self, batch: Sequence[_Cut], manifest: Mapping[str, DocumentRecord], tally: _Tally) -> None:
        """Embed what a batch of documents lacks, then replace them all in one transaction."""
        fresh = [chunk for cut in batch for chunk in self._fresh(cut, manifest)]
        size = sum(cut.size for cut in batch)
        texts = len({chunk.passage_hash for chunk in fresh})
        done = 0

        def on_done(count: int) -> None:
            nonlocal done
            done += count
            tally.report(size * done / texts)

        embedded = self._embed(fresh, on_done)
        self.collection.replace([(cut.document, cut.chunks) for cut in batch], embedded)
        tally.embedded += embedded.count
        tally.cached += len(embedded.vectors) - embedded.count
        tally.chunks += sum(len(cut.chunks) for cut in batch)
        tally.bytes += size
        tally.documents += len(batch)
        new = sum(cut.document.path not in manifest for cut in batch)
        tally.added += new
        tally.changed += len(batch) - new
        tally.report()

    def _fresh(self, cut: _Cut, manifest: Mapping[str, DocumentRecord]) -> Sequence[Chunk]:
        """Return the chunks that the store does not hold already."""
        if cut.document.path not in manifest:
            return cut.chunks
        with self.collection.store.read() as snapshot:
            held = {stored.chunk.chunk_id for stored in snapshot.outline(self.collection.name, cut.document.path)}
        return [chunk for chunk in cut.chunks if chunk.chunk_id not in held]

    def _remove_missing(self, manifest: Mapping[str, DocumentRecord], tally: _Tally, *, forget: bool) -> None:
        kept = [skipped.path for skipped in tally.skipped if skipped.keep]
        missing = [
            path
            for path in manifest
            if path not in tally.seen and not any(path == place or path.startswith(f"{place}/") for place in kept)
        ]
        if missing:
            self.collection.remove(missing, forget=forget)
        tally.removed = len(missing)

    def _cut(self, document: Document) -> tuple[Chunk, ...]:
        chunker = self.formats.get(document.format, self.chunker)
        return make_chunks(document, chunker, self.collection.embedder.count_tokens)

    def _embed(self, chunks: Sequence[Chunk], on_done: Callable[[int], None] = lambda _: None) -> Embedded:
        return self.collection.embed(chunks, on_done) if self.collection.uses_vectors else Embedded()


def _batches(cuts: Iterator[_Cut]) -> Iterator[list[_Cut]]:
    """Group documents until a batch holds ``BATCH`` chunks; one document is never divided."""
    batch: list[_Cut] = []
    held = 0
    for cut in cuts:
        batch.append(cut)
        held += len(cut.chunks)
        if held >= BATCH:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
