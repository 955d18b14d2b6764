"""What an index run over one source has done so far."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress

from attrs import define, evolve, field, frozen

from klaw_core.errors import StoreError
from klaw_core.indexing.collection import BATCH, Collection, Manifest
from klaw_core.values.documents import Document, DocumentRecord, Entry
from klaw_core.values.runs import VANISHED, IndexReport, Progress, SkippedEntry
from klaw_core.values.text import Chunk

ProgressCallback = Callable[[Progress], None]

# Unchanged documents per report: reporting one costs more than checking it.
_REPORTED_AT_ONCE = 64
# Fingerprints per transaction.
_REMEMBERED_AT_ONCE = 4096


@frozen
class ChunkedDocument:
    """A changed document, its chunks, and the entry of the scan that it was read from.

    ``seen`` is the fingerprint to remember, empty if there is none.
    """

    document: Document
    chunks: tuple[Chunk, ...]
    entry: Entry
    seen: str = ""


@define(eq=False)
class NamedDocuments:
    """Documents of a source that a run looks at without a scan: those that the source has, and those that it lacks.

    ``left_out`` are those that it lacks although their files exist.
    """

    found: list[Entry] = field(factory=list)
    missing: list[str] = field(factory=list)
    left_out: list[SkippedEntry] = field(factory=list)

    @property
    def paths(self) -> list[str]:
        """The paths of all of them."""
        return [*(entry.path for entry in self.found), *self.missing]


@define
class RunCounts:
    """Counts of one run over one source, and the callback that reports them. ``overtaken`` entries are read again."""

    on_progress: ProgressCallback
    stage: str = "index"
    total: int = 0
    skipped: list[SkippedEntry] = field(factory=list)
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
        """Count an unchanged entry."""
        self.seen.add(entry.path)
        self.unchanged += 1
        self.documents += 1
        self.bytes += entry.size
        if not self.unchanged % _REPORTED_AT_ONCE:
            self.report()

    def report(self) -> None:
        """Report the progress to the caller."""
        self.on_progress(Progress(self.stage, min(self.bytes, self.total), self.total, self.documents, self.chunks))

    def report_part(self, batch: Sequence[ChunkedDocument], done: int, total: int) -> None:
        """Report ``done`` of ``total`` texts of a batch, which may take minutes."""
        if done < total:
            share = done / total
            size, chunks = sum(cut.entry.size for cut in batch), sum(len(cut.chunks) for cut in batch)
            done_bytes = min(self.bytes + int(share * size), self.total)
            self.on_progress(
                Progress(self.stage, done_bytes, self.total, self.documents, self.chunks + int(share * chunks))
            )

    def count(self, batch: Sequence[ChunkedDocument], known: Container[str] = (), refused: Container[str] = ()) -> None:
        """Count a finished batch, and report it. ``known`` documents existed before, ``refused`` ones are overtaken."""
        self.overtaken += [cut.entry for cut in batch if cut.document.path in refused]
        written = [cut for cut in batch if cut.document.path not in refused]
        new = sum(cut.document.path not in known for cut in written)
        self.added += new
        self.changed += len(written) - new
        self.chunks += sum(len(cut.chunks) for cut in written)
        self.bytes += sum(cut.entry.size for cut in written)
        self.documents += len(written)
        self.report()

    def missing(self, before: Manifest, *, named: bool) -> Manifest:
        """Return the records ``before`` the run of the documents that it has not found. ``named``: it did not scan."""
        if named:  # a file that vanishes while it is read is a deleted file, which no later look at it reports
            self.skipped = [item for item in self.skipped if item.reason != VANISHED or item.path not in before]
        gone = (path for path in before if path not in self.seen and not stays(path, self.skipped))
        return {path: before[path] for path in gone}

    def summary(self) -> IndexReport:
        """Return the counts."""
        return IndexReport(
            added=self.added,
            changed=self.changed,
            unchanged=self.unchanged,
            removed=self.removed,
            skipped=tuple(self.skipped),
            chunks=self.chunks,
        )


def stays(path: str, skipped: Iterable[SkippedEntry]) -> bool:
    """Return whether the document at a path stays indexed because it, or a directory above it, could not be read."""
    kept = (item.path for item in skipped if item.keep)
    return any(path == place or path.startswith(f"{place}/") for place in kept)


@define
class UnchangedDocuments:
    """Collects dates and fingerprints of unchanged documents, and writes many in one transaction."""

    collection: Collection
    manifest: Manifest
    counts: RunCounts
    _records: list[DocumentRecord] = field(factory=list, init=False)
    _dated: dict[str, tuple[Document, Entry, str]] = field(factory=dict, init=False)

    def note(self, record: DocumentRecord, seen: str) -> None:
        """Collect the new fingerprint of a document. If it cannot be written, the next run reads the document."""
        if seen and seen != record.seen:
            self._records.append(evolve(record, seen=seen))
            if len(self._records) >= _REMEMBERED_AT_ONCE:
                self.write()

    def date(self, document: Document, entry: Entry, seen: str) -> None:
        """Collect the new date and fingerprint of a document."""
        self._dated[document.path] = document, entry, seen
        if len(self._dated) >= BATCH:
            self.write()

    def write(self) -> None:
        """Write what was collected. Raise StoreError if dates cannot be written."""
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
