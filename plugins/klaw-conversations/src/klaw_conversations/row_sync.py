"""Mirror the journal to rows: every file is read from the last synced byte, and secrets are redacted.

All rows of a chat are made again if a mirrored part of its files has changed (cut, replaced or deleted by hand), or if
the redaction patterns have changed. A row of a message that is no longer in the files shows that its text must still be
forgotten. So the text always leaves the index before the row is removed.

The ids of rows are the names of the messages (see :mod:`klaw_conversations.names`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from itertools import groupby
from typing import Any, Self, TypeAlias

from attrs import evolve, frozen

from klaw_conversations.journal import ChatFile, Journal, JournalEntry
from klaw_conversations.names import base_of, may_be_full
from klaw_conversations.row_names import OutOfOrderError, RowNames, is_among, renamed
from klaw_conversations.row_values import Batch, ReadAhead, Row, SyncReport
from klaw_conversations.source import document_path
from klaw_conversations.summaries import SummaryFiles, summaries_path
from klaw_core import RecordError, SkippedEntry, Store
from klaw_core.values.config import ConversationSettings
from klaw_journals import BadLine, Chat, JournalFileState, Log, MessageReader, MessageWriter, StoredMessage, Summary
from klaw_redaction import Redactor

# Messages per transaction.
_BATCH = 1000
# Messages per insert where all rows of a chat are made again, and bytes of its files that are read before that.
_TOGETHER = 20_000
_MAX_AHEAD_BYTES = 16 * 1024 * 1024


# Changes with the form of the rows, so that those of earlier versions are made again.
_FORM = "names"

#: A message or a summary, with the path of its document; empty if its file is gone.
_Part: TypeAlias = tuple[str, object]


@frozen
class RowSync:
    """Keeps the rows of one store in sync with the journal. Safe for concurrent threads and processes."""

    store: Store[Any]
    journal: Journal
    summaries: SummaryFiles
    redactor: Redactor
    # Called with the documents that have lost messages or summaries, before their rows are made again.
    # Both return the failure of listeners, which does not keep the rows from being made.
    forget_removed_text: Callable[[Sequence[str]], Exception | None] = lambda _paths: None
    # Called with the removed messages, each as chat and name, before their rows are made again.
    on_removed: Callable[[Sequence[str]], Exception | None] = lambda _messages: None

    @classmethod
    def over(
        cls,
        store: Store[Any],
        journal: Journal,
        summaries: SummaryFiles,
        settings: ConversationSettings,
    ) -> Self:
        """Return the sync of these files with a store."""
        return cls(store, journal, summaries, settings.redactor)

    @property
    def names(self) -> RowNames:
        """The names of messages, as the rows have them."""
        return RowNames(self.store, self.journal)

    @property
    def recipe(self) -> str:
        """What the content of rows depends on, besides the files."""
        return f"{self.redactor.recipe} {_FORM}"

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
            known.recipe != self.recipe or _has_changed(file.log, known, verified=verified) for file, known in mirrored
        )
        if is_stale or (complete and recorded.keys() - {file.day for file in files}):
            return self.mirror_again(chat)
        report = SyncReport()
        for file in files:
            known = recorded.get(file.day)
            if known is None or known.end != file.log.size:
                report += self._sync_file(file)
        return report + self.sync_summaries(chat) if complete else report

    def mirror_again(self, chat: Chat, removed: AbstractSet[str] = frozenset()) -> SyncReport:
        """Make all rows of a chat again, in one transaction, so that readers always find its messages.

        The text of messages and summaries that have left the files leaves the index first: no other process can do that
        when the rows are gone. The files are read before the transaction, so that other writers do not wait for that. A
        file that has changed since, other than by appending, is read again inside. ``removed`` has the ids of messages
        that were removed from the files: their names. Raise StoreError.
        """
        read_ahead = self._read_ahead(chat)
        forgotten: set[_Part] = set()
        failed: list[Exception | None] = []
        while True:
            with self.store.write() as transaction:
                rows = transaction.messages  # before the files: a store with several writers locks the messages here
                listing = self.journal.files(chat)
                files = listing.files
                ahead = {file.day: self._still_ahead(file, read_ahead) for file in files}
                gone = self._gone(chat, files, ahead, rows, removed)
                if not any(skipped.keep for skipped in listing.skipped):
                    days = {file.day for file in files}  # an index run forgets the documents of other days
                    gone |= {("", row.id) for row in rows.all(chat.name) if row.day not in days}
                if gone <= forgotten:
                    report = self._replace_rows(chat, files, ahead, rows)
                    return report + SyncReport(failures=tuple(failure for failure in failed if failure is not None))
            if paths := sorted({path for path, _ in gone if path}):
                failed.append(self.forget_removed_text(paths))
            if messages := sorted({part for _, part in gone if isinstance(part, str)}):
                failed.append(self.on_removed([f"{chat.name}/{name}" for name in messages]))
            forgotten |= gone

    def _replace_rows(
        self, chat: Chat, files: Sequence[ChatFile], ahead: Mapping[date, ReadAhead], rows: MessageWriter
    ) -> SyncReport:
        report = SyncReport()
        rows.purge(chat.name)
        names = self.journal.names(chat)
        waiting: list[StoredMessage] = []  # inserted together, because the session is derived after each insert
        for file in files:
            known = ahead[file.day]
            end = 0
            for batch, reached, broken in (*known.batches, *self._batches(file, known.size)):
                end = reached
                made = [(entry, evolve(row, id=names.name(entry.message, entry.place))) for entry, row in batch]
                waiting += [row for _, row in made]
                report += SyncReport(bad=_bad(file, broken), renamed=renamed(file, made))
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
        ahead: Mapping[date, ReadAhead],
        rows: MessageReader,
        removed: AbstractSet[str],
    ) -> set[_Part]:
        """Return the messages and summaries that have rows but are no longer in a file.

        An index run forgets the documents of files that do not exist. Messages in lines or files that cannot be read
        do not count as gone, unless they were ``removed``.
        """
        held: dict[date, list[StoredMessage]] = {}
        for row in rows.all(chat.name):
            held.setdefault(row.day, []).append(row)
        shared = {base_of(row.id) for each in held.values() for row in each if may_be_full(row.id)}
        states = rows.files(chat.name)
        names = self.journal.names(chat)
        gone: set[_Part] = set()
        for file in files:
            known, left = ahead[file.day], held.get(file.day, [])
            has_bad_lines = known.has_bad_lines
            there = {names.name(entry.message, entry.place) for entry, _ in known.rows}
            for line in self.journal.read_file(file, known.size):
                if isinstance(line, JournalEntry):
                    there.add(names.name(line.message, line.place))
                else:
                    has_bad_lines = True
            if has_bad_lines:
                left = [row for row in left if row.id in removed]
            # An id that several messages have had may be that of another one now.
            left = [row for row in left if row.id not in there or row.id in shared]
            if left:
                is_alike = file.day in states and states[file.day].recipe == self.recipe
                now = [*known.rows, *(row for rows, _, _ in self._batches(file, known.size) for row in rows)]
                left = [row for row in left if not is_among(row, now, is_alike=is_alike)]
            gone |= {(document_path(file), row.id) for row in left}
        if gone:  # a message may also have been in the file of another day, of which it has no row
            changed = (file for file in files if file.day in states and not _is_unchanged(file.log, states[file.day]))
            gone |= {(document_path(file), None) for file in changed}
        return gone | self._gone_summaries(chat, rows)

    def _gone_summaries(self, chat: Chat, rows: MessageReader) -> set[_Part]:
        """Return the summaries that have rows but are not in the file, or not as often."""
        gone = Counter(rows.summaries(chat.name)) - Counter(self.written_summaries(chat))
        return {(summaries_path(chat), summary) for summary in gone.items()}

    def _read_ahead(self, chat: Chat) -> Mapping[date, ReadAhead]:
        """Read the files of a chat, up to a limit; leave out those without a checksum, or that change meanwhile."""
        found: dict[date, ReadAhead] = {}
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
                found[file.day] = ReadAhead(end, before_end, batches)
        return found

    @staticmethod
    def _still_ahead(file: ChatFile, read_ahead: Mapping[date, ReadAhead]) -> ReadAhead:
        """Return what was read ahead of a file; nothing if the file has changed."""
        found = read_ahead.get(file.day)
        return found if found is not None and found.is_still_in(file.log) else ReadAhead()

    def sync_summaries(self, chat: Chat) -> SyncReport:
        """Replace a chat's summaries in the store with those of its file. Raise StoreError."""
        with self.store.read() as snapshot:
            held = list(snapshot.messages.summaries(chat.name))
        if held == self.written_summaries(chat):
            return SyncReport()
        with self.store.write() as transaction:
            gone = self._gone_summaries(chat, transaction.messages)
            if not gone:  # read in the transaction: another process may have removed one since
                transaction.messages.put_summaries(chat.name, self.written_summaries(chat))
        return self.mirror_again(chat) if gone else SyncReport()

    def written_summaries(self, chat: Chat) -> list[Summary]:
        """Return a chat's summaries from its file, redacted for the store."""
        return [evolve(summary, content=self.redactor.text(summary.content)) for summary in self.summaries.read(chat)]

    def _sync_file(self, file: ChatFile) -> SyncReport:
        """Mirror the new lines of a file. If another process mirrors the same lines, continue after them."""
        total = SyncReport()
        while True:
            known = self._recorded(file.chat).get(file.day)
            start = 0 if known is None else known.end
            report = SyncReport()
            overtaken = False
            for batch, end, broken in self._batches(file, start):
                try:
                    new = self._write(file, batch, start, end)
                except OutOfOrderError:
                    return self.mirror_again(file.chat)
                if new is None:
                    overtaken = True
                    break
                report, start = report + new + SyncReport(bad=_bad(file, broken)), end
            total += report
            if not overtaken:
                return total

    def _batches(self, file: ChatFile, start: int, stop: int | None = None) -> Iterator[Batch]:
        """Yield the lines from ``start``, of which none ends after ``stop``, in batches."""
        messages: list[Row] = []
        bad: list[BadLine] = []
        end = start
        for line in self.journal.read_file(file, start):
            if stop is not None and line.end > stop:
                break
            end = line.end
            if isinstance(line, BadLine):
                bad.append(line)
            else:
                messages.append((line, self.row(line)))
            if len(messages) == _BATCH:
                yield messages, end, bad
                messages, bad = [], []
        yield messages, end, bad

    def _write(self, file: ChatFile, messages: Sequence[Row], start: int, end: int) -> SyncReport | None:
        """Add rows and record ``end`` as the file's synced byte; report the new rows.

        Return None, and write nothing, if the file's synced byte is no longer ``start``, or if the lines are no longer
        in the file. Raise OutOfOrderError, and write nothing, if other rows must get other names.
        """
        if end == start:
            return SyncReport()
        with self.store.write() as transaction:
            known = transaction.messages.files(file.chat.name).get(file.day)
            if start != (0 if known is None else known.end) or file.log.size is None or not file.log.is_end(end):
                return None
            checksum = 0 if known is None else known.checksum
            if checksum is not None:
                checksum = file.log.checksum(start, end, checksum)
            made = self.names.name_new(file.chat, messages, transaction.messages)
            new = transaction.messages.insert([row for _, row in made])
            transaction.messages.put_file(self._state(file, end, checksum))
        return SyncReport(new, renamed=renamed(file, made))

    def _state(self, file: ChatFile, end: int, checksum: int | None) -> JournalFileState:
        return JournalFileState(file.chat.name, file.day, end, self.recipe, checksum)

    def row(self, entry: JournalEntry) -> StoredMessage:
        """Return the row of a journal entry, with secrets redacted. Its id is that of the entry's message."""
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
            rows: MessageReader = snapshot.messages
            return rows.files(chat.name)


def _bad(file: ChatFile, bad: Sequence[BadLine]) -> tuple[SkippedEntry, ...]:
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
