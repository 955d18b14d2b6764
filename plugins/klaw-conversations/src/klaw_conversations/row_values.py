"""Values of the sync of rows with the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from attrs import frozen

from klaw_conversations.journal import JournalEntry
from klaw_core import SkippedEntry
from klaw_journals import BadLine, Log, StoredMessage

#: A message as it is written, and its row, whose id is that in the line.
Row: TypeAlias = tuple[JournalEntry, StoredMessage]
#: Messages, the end of the batch in bytes, and the bad lines in it.
Batch: TypeAlias = tuple[list[Row], int, list[BadLine]]


@frozen
class SyncReport:
    """The result of a sync: the number of new messages, the invalid lines (``bad``), and the skipped files.

    A bad line is named by file and byte offset: ``conversations/telegram_123456/2026-02-24.jsonl@1024``. ``renamed``
    names the first of the new messages of a file whose id another message of the chat has. ``failures`` are those of
    listeners that were told of removed messages, and may have kept something of them.
    """

    messages: int = 0
    bad: tuple[SkippedEntry, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()
    renamed: tuple[SkippedEntry, ...] = ()
    failures: tuple[Exception, ...] = ()

    def __add__(self, other: SyncReport) -> SyncReport:
        return SyncReport(
            self.messages + other.messages,
            self.bad + other.bad,
            self.skipped + other.skipped,
            self.renamed + other.renamed,
            self.failures + other.failures,
        )


@frozen(eq=False)
class ReadAhead:
    """The batches of the first ``size`` bytes of a file, which have this checksum."""

    size: int = 0
    checksum: int = 0
    batches: tuple[Batch, ...] = ()

    @property
    def rows(self) -> Iterator[Row]:
        """The messages."""
        return (row for rows, _, _ in self.batches for row in rows)

    @property
    def has_bad_lines(self) -> bool:
        """Whether a line could not be read."""
        return any(bad for _, _, bad in self.batches)

    def is_still_in(self, log: Log) -> bool:
        """Return whether the file still begins with these bytes."""
        size = log.size
        return size is not None and size >= self.size and log.checksum(0, self.size) == self.checksum
