"""From the journal to rows: each file from the byte where it was left, and without what is to be struck out.

The journal is the truth. A chat whose files are not what was mirrored any more (cut, replaced, removed by hand),
or that was mirrored by another recipe, is mirrored anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any, Self
from zlib import crc32

from attrs import evolve, frozen

from klaw_core.config.model import ConversationSettings
from klaw_core.conversations.chat import Chat
from klaw_core.conversations.journal import ChatFile, Journal, JournalEntry
from klaw_core.conversations.redaction import Redactor, redactor_of
from klaw_core.conversations.summaries import SummaryFiles
from klaw_core.errors import RecordError
from klaw_core.files.atomic import open_regular
from klaw_core.files.jsonl import BadLine
from klaw_core.interfaces.store import Store
from klaw_core.values.chat_rows import JournalFileState, StoredMessage, Summary
from klaw_core.values.runs import SkippedEntry

# Messages of one transaction.
_BATCH = 1000
_BLOCK = 1 << 20


@frozen
class SyncReport:
    """What bringing the rows up to date did: messages that are new, lines that hold none, files that are none."""

    messages: int = 0
    bad: tuple[BadLine, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()

    def __add__(self, other: SyncReport) -> SyncReport:
        return SyncReport(self.messages + other.messages, self.bad + other.bad, self.skipped + other.skipped)


@frozen
class RowSync:
    """The rows of one store, kept in step with the journal. Safe for several threads and processes at once."""

    store: Store[Any]
    journal: Journal
    summaries: SummaryFiles
    redactor: Redactor

    @classmethod
    def over(cls, store: Store[Any], journal: Journal, summaries: SummaryFiles, settings: ConversationSettings) -> Self:
        """Return the rows of these files in a store."""
        return cls(store, journal, summaries, redactor_of(settings))

    def sync(self) -> SyncReport:
        """Bring the rows of every chat up to date. Raise StoreError; nothing that a file can hold raises."""
        listing = self.journal.files()
        readable = not any(skipped.keep for skipped in listing.skipped)
        report = SyncReport(skipped=listing.skipped)
        found: dict[str, Sequence[ChatFile]] = {
            name: tuple(files) for name, files in groupby(listing.files, key=lambda file: file.chat.name)
        }
        with self.store.read() as snapshot:
            known = snapshot.messages.chats()
        for name in dict.fromkeys([*found, *self.summaries.chats(), *known]):
            files = found.get(name, ())
            if files or readable:
                chat = _chat(name)
                if chat is not None:
                    report += self._sync_chat(chat, files, complete=readable, verified=True)
        return report

    def sync_chat(self, chat: Chat) -> SyncReport:
        """Bring the rows of one chat up to date. Raise StoreError."""
        listing = self.journal.files(chat)
        complete = not any(skipped.keep for skipped in listing.skipped)
        return self._sync_chat(chat, listing.files, complete=complete)

    def sync_file(self, chat: Chat, day: date) -> SyncReport:
        """Bring the rows of one day of a chat up to date. Raise StoreError."""
        file = ChatFile(chat, day, self.journal.path(chat, day))
        return self._sync_chat(chat, [file], complete=False)

    def _sync_chat(
        self, chat: Chat, files: Sequence[ChatFile], *, complete: bool, verified: bool = False
    ) -> SyncReport:
        """RowSync files of a chat: all of them, if ``complete``. Summaries come with all of them.

        With ``verified`` every byte that was mirrored is looked at, since a file may have been edited by hand.
        """
        report = SyncReport()
        recorded = self._recorded(chat)
        if (complete and recorded.keys() - {file.day for file in files}) or self._stale(
            files, recorded, verified=verified
        ):
            files = files if complete else self.journal.files(chat).files
            with self.store.write() as transaction:
                transaction.messages.purge(chat.name)
            complete, recorded = True, {}
        for file in files:
            known = recorded.get(file.day)
            if known is None or known.end != _size(file.path):
                report += self._sync_file(file)
        if complete:
            self.sync_summaries(chat)
        return report

    def sync_summaries(self, chat: Chat) -> None:
        """Make a chat's summaries in the store those of its file. Raise StoreError."""
        wanted = self.written_summaries(chat)
        with self.store.read() as snapshot:
            held = list(snapshot.messages.summaries(chat.name))
        if held != wanted:
            with self.store.write() as transaction:
                transaction.messages.put_summaries(chat.name, wanted)

    def written_summaries(self, chat: Chat) -> list[Summary]:
        """Return a chat's summaries as the store should have them."""
        return [evolve(summary, content=self.redactor.text(summary.content)) for summary in self.summaries.read(chat)]

    def _sync_file(self, file: ChatFile) -> SyncReport:
        """Mirror what was added to a file. Where another process was quicker, go on from where it came to."""
        total = 0
        while True:
            known = self._recorded(file.chat).get(file.day)
            start = 0 if known is None else known.end
            bad: list[BadLine] = []
            overtaken = False
            for messages, end, broken in self._batches(file, start):
                new = self._write(file, messages, start, end)
                if new is None:
                    overtaken = True
                    break
                total, start = total + new, end
                bad += broken
            if not overtaken:
                return SyncReport(total, tuple(bad))

    def _batches(self, file: ChatFile, start: int) -> Iterator[tuple[list[StoredMessage], int, list[BadLine]]]:
        """Yield messages as rows, the byte up to which they and the bad lines among them reach, and those lines."""
        messages: list[StoredMessage] = []
        bad: list[BadLine] = []
        end = start
        for line in self.journal.read_file(file, start):
            end = line.end
            if isinstance(line, BadLine):
                bad.append(line)
            else:
                messages.append(self.row(line))
            if len(messages) == _BATCH:
                yield messages, end, bad
                messages, bad = [], []
        yield messages, end, bad

    def _write(self, file: ChatFile, messages: Sequence[StoredMessage], start: int, end: int) -> int | None:
        """Add rows and how far the file is mirrored; return how many are new, None if it is not at ``start`` now."""
        if end == start:
            return 0
        with self.store.write() as transaction:
            known = transaction.messages.files(file.chat.name).get(file.day)
            if start != (0 if known is None else known.end):
                return None
            checksum = 0 if known is None else known.checksum
            if checksum is not None:
                checksum = _checksum(file.path, start, end, checksum)
            new = transaction.messages.insert(messages)
            state = JournalFileState(file.chat.name, file.day, end, self.redactor.recipe, checksum)
            transaction.messages.put_file(state)
        return new

    def row(self, entry: JournalEntry) -> StoredMessage:
        """Return a message of the journal as its row."""
        message, file = entry.message, entry.file
        return StoredMessage(
            id=message.id,
            channel=file.chat.channel,
            chat_id=file.chat.name,
            role=message.role,
            content=self.redactor.text(message.content),
            created_at=message.ts,
            day=file.day,
            position=entry.offset,
            type=message.type,
            metadata=self.redactor.metadata(message.meta),
        )

    def _recorded(self, chat: Chat) -> Mapping[date, JournalFileState]:
        with self.store.read() as snapshot:
            return snapshot.messages.files(chat.name)

    def _stale(self, files: Sequence[ChatFile], recorded: Mapping[date, JournalFileState], *, verified: bool) -> bool:
        """Return whether rows of these files were made by another recipe, or of a file that was another then."""
        return any(
            known.recipe != self.redactor.recipe
            or not _continues(file.path, known.end)
            or (verified and not _is_as_mirrored(file.path, known))
            for file in files
            if (known := recorded.get(file.day)) is not None
        )


def _chat(name: str) -> Chat | None:
    try:
        chat = Chat.parse(name)
    except RecordError:
        return None
    return chat if chat.name == name else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _is_as_mirrored(path: Path, known: JournalFileState) -> bool:
    """Return whether the bytes that were mirrored are those that stand there; so it is said of what cannot be read."""
    found = _checksum(path, 0, known.end, 0)
    return found is None or found == known.checksum


def _checksum(path: Path, start: int, end: int, before: int) -> int | None:
    """Return the checksum of a file's bytes up to ``end``, given that up to ``start``; None if it cannot be read."""
    try:
        with open_regular(path) as file:
            file.seek(start)
            while start < end and (block := file.read(min(_BLOCK, end - start))):
                before, start = crc32(block, before), start + len(block)
    except OSError:
        return None
    return before


def _continues(path: Path, end: int) -> bool:
    """Return whether a file still has a line that ends at byte ``end``; so it is said of one that cannot be read."""
    size = _size(path)
    if size is None or size == end:
        return True
    if size < end:
        return False
    try:
        with open_regular(path) as file:
            file.seek(end - 1)
            return end == 0 or file.read(1) == b"\n"
    except OSError:
        return True
