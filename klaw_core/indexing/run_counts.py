"""What an index run over one source has done so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from klaw_core.values.documents import Document, Entry
from klaw_core.values.runs import Progress, SkippedEntry
from klaw_core.values.text import Chunk

ProgressCallback = Callable[[Progress], None]

# Unchanged documents per report: reporting one costs more than checking it.
_REPORTED_AT_ONCE = 64


@frozen
class ChunkedDocument:
    """A changed document, its chunks, and the entry of the scan that it was read from.

    ``seen`` is the fingerprint to remember, empty if there is none.
    """

    document: Document
    chunks: tuple[Chunk, ...]
    entry: Entry
    seen: str = ""


@define
class RunCounts:
    """Counts of one run over one source, and the callback that reports them. ``overtaken`` entries are read again."""

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

    def count(self, batch: Sequence[ChunkedDocument]) -> None:
        """Count a finished batch, and report it."""
        self.chunks += sum(len(cut.chunks) for cut in batch)
        self.bytes += sum(cut.entry.size for cut in batch)
        self.documents += len(batch)
        self.report()
