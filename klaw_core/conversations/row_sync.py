"""Mirror the journal to rows: every file is read from the last synced byte, and secrets are redacted.

All rows of a chat are made again if a mirrored part of its files has changed (cut, replaced or deleted by hand), or if
the redaction patterns have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Any, Self, TypeAlias

from attrs import evolve, frozen

from klaw_core.conversations.chat import Chat
from klaw_core.conversations.journal import ChatFile, Journal, JournalEntry
from klaw_core.conversations.redaction import Redactor, redactor_of
from klaw_core.conversations.source import document_path
from klaw_core.conversations.summaries import SummaryFiles, summaries_path
from klaw_core.errors import RecordError
from klaw_core.interfaces.journal import Log
from klaw_core.interfaces.store import Store
from klaw_core.values.chat_rows import JournalFileState, StoredMessage, Summary
from klaw_core.values.config import ConversationSettings
from klaw_core.values.journals import BadLine
from klaw_core.values.runs import SkippedEntry

# Messages per transaction.
_BATCH = 1000
# Messages per insert where all rows of a chat are made again, and bytes of its files that are read before that.
_TOGETHER = 20_000
_MOST_AHEAD_BYTES = 16 * 1024 * 1024
# In place of the recipe of a file's rows, while messages are being removed from the files of its chat.
_FORGETTING = "forgetting"


#: Messages as rows, the end of the batch in bytes, and the bad lines in it.
_Batch: TypeAlias = tuple[list[StoredMessage], int, list[BadLine]]


@frozen
class SyncReport:
    """The result of a sync: the number of new messages, the invalid lines (``bad``), and the skipped files.

    A bad line is named by file and byte offset: ``conversations/telegram_123456/2026-02-24.jsonl@1024``.
    """

    messages: int = 0
    bad: tuple[SkippedEntry, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()

    def __add__(self, other: SyncReport) -> SyncReport:
        return SyncReport(self.messages + other.messages, self.bad + other.bad, self.skipped + other.skipped)


@frozen(eq=False)
class _ReadAhead:
    """The batches of the first ``size`` bytes of a file, which have this checksum."""

    size: int
    checksum: int
    batches: tuple[_Batch, ...]

    def is_still_in(self, log: Log) -> bool:
        """Return whether the file still begins with these bytes."""
        size = log.size
        return size is not None and size >= self.size and log.checksum(0, self.size) == self.checksum


@frozen
class RowSync:
    """Keeps the rows of one store in sync with the journal. Safe for concurrent threads and processes."""

    store: Store[Any]
    journal: Journal
    summaries: SummaryFiles
    redactor: Redactor
    # Called with the documents of which messages or summaries were forgotten, before their rows are made again.
    forget_documents: Callable[[Sequence[str]], object] = lambda _paths: None

    @classmethod
    def over(
        cls,
        store: Store[Any],
        journal: Journal,
        summaries: SummaryFiles,
        settings: ConversationSettings,
        forget_documents: Callable[[Sequence[str]], object] = lambda _paths: None,
    ) -> Self:
        """Return the sync of these files with a store."""
        return cls(store, journal, summaries, redactor_of(settings), forget_documents)

    def sync(self) -> SyncReport:
        """Bring the rows of every chat up to date. Invalid content is reported, not raised. Raise StoreError."""
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
        return self._sync_chat(chat, [self.journal.file(chat, day)], complete=False)

    def _sync_chat(
        self, chat: Chat, files: Sequence[ChatFile], *, complete: bool, verified: bool = False
    ) -> SyncReport:
        """Sync files of a chat; ``complete`` means that these are all of its files, and also syncs its summaries.

        With ``verified`` the mirrored bytes are read again and compared by checksum, to find manual edits.
        """
        recorded = self._recorded(chat)
        mirrored = [(file, recorded[file.day]) for file in files if file.day in recorded]
        if forgetting := [day for day, known in recorded.items() if known.recipe == _FORGETTING]:
            paths = [document_path(self.journal.file(chat, day)) for day in forgetting]
            return self.finish_forgetting(chat, [*paths, summaries_path(chat)])
        is_stale = any(
            known.recipe != self.redactor.recipe or _has_changed(file.log, known, verified=verified)
            for file, known in mirrored
        )
        if is_stale or (complete and recorded.keys() - {file.day for file in files}):
            return self._mirror_again(chat)
        report = SyncReport()
        for file in files:
            known = recorded.get(file.day)
            if known is None or known.end != file.log.size:
                report += self._sync_file(file)
        if complete:
            self.sync_summaries(chat)
        return report

    def begin_forgetting(self, chat: Chat, days: Collection[date]) -> None:
        """Record that messages are about to be removed from the files of these days. Raise StoreError.

        If the process dies before :meth:`finish_forgetting`, the next sync of the chat does that.
        """
        with self.store.write() as transaction:
            for day, state in transaction.messages.files(chat.name).items():
                if day in days:
                    transaction.messages.put_file(evolve(state, recipe=_FORGETTING))

    def finish_forgetting(self, chat: Chat, paths: Sequence[str]) -> SyncReport:
        """Remove what is left of messages that were removed from the files of these documents. Raise StoreError.

        The documents come before the rows, which have what :meth:`begin_forgetting` has recorded.
        """
        self.forget_documents(paths)
        return self._mirror_again(chat)

    def _mirror_again(self, chat: Chat) -> SyncReport:
        """Make all rows of a chat again, in one transaction, so that readers always find its messages.

        Its files are read before the transaction, so that other writers do not wait for that. A file that another
        program has changed since, other than by appending, is read again inside.
        """
        ahead = self._read_ahead(chat)
        report = SyncReport()
        with self.store.write() as transaction:
            transaction.messages.purge(chat.name)
            waiting: list[StoredMessage] = []  # inserted together, because the session is derived after each insert
            for file in self.journal.files(chat).files:
                end = 0
                for messages, reached, broken in self._batches_after(file, ahead.get(file.day)):
                    end = reached
                    waiting += messages
                    report += SyncReport(bad=_named(file, broken))
                    if len(waiting) >= _TOGETHER:
                        report += SyncReport(transaction.messages.insert(waiting))
                        waiting = []
                if end:
                    transaction.messages.put_file(self._state(file, end, file.log.checksum(0, end)))
            report += SyncReport(transaction.messages.insert(waiting))
            transaction.messages.put_summaries(chat.name, self.written_summaries(chat))
        return report

    def _read_ahead(self, chat: Chat) -> Mapping[date, _ReadAhead]:
        """Read the files of a chat, up to a limit; leave out those that have no checksum."""
        found: dict[date, _ReadAhead] = {}
        left = _MOST_AHEAD_BYTES
        for file in self.journal.files(chat).files:
            size = file.log.size or 0
            # The checksum comes first: if it is still the same in the transaction, so was what is read here.
            checksum = file.log.checksum(0, size)
            if not size or checksum is None or size > left:
                continue
            left -= size
            found[file.day] = _ReadAhead(size, checksum, tuple(self._batches(file, 0, size)))
        return found

    def _batches_after(self, file: ChatFile, ahead: _ReadAhead | None) -> Iterator[_Batch]:
        """Yield the batches that were read ahead and then the rest of the file; all of it if it has changed."""
        start = 0
        if ahead is not None and ahead.is_still_in(file.log):
            yield from ahead.batches
            start = ahead.batches[-1][1]
        yield from self._batches(file, start)

    def sync_summaries(self, chat: Chat) -> None:
        """Replace a chat's summaries in the store with those of its file. Raise StoreError."""
        wanted = self.written_summaries(chat)
        with self.store.read() as snapshot:
            held = list(snapshot.messages.summaries(chat.name))
        if held != wanted:
            with self.store.write() as transaction:
                transaction.messages.put_summaries(chat.name, wanted)

    def written_summaries(self, chat: Chat) -> list[Summary]:
        """Return a chat's summaries from its file, redacted for the store."""
        return [evolve(summary, content=self.redactor.text(summary.content)) for summary in self.summaries.read(chat)]

    def _sync_file(self, file: ChatFile) -> SyncReport:
        """Mirror the new lines of a file. If another process mirrors the same lines, continue after them."""
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
                return SyncReport(total, _named(file, bad))

    def _batches(self, file: ChatFile, start: int, stop: int | None = None) -> Iterator[_Batch]:
        """Yield the lines from ``start``, of which none ends after ``stop``, in batches."""
        messages: list[StoredMessage] = []
        bad: list[BadLine] = []
        end = start
        for line in self.journal.read_file(file, start):
            if stop is not None and line.end > stop:
                break
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
        """Add rows and record ``end`` as the file's synced byte; return the number of new rows.

        Return None, and write nothing, if the file's synced byte is no longer ``start``.
        """
        if end == start:
            return 0
        with self.store.write() as transaction:
            known = transaction.messages.files(file.chat.name).get(file.day)
            if start != (0 if known is None else known.end):
                return None
            checksum = 0 if known is None else known.checksum
            if checksum is not None:
                checksum = file.log.checksum(start, end, checksum)
            new = transaction.messages.insert(messages)
            transaction.messages.put_file(self._state(file, end, checksum))
        return new

    def _state(self, file: ChatFile, end: int, checksum: int | None) -> JournalFileState:
        return JournalFileState(file.chat.name, file.day, end, self.redactor.recipe, checksum)

    def row(self, entry: JournalEntry) -> StoredMessage:
        """Return the row of a journal entry, with secrets redacted."""
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


def _named(file: ChatFile, bad: Sequence[BadLine]) -> tuple[SkippedEntry, ...]:
    return tuple(SkippedEntry(f"{document_path(file)}@{line.offset}", line.reason, keep=True) for line in bad)


def _chat(name: str) -> Chat | None:
    try:
        chat = Chat.parse(name)
    except RecordError:
        return None
    return chat if chat.name == name else None


def _has_changed(log: Log, known: JournalFileState, *, verified: bool) -> bool:
    """Return whether the mirrored part of a file is no longer what it was."""
    return not log.is_end(known.end) or (verified and not _is_unchanged(log, known))


def _is_unchanged(log: Log, known: JournalFileState) -> bool:
    """Return whether the mirrored bytes are unchanged; True if they cannot be read."""
    found = log.checksum(0, known.end)
    return found is None or found == known.checksum
