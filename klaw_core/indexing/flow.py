"""The index flow: a source in, an index that agrees with it out.

scan → unchanged by hash? skip → chunk → one transaction a batch: rows, words, the vectors that are cached →
what the scan no longer found is removed → what lacks a vector gets one, unless that is left for later
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from klaw_core.embedding.run import EmbeddingRun
from klaw_core.errors import EmbeddingError, PluginError, StoreError
from klaw_core.indexing.chunking import FormatChunker, TokenMeter
from klaw_core.indexing.collection import BATCH, Collection, Manifest
from klaw_core.indexing.cutting import Cutter, seen_anew
from klaw_core.indexing.redacting import DocumentRedactor
from klaw_core.interfaces.source import ForgetfulSource, Source
from klaw_core.interfaces.store import Store
from klaw_core.values.documents import Document, DocumentRecord, Entry, RecordedDocuments
from klaw_core.values.runs import VANISHED, IndexReport, Progress, SkippedEntry
from klaw_core.values.text import Chunk
from klaw_core.values.vectors import SpaceRecord

ProgressCallback = Callable[[Progress], None]

#: The name of the lock that a run holds while it embeds; see ``Store.lock``.
EMBEDDING_LOCK = "embedding"

# So often a document is read anew because another run has written it; the next run does what is left.
_MOST_READINGS = 5

# Documents that have not changed are counted to the caller so many at once: one takes less time than to tell of it.
_REPORTED_AT_ONCE = 64

# Of so many unchanged documents it is remembered at once how to recognise them.
_REMEMBERED_AT_ONCE = 4096


@frozen
class _ChunkedDocument:
    """A document that has changed, cut into chunks, and the entry of the scan that it was read from."""

    document: Document
    chunks: tuple[Chunk, ...]
    entry: Entry
    seen: str = ""


@define
class _RunCounts:
    """What a run over a source has done so far: the one mutable thing of the flow."""

    on_progress: ProgressCallback
    total: int
    skipped: list[SkippedEntry]
    stage: str = "index"
    bytes: int = 0
    documents: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    chunks: int = 0
    seen: set[str] = field(factory=set)
    overtaken: list[Entry] = field(factory=list)

    def keep(self, entry: Entry) -> None:
        """Note that an entry has not changed; tell the caller of every so many."""
        self.seen.add(entry.path)
        self.unchanged += 1
        self.documents += 1
        self.bytes += entry.size
        if not self.unchanged % _REPORTED_AT_ONCE:
            self.report()

    def report(self) -> None:
        """Tell the caller."""
        self.on_progress(Progress(self.stage, min(self.bytes, self.total), self.total, self.documents, self.chunks))

    def report_part(self, batch: Sequence[_ChunkedDocument], done: int, total: int) -> None:
        """Tell the caller that ``done`` of ``total`` texts of a batch are dealt with; a batch may take minutes."""
        if done < total:
            share = done / total
            size, chunks = sum(cut.entry.size for cut in batch), sum(len(cut.chunks) for cut in batch)
            done_bytes = min(self.bytes + int(share * size), self.total)
            self.on_progress(
                Progress(self.stage, done_bytes, self.total, self.documents, self.chunks + int(share * chunks))
            )

    def count(self, batch: Sequence[_ChunkedDocument]) -> None:
        """Note that a batch is dealt with, and tell the caller."""
        self.chunks += sum(len(cut.chunks) for cut in batch)
        self.bytes += sum(cut.entry.size for cut in batch)
        self.documents += len(batch)
        self.report()


class _TakenError(Exception):
    """Ends an attempt to take a lock that another run holds."""


@contextmanager
def turn_to_embed(
    store: Store[Any], data_dir: Path, run: EmbeddingRun, on_progress: ProgressCallback, *, patient: bool
) -> Iterator[bool]:
    """Let one run at a time embed: what another is about to be answered must not be asked, and paid for, twice.

    Give True when it is this run's turn. A run that will not embed needs no turn, nor does one where nothing can be
    written. One that is not ``patient`` does not wait: it is given False while another run embeds.
    """
    if run.stopped or not os.access(data_dir, os.W_OK):
        yield True
        return

    def wait() -> None:
        on_progress(Progress("wait" if patient else "left", 0, 0))
        if not patient:
            raise _TakenError

    with ExitStack() as stack:
        try:
            stack.enter_context(store.lock(EMBEDDING_LOCK, wait))
        except _TakenError:
            yield False
        else:
            yield True


@frozen
class Indexer:
    """Makes a collection agree with its sources. ``chunker_of`` gives the chunker of a ``Document.format``."""

    collection: Collection
    chunker_of: Callable[[str], FormatChunker]
    redactor: DocumentRedactor

    def sync(
        self, source: Source, *, force: bool = False, on_progress: ProgressCallback = lambda _: None
    ) -> IndexReport:
        """Write what has changed, then embed whatever has no vector yet; see :meth:`write` and :meth:`embed`."""
        run = EmbeddingRun()
        return self.write(source, run, force=force, on_progress=on_progress) + self.embed(run, on_progress=on_progress)

    def write(
        self,
        source: Source,
        run: EmbeddingRun,
        *,
        force: bool = False,
        verify: bool = False,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Store what is new or changed, to be found by words at once, and remove what is gone. Nothing is embedded.

        ``force`` cuts and writes every document again, changed or not; ``verify`` reads every document, whatever the
        fingerprint of its entry says. What lies below a place that could not be looked at stays. A document that
        another run writes meanwhile is read again: of two texts the one that was read last is indexed. Raise
        WorkspaceError, StoreError.
        """
        started = time.monotonic()
        # Read before the scan: what another process adds in between is then not taken for something deleted.
        before = manifest = self._manifest(source)
        counts, entries = self._begin(source, on_progress)
        cached = run.cached
        for _ in range(_MOST_READINGS):
            for batch in _batches(self._changed(source, entries, manifest, counts, force=force, verify=verify)):
                self._write(batch, manifest, counts, run)
            entries, counts.overtaken = counts.overtaken, []
            if not entries:
                break
            manifest = self._manifest(source)  # before the entries are read, as before the scan
        counts.skipped += [
            SkippedEntry(entry.path, "is being indexed by another process", keep=True) for entry in entries
        ]
        self._remove_missing(before, counts, forget=bool(getattr(source, "forgets_missing", False)))
        return IndexReport(
            added=counts.added,
            changed=counts.changed,
            unchanged=counts.unchanged,
            removed=counts.removed,
            skipped=tuple(counts.skipped),
            chunks=counts.chunks,
            cached=run.cached - cached,
            seconds=time.monotonic() - started,
        )

    def embed(
        self, run: EmbeddingRun, *, limit: int | None = None, on_progress: ProgressCallback = lambda _: None
    ) -> IndexReport:
        """Give chunks that have none their vector, in order of their keys, at most ``limit`` of them.

        Where the embedder fails the report says how many lack one, and why. Raise StoreError.
        """
        started, embedded, cached = time.monotonic(), run.embedded, run.cached
        lacking = self.collection.backfill(
            run, lambda done, total: on_progress(Progress("embed", done, total)), limit=limit
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
        source: Source,
        run: EmbeddingRun,
        record: SpaceRecord,
        *,
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
        on_progress: ProgressCallback = lambda _: None,
    ) -> None:
        """Cut every document and put the vectors of its chunks into the cache, writing nothing else.

        This is how the vectors of another space, that of ``record``, are made while the index goes on answering in
        its own. Each batch is looked up and embedded ``alone``, so that of two runs at once one finds what the other
        has paid for. A text that the embedder refuses is left out. Raise what stopped it, WorkspaceError, StoreError.
        """
        counts, entries = self._begin(source, on_progress)
        counts.stage = "ahead"
        for batch in _batches(self._changed(source, entries, {}, counts, force=True), self._call_size(run)):
            with alone():
                found = partial(counts.report_part, batch)
                cuts = {cut.document.path: cut for cut in batch}
                documents = {path: cut.chunks for path, cut in cuts.items()}
                self.collection.cache(documents, run, record, found, gone=partial(_gone, source, cuts))
            if run.failing and run.error is not None:
                raise run.error
            counts.count(batch)

    def put(self, documents: Sequence[Document], run: EmbeddingRun) -> IndexReport:
        """Index documents now; the report says how many chunks could not be embedded, and why.

        Words find them at once in any case, and the next run tries again to embed them. Raise StoreError.
        """
        started, embedded = time.monotonic(), run.embedded
        cutter = self.cutter()
        report = IndexReport()
        for first in range(0, len(documents), BATCH):
            cuts = [cutter.cut(document) for document in documents[first : first + BATCH]]
            for batch in _batches(_ChunkedDocument(*cut, Entry(cut[0].path)) for cut in cuts):
                written = self.collection.replace([(cut.document, cut.chunks) for cut in batch])
                lacking = self.collection.lacking_of(written)
                self.collection.embed(lacking, run)
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

    def write_entries(
        self,
        source: Source,
        entries: Sequence[Entry],
        gone: Sequence[str],
        run: EmbeddingRun,
        *,
        on_progress: ProgressCallback = lambda _: None,
    ) -> IndexReport:
        """Store single documents of a source, without scanning it, and remove others. Nothing is embedded.

        Raise WorkspaceError, StoreError.
        """
        started = time.monotonic()
        manifest = self._records(source, [*(entry.path for entry in entries), *gone])
        counts = _RunCounts(on_progress, 0, [])
        for batch in _batches(self._changed(source, entries, manifest, counts, force=False)):
            self._write(batch, manifest, counts, run)
        # A file that vanishes while it is read is gone like one that was not there before.
        vanished = [item.path for item in counts.skipped if item.reason == VANISHED]
        missing = [path for path in (*gone, *vanished) if path in manifest]
        forget = bool(getattr(source, "forgets_missing", False))
        self._remove({path: manifest[path] for path in missing}, counts, forget=forget)
        return IndexReport(
            added=counts.added,
            changed=counts.changed,
            unchanged=counts.unchanged,
            removed=counts.removed,
            skipped=tuple(item for item in counts.skipped if item.path not in missing),
            chunks=counts.chunks,
            seconds=time.monotonic() - started,
        )

    def _records(self, source: Source, paths: Sequence[str]) -> Manifest:
        """Return the manifest of some documents only."""
        with self.collection.store.read() as snapshot:
            found = {path: snapshot.record(self.collection.name, source.origin, path) for path in paths}
        return {path: record for path, record in found.items() if record is not None}

    def cutter(self) -> Cutter:
        """Return how the collection's documents are cut: the chunkers, their options, and whose tokens they count."""
        try:
            model = self.collection.counted_by()
        except (EmbeddingError, PluginError):  # nothing is embedded yet, and no model can be asked its name
            model = "unknown"
        meter = TokenMeter(self.collection.embedder)
        return Cutter(self.chunker_of, model, meter, self.redactor)

    def _manifest(self, source: Source) -> Manifest:
        with self.collection.store.read() as snapshot:
            return snapshot.manifest(self.collection.name, source.origin)

    def _call_size(self, run: EmbeddingRun) -> int:
        return max(BATCH, run.call_size(self.collection.embedder))

    def _begin(self, source: Source, on_progress: ProgressCallback) -> tuple[_RunCounts, list[Entry]]:
        scanned = list(source.scan())
        entries = [item for item in scanned if isinstance(item, Entry)]
        skipped = [item for item in scanned if isinstance(item, SkippedEntry)]
        counts = _RunCounts(on_progress, sum(entry.size for entry in entries), skipped)
        counts.report()
        return counts, entries

    def _changed(
        self,
        source: Source,
        entries: Sequence[Entry],
        manifest: Manifest,
        counts: _RunCounts,
        *,
        force: bool,
        verify: bool = False,
    ) -> Iterator[_ChunkedDocument]:
        """Yield the documents whose text is not what the manifest says, cut into chunks.

        An entry whose fingerprint the last run has seen is not read, but for ``verify``.
        """
        cutter = self.cutter()
        read_changed = getattr(source, "read_changed", None)
        unchanged = _Unchanged(self.collection, manifest, counts)
        seen_of = manifest.seen if isinstance(manifest, RecordedDocuments) else partial(_seen, manifest)
        for entry in entries:
            seen = "" if force else seen_of(entry.path)
            if not verify and cutter.is_seen(entry, seen, source.origin):
                counts.keep(entry)
                continue
            record = None if force else manifest.get(entry.path)
            digest = cutter.digest_of(seen, source.origin)
            document = source.read(entry) if read_changed is None or not digest else read_changed(entry, digest)
            if isinstance(document, SkippedEntry):
                counts.skipped.append(document)
                counts.bytes += entry.size
                continue
            if document is None:
                assert record is not None
                counts.keep(entry)
                unchanged.note(record, seen_anew(entry, seen))
                continue
            counts.seen.add(document.path)
            known = None if record is None else cutter.recognise(document, record)
            if record is None or known is None:
                cut, chunks = cutter.cut(document)
                yield _ChunkedDocument(cut, chunks, entry, cutter.note(cut, entry))
            elif record.created_at != known.created_at:
                unchanged.date(known, entry, cutter.note(known, entry))
            else:
                counts.keep(entry)
                unchanged.note(record, cutter.note(known, entry))
        unchanged.write()
        counts.report()

    def _write(
        self, batch: Sequence[_ChunkedDocument], manifest: Manifest, counts: _RunCounts, run: EmbeddingRun
    ) -> None:
        """Replace a batch of documents in one transaction, but for those that another run has written meanwhile."""
        seen = {cut.document.path: cut.seen for cut in batch if cut.seen}
        written = self.collection.replace([(cut.document, cut.chunks) for cut in batch], manifest, seen)
        run.cached += written.cached
        run.waiting.setdefault(self.collection.name, []).extend(written.lacking)
        counts.overtaken += [cut.entry for cut in batch if cut.document.path in written.refused]
        kept = [cut for cut in batch if cut.document.path not in written.refused]
        new = sum(cut.document.path not in manifest for cut in kept)
        counts.added += new
        counts.changed += len(kept) - new
        counts.count(kept)

    def _remove_missing(self, manifest: Manifest, counts: _RunCounts, *, forget: bool) -> None:
        missing = [path for path in manifest if path not in counts.seen and not stays(path, counts.skipped)]
        self._remove({path: manifest[path] for path in missing}, counts, forget=forget)

    def _remove(self, missing: Manifest, counts: _RunCounts, *, forget: bool) -> None:
        """Remove documents, but for those that another run has written meanwhile."""
        if missing:
            self.collection.remove(list(missing), forget=forget, manifest=missing)
            with self.collection.store.read() as snapshot:
                counts.removed = sum(
                    snapshot.record(self.collection.name, record.origin, path) is None
                    for path, record in missing.items()
                )


def _seen(manifest: Manifest, path: str) -> str:
    record = manifest.get(path)
    return "" if record is None else record.seen


@define
class _Unchanged:
    """What is to be written of documents whose text is unchanged, many in one transaction."""

    collection: Collection
    manifest: Manifest
    counts: _RunCounts
    _records: list[DocumentRecord] = field(factory=list, init=False)
    _dated: dict[str, tuple[Document, Entry, str]] = field(factory=dict, init=False)

    def note(self, record: DocumentRecord, seen: str) -> None:
        """Note how to recognise a document that is recorded so. It is written if it can be: otherwise it is read."""
        if seen and seen != record.seen:
            self._records.append(evolve(record, seen=seen))
            if len(self._records) >= _REMEMBERED_AT_ONCE:
                self.write()

    def date(self, document: Document, entry: Entry, seen: str) -> None:
        """Note that a document has another date, and how to recognise it."""
        self._dated[document.path] = document, entry, seen
        if len(self._dated) >= BATCH:
            self.write()

    def write(self) -> None:
        """Write what was noted. Raise StoreError if dates cannot be written."""
        dated, self._dated = self._dated, {}
        if dated:
            seen = {path: note for path, (_, _, note) in dated.items() if note}
            refused = self.collection.touch([document for document, _, _ in dated.values()], self.manifest, seen)
            for path, (_, entry, _) in dated.items():
                if path in refused:
                    self.counts.overtaken.append(entry)
                else:
                    self.counts.keep(entry)
        records, self._records = self._records, []
        with suppress(StoreError):
            self.collection.remember(records)


def _gone(source: Source, cuts: Mapping[str, _ChunkedDocument], paths: Sequence[str]) -> set[str]:
    """Return the documents that were forgotten, or have another text, since they were read."""
    gone = set(source.forgotten(paths)) if isinstance(source, ForgetfulSource) else set()
    for path in paths:
        now = source.read(cuts[path].entry)
        if not isinstance(now, Document) or now.text != cuts[path].document.text:
            gone.add(path)
    return gone


def stays(path: str, skipped: Iterable[SkippedEntry]) -> bool:
    """Return whether what was indexed at a path before stays, because it, or a place above it, could not be read."""
    kept = (item.path for item in skipped if item.keep)
    return any(path == place or path.startswith(f"{place}/") for place in kept)


def _batches(cuts: Iterator[_ChunkedDocument], size: int = BATCH) -> Iterator[list[_ChunkedDocument]]:
    """Group documents until a batch holds ``size`` chunks; one document is never divided."""
    batch: list[_ChunkedDocument] = []
    held = 0
    for cut in cuts:
        batch.append(cut)
        held += len(cut.chunks)
        if held >= size:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch
