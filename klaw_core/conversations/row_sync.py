"""Mirror the journal to rows: every file is read from the last synced byte, and secrets are redacted.

All rows of a chat are made again if a mirrored part of its files has changed (cut, replaced or deleted by hand), or if
the redaction patterns have changed. A row of a message that is no longer in the files shows that its text must still be
forgotten. So the text always leaves the index before the row is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from itertools import groupby
from typing import Any, Self, TypeAlias

from attrs import evolve, frozen

from klaw_core.conversations.chat import Chat
from klaw_core.conversations.journal import ChatFile, Journal, JournalEntry
from klaw_core.conversations.source import document_path
from klaw_core.conversations.summaries import SummaryFiles, summaries_path
from klaw_core.errors import RecordError
from klaw_core.interfaces.journal import Log
from klaw_core.interfaces.messages import MessageReader, MessageWriter
from klaw_core.interfaces.store import Store
from klaw_core.redaction import Redactor
from klaw_core.values.chat_rows import JournalFileState, StoredMessage, Summary
from klaw_core.values.config import ConversationSettings
from klaw_core.values.journals import BadLine
from klaw_core.values.runs import SkippedEntry

# Messages per transaction.
_BATCH = 1000
# Messages per insert where all rows of a chat are made again, and bytes of its files that are read before that.
_TOGETHER = 20_000
_MAX_AHEAD_BYTES = 16 * 1024 * 1024


#: Messages as rows, the end of the batch in bytes, and the bad lines in it.
_Batch: TypeAlias = tuple[list[StoredMessage], int, list[BadLine]]
#: A message or a summary, with the path of its document.
_Part: TypeAlias = tuple[str, object]


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

    size: int = 0
    checksum: int = 0
    batches: tuple[_Batch, ...] = ()

    @property
    def ids(self) -> set[str]:
        """The ids of the messages."""
        return {message.id for messages, _, _ in self.batches for message in messages}

    @property
    def has_bad_lines(self) -> bool:
        """Whether a line could not be read."""
        return any(bad for _, _, bad in self.batches)

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
    # Called with the documents that have lost messages or summaries, before their rows are made again.
    forget_removed_text: Callable[[Sequence[str]], object] = lambda _paths: None

    @classmethod
    def over(
        cls,
        store: Store[Any],
        journal: Journal,
        summaries: SummaryFiles,
        settings: ConversationSettings,
        forget_removed_text: Callable[[Sequence[str]], object] = lambda _paths: None,
    ) -> Self:
        """Return the sync of these files with a store."""
        return cls(store, journal, summaries, settings.redactor, forget_removed_text)

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
                chat = chat_of(name)
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
        is_stale = any(
            known.recipe != self.redactor.recipe or _has_changed(file.log, known, verified=verified)
            for file, known in mirrored
        )
        if is_stale or (complete and recorded.keys() - {file.day for file in files}):
            return self.mirror_again(chat)
        report = SyncReport()
        for file in files:
            known = recorded.get(file.day)
            if known is None or known.end != file.log.size:
                report += self._sync_file(file)
        if complete:
            self.sync_summaries(chat)
        return report

    def mirror_again(self, chat: Chat, removed: AbstractSet[str] = frozenset()) -> SyncReport:
        """Make all rows of a chat again, in one transaction, so that readers always find its messages.

        The text of messages and summaries that have left the files leaves the index first: no other process can do that
        when the rows are gone. The files are read before the transaction, so that other writers do not wait for that. A
        file that has changed since, other than by appending, is read again inside. ``removed`` has the ids of messages
        that were removed from the files. Raise StoreError.
        """
        read_ahead = self._read_ahead(chat)
        forgotten: set[_Part] = set()
        while True:
            with self.store.write() as transaction:
                rows = transaction.messages  # before the files: a store with several writers locks the messages here
                files = self.journal.files(chat).files
                ahead = {file.day: self._still_ahead(file, read_ahead) for file in files}
                gone = self._gone(chat, files, ahead, rows, removed)
                if gone <= forgotten:
                    return self._replace_rows(chat, files, ahead, rows)
            self.forget_removed_text(sorted({path for path, _ in gone}))
            forgotten |= gone

    def _replace_rows(
        self, chat: Chat, files: Sequence[ChatFile], ahead: Mapping[date, _ReadAhead], rows: MessageWriter
    ) -> SyncReport:
        report = SyncReport()
        rows.purge(chat.name)
        waiting: list[StoredMessage] = []  # inserted together, because the session is derived after each insert
        for file in files:
            known = ahead[file.day]
            end = 0
            for messages, reached, broken in (*known.batches, *self._batches(file, known.size)):
                end = reached
                waiting += messages
                report += SyncReport(bad=_named(file, broken))
                if len(waiting) >= _TOGETHER:
                    report += SyncReport(rows.insert(waiting))
                    waiting = []
            if end:
                rows.put_file(self._state(file, end, file.log.checksum(known.size, end, known.checksum)))
        report += SyncReport(rows.insert(waiting))
        rows.put_summaries(chat.name, self.written_summaries(chat))
        return report

    def _gone(
        self,
        chat: Chat,
        files: Sequence[ChatFile],
        ahead: Mapping[date, _ReadAhead],
        rows: MessageReader,
        removed: AbstractSet[str],
    ) -> set[_Part]:
        """Return the messages and summaries that have rows but are no longer in a file.

        An index run forgets the documents of files that do not exist. Messages in lines or files that cannot be read
        do not count as gone, unless they were ``removed``.
        """
        held: dict[date, set[str]] = {}
        for row in rows.all(chat.name):
            held.setdefault(row.day, set()).add(row.id)
        gone: set[_Part] = set()
        for file in files:
            known, ids = ahead[file.day], held.get(file.day, set())
            ids -= known.ids
            if known.has_bad_lines:
                ids &= removed
            for line in self.journal.read_file(file, known.size) if ids else ():
                if isinstance(line, JournalEntry):
                    ids.discard(line.message.id)
                else:
                    ids &= removed
            gone |= {(document_path(file), name) for name in ids}
        if gone:  # a message may also have been in the file of another day, of which it has no row
            states = rows.files(chat.name)
            changed = (file for file in files if file.day in states and not _is_unchanged(file.log, states[file.day]))
            gone |= {(document_path(file), None) for file in changed}
        return gone | self._gone_summaries(chat, rows)

    def _gone_summaries(self, chat: Chat, rows: MessageReader) -> set[_Part]:
        """Return the summaries that have rows but are not in the file, or not as often."""
        gone = Counter(rows.summaries(chat.name)) - Counter(self.written_summaries(chat))
        return {(summaries_path(chat), summary) for summary in gone.items()}

    def _read_ahead(self, chat: Chat) -> Mapping[date, _ReadAhead]:
        """Read the files of a chat, up to a limit; leave out those without a checksum, or that change meanwhile."""
        found: dict[date, _ReadAhead] = {}
        left = _MAX_AHEAD_BYTES
        for file in self.journal.files(chat).files:
            size = file.log.size or 0
            checksum = file.log.checksum(0, size)
            if not size or checksum is None or size > left:
                continue
            left -= size
            batches = tuple(self._batches(file, 0, size))
            end = batches[-1][1]  # less than the size if the last line is incomplete
            before_end = checksum if end == size else file.log.checksum(0, end)
            if before_end is not None and file.log.checksum(0, size) == checksum:
                found[file.day] = _ReadAhead(end, before_end, batches)
        return found

    @staticmethod
    def _still_ahead(file: ChatFile, read_ahead: Mapping[date, _ReadAhead]) -> _ReadAhead:
        """Return what was read ahead of a file; nothing if the file has changed."""
        found = read_ahead.get(file.day)
        return found if found is not None and found.is_still_in(file.log) else _ReadAhead()

    def sync_summaries(self, chat: Chat) -> None:
        """Replace a chat's summaries in the store with those of its file. Raise StoreError."""
        with self.store.read() as snapshot:
            held = list(snapshot.messages.summaries(chat.name))
        if held == self.written_summaries(chat):
            return
        with self.store.write() as transaction:
            gone = self._gone_summaries(chat, transaction.messages)
            if not gone:  # read in the transaction: another process may have removed one since
                transaction.messages.put_summaries(chat.name, self.written_summaries(chat))
        if gone:
            self.mirror_again(chat)

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

        Return None, and write nothing, if the file's synced byte is no longer ``start``, or if the lines are no longer
        in the file.
        """
        if end == start:
            return 0
        with self.store.write() as transaction:
            known = transaction.messages.files(file.chat.name).get(file.day)
            if start != (0 if known is None else known.end) or file.log.size is None or not file.log.is_end(end):
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


def chat_of(name: str) -> Chat | None:
    """Return the chat with a name; None if no chat has it."""
    try:
        chat = Chat.parse(name)
    except RecordError:
        return None
    return chat if chat.name == name else None


def _has_changed(log: Log, known: JournalFileState, *, verified: bool) -> bool:
    """Return whether the mirrored part of a file has changed."""
    return not log.is_end(known.end) or (verified and not _is_unchanged(log, known))


def _is_unchanged(log: Log, known: JournalFileState) -> bool:
    """Return whether the mirrored bytes are unchanged; True if they cannot be read."""
    found = log.checksum(0, known.end)
    return found is None or found == known.checksum
