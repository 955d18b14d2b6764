"""The index flow: make a collection agree with a source.

scan → skip unchanged documents → split into chunks → one transaction per batch for rows, words and cached vectors →
remove documents that the scan did not find → embed the chunks that lack a vector
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from attrs import evolve, frozen

from klaw_core.embedding.run import EmbeddingRun
from klaw_core.errors import EmbeddingError, KlawError, PluginError
from klaw_core.indexing.backfill import Backfill
from klaw_core.indexing.chunking import FormatChunker, TokenMeter
from klaw_core.indexing.collection import BATCH, Collection, Manifest
from klaw_core.indexing.cutting import Cutter, with_fingerprint
from klaw_core.indexing.redacting import DocumentRedactor
from klaw_core.indexing.run_counts import (
    ChunkedDocument,
    NamedDocuments,
    ProgressCallback,
    RunCounts,
    UnchangedDocuments,
)
from klaw_core.interfaces.source import Forgetful, Shrinking
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.values.documents import Document, Entry, RecordedDocuments
from klaw_core.values.runs import IndexReport, Progress, SkippedEntry
from klaw_core.values.vectors import SpaceRecord

_LOG = logging.getLogger("klaw")
# Attempts to read a document that another run keeps writing. The next run does the rest.
_MAX_READINGS = 5


@frozen
class Indexer:
    """Makes a collection agree with its sources. ``chunker_of`` returns the chunker of a ``Document.format``."""

    collection: Collection
    chunker_of: Callable[[str], FormatChunker]
    redactor: DocumentRedactor

    def write(
        self,
        source: IsolatedSource,
        run: EmbeddingRun,
        named: NamedDocuments | None = None,
        *,
        force: bool = False,
        verify: bool = False,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Store new and changed documents, which words find at once, and remove deleted ones. Embed nothing.

        ``named`` are the documents to look at; None means all that a scan finds. ``force`` splits and writes every
        document again; ``verify`` reads every document, even if its fingerprint is unchanged. Documents below a
        directory that could not be read stay. A document that another run has written in the meantime is read again,
        so that the text that was read last is indexed. Raise WorkspaceError, StoreError.
        """
        started, cached = time.monotonic(), run.cached
        # Read the manifest before the scan. Otherwise a document that another process adds in between looks deleted.
        before = manifest = self._manifest(source, None if named is None else named.paths)
        counts = RunCounts(on_progress)
        entries: Sequence[Entry] = self._scan(source, counts) if named is None else named.found
        for _ in range(_MAX_READINGS):
            for batch in _batches(self._changed(source, entries, manifest, counts, force=force, verify=verify)):
                seen = {cut.document.path: cut.seen for cut in batch if cut.seen}
                documents = [(cut.document, cut.chunks) for cut in batch]
                # A document that has lost a part since it was read is not written: its source was changed before the
                # index, so a later run would not remove that part.
                written = self.collection.replace(documents, manifest, seen, changed=partial(_changed, source))
                run.cached += written.cached
                run.waiting.setdefault(self.collection.name, []).extend(written.lacking)
                counts.count(batch, manifest, written.refused)
            entries, counts.overtaken = counts.overtaken, []
            if not entries:
                break
            manifest = self._manifest(source, [entry.path for entry in entries])  # before they are read, as above
        counts.skipped += [
            SkippedEntry(each.path, "is being indexed by another process", keep=True) for each in entries
        ]
        if missing := counts.missing(before, named=named is not None):
            gone = self.collection.remove(list(missing), forget=source.forgets_missing, manifest=missing)
            counts.removed = len(gone.paths)
        return evolve(counts.summary(), cached=run.cached - cached, seconds=time.monotonic() - started)

    def embed(
        self, run: EmbeddingRun, *, limit: int | None = None, on_progress: ProgressCallback = lambda _: None
    ) -> IndexReport:
        """Embed the chunks without a vector, those of new documents first, at most ``limit`` of them.

        If the embedder fails, the report says how many chunks lack a vector, and why. Raise StoreError.
        """
        started, embedded, cached = time.monotonic(), run.embedded, run.cached
        lacking = Backfill(self.collection, run).fill(
            lambda done, total: on_progress(Progress("embed", done, total)), limit=limit
        )
        return IndexReport(
            embedded=run.embedded - embedded,
            cached=run.cached - cached,
            lacking=lacking,
            notices=() if run.error is None else (str(run.error),),
            seconds=time.monotonic() - started,
        )

    def embed_ahead(
        self,
        source: IsolatedSource,
        run: EmbeddingRun,
        record: SpaceRecord,
        *,
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_progress: ProgressCallback = lambda _: None,
    ) -> None:
        """Put the vectors of every chunk, in the space of ``record``, into the cache, and change nothing else.

        A reindex into another space calls this while the index still answers in its own space. Each batch is looked
        up and embedded inside ``alone``, so that the second of two runs finds what the first has paid for. A text
        that the embedder refuses is left out. Raise the error that stopped the run, WorkspaceError, StoreError.
        """
        counts = RunCounts(on_progress, "ahead")
        entries = self._scan(source, counts)
        size = max(BATCH, run.call_size(self.collection.embedder))
        for batch in _batches(self._changed(source, entries, {}, counts, force=True), size):
            with alone():
                found = partial(counts.report_part, batch)
                cuts = {cut.document.path: cut for cut in batch}
                documents = {path: cut.chunks for path, cut in cuts.items()}
                Backfill(self.collection, run).cache(documents, record, found, gone=partial(_gone, source, cuts))
            if run.failing and run.error is not None:
                raise run.error
            counts.count(batch)

    def put(self, documents: Sequence[Document], run: EmbeddingRun) -> IndexReport:
        """Index documents now. The report says how many chunks could not be embedded, and why.

        Words find these chunks too, and the next run tries to embed them again. Raise StoreError.
        """
        started, embedded = time.monotonic(), run.embedded
        cutter = self.cutter()
        report = IndexReport()
        for first in range(0, len(documents), BATCH):
            cuts = [cutter.cut(document) for document in documents[first : first + BATCH]]
            for batch in _batches(ChunkedDocument(*cut, Entry(cut[0].path)) for cut in cuts):
                written = self.collection.replace([(cut.document, cut.chunks) for cut in batch])
                lacking = self.collection.lacking_of(written)
                Backfill(self.collection, run).embed(lacking)
                report += IndexReport(
                    added=written.new,
                    changed=len(batch) - written.new,
                    chunks=sum(len(cut.chunks) for cut in batch),
                    cached=written.cached,
                    lacking=len(lacking),
                )
        embedded = run.embedded - embedded
        return evolve(
            report,
            embedded=embedded,
            lacking=0 if run.error is None else max(report.lacking - embedded, 0),
            notices=() if run.error is None else (str(run.error),),
            seconds=time.monotonic() - started,
        )

    def forget_removed_text(self, source: IsolatedSource, paths: Sequence[str]) -> None:
        """Write indexed documents as they are now, and forget the text that they no longer have.

        Their other chunks can be found at every moment; the next run embeds those without a vector. What is not
        indexed, or cannot be read, is removed with its cached vectors. Raise StoreError.
        """
        left = list(paths)
        for _ in range(_MAX_READINGS):
            records = self._manifest(source, left)
            cuts = self._cut_now(source, [path for path in left if path in records])
            if gone := [path for path in left if path not in cuts]:
                self.collection.remove(gone, forget=True)
            left = []
            for batch in _batches(iter(cuts.values())):
                documents = [(cut.document, cut.chunks) for cut in batch]
                written = self.collection.replace(documents, records, changed=partial(_changed, source), forget=True)
                left += sorted(written.refused)
            if not left:
                return
        self.collection.remove(left, forget=True)

    def _cut_now(self, source: IsolatedSource, paths: Sequence[str]) -> Mapping[str, ChunkedDocument]:
        """Return those of the documents that can be read and split now."""
        cuts: dict[str, ChunkedDocument] = {}
        try:
            cutter = self.cutter()
            for path in paths:
                document = source.read(Entry(path))
                if isinstance(document, Document):
                    cuts[path] = ChunkedDocument(*cutter.cut(document), Entry(path))
        except KlawError:  # the text that must be forgotten leaves the index anyway
            _LOG.debug("documents to shorten cannot be read or split", exc_info=True)
        return cuts

    def cutter(self) -> Cutter:
        """Return the cutter of the collection: chunkers, their options, and the model whose tokens they count."""
        try:
            model = self.collection.counted_by()
        except (EmbeddingError, PluginError):  # nothing is embedded yet, and the embedder cannot name its model
            model = "unknown"
        meter = TokenMeter(self.collection.embedder)
        return Cutter(self.chunker_of, model, meter, self.redactor)

    def _manifest(self, source: IsolatedSource, paths: Sequence[str] | None = None) -> Manifest:
        """Return the records of a source's documents: of all, or of these paths."""
        with self.collection.store.read() as snapshot:
            if paths is None:
                return snapshot.manifest(self.collection.name, source.origin)
            found = {path: snapshot.record(self.collection.name, source.origin, path) for path in paths}
        return {path: record for path, record in found.items() if record is not None}

    def _scan(self, source: IsolatedSource, counts: RunCounts) -> list[Entry]:
        """Return the entries of a source that can be read, and count them and the others."""
        scanned = list(source.scan())
        entries = [item for item in scanned if isinstance(item, Entry)]
        counts.skipped += [item for item in scanned if isinstance(item, SkippedEntry)]
        counts.total = sum(entry.size for entry in entries)
        counts.report()
        return entries

    def _changed(
        self,
        source: IsolatedSource,
        entries: Sequence[Entry],
        manifest: Manifest,
        counts: RunCounts,
        *,
        force: bool,
        verify: bool = False,
    ) -> Iterator[ChunkedDocument]:
        """Yield the documents whose text differs from the manifest, with their chunks.

        An entry with an unchanged fingerprint is not read, except with ``verify``.
        """
        cutter = self.cutter()
        unchanged = UnchangedDocuments(self.collection, manifest, counts)
        seen_of = manifest.seen if isinstance(manifest, RecordedDocuments) else partial(_seen, manifest)
        for entry in entries:
            seen = "" if force else seen_of(entry.path)
            if not verify and cutter.is_seen(entry, seen):
                counts.keep(entry)
                continue
            record = None if force else manifest.get(entry.path)
            digest = cutter.digest_of(seen)
            document = source.read_changed(entry, digest) if digest else source.read(entry)
            if isinstance(document, SkippedEntry):
                counts.skipped.append(document)
                counts.bytes += entry.size
                continue
            if document is None:
                assert record is not None
                counts.keep(entry)
                unchanged.note(record, with_fingerprint(entry, seen))
                continue
            counts.seen.add(document.path)
            known = None if record is None else cutter.recognise(document, record)
            if record is None or known is None:
                cut, chunks = cutter.cut(document)
                yield ChunkedDocument(cut, chunks, entry, cutter.note(cut, entry))
            elif record.created_at != known.created_at:
                unchanged.date(known, entry, cutter.note(known, entry))
            else:
                counts.keep(entry)
                unchanged.note(record, cutter.note(known, entry))
        unchanged.write()
        counts.report()


def _changed(source: IsolatedSource, paths: Sequence[str]) -> Sequence[str]:
    return source.use(Shrinking, Shrinking.changed, paths) or ()


def _seen(manifest: Manifest, path: str) -> str:
    record = manifest.get(path)
    return "" if record is None else record.seen


def _gone(source: IsolatedSource, cuts: Mapping[str, ChunkedDocument], paths: Sequence[str]) -> set[str]:
    """Return the paths of documents that were forgotten, or have another text, since they were read."""
    gone = set(source.use(Forgetful, Forgetful.forgotten, paths) or ())
    for path in paths:
        now = source.read(cuts[path].entry)
        if not isinstance(now, Document) or now.text != cuts[path].document.text:
            gone.add(path)
    return gone


def _batches(cuts: Iterator[ChunkedDocument], size: int = BATCH) -> Iterator[list[ChunkedDocument]]:
    """Group documents into batches of about ``size`` chunks; a document is never divided."""
    batch: list[ChunkedDocument] = []
    held = 0
    for cut in cuts:
        batch.append(cut)
        held += len(cut.chunks)
        if held >= size:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
