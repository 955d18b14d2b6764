"""The extension ``conversations``: journals of messages, their rows and documents, and summaries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from klaw_conversations.archive import Conversations, names_of
from klaw_conversations.indexed_source import IndexedConversations
from klaw_conversations.journal import ChatFile, Journal, JournalEntry
from klaw_conversations.row_checks import check_rows, fix_rows
from klaw_conversations.row_sync import RowSync
from klaw_conversations.source import CONVERSATIONS
from klaw_conversations.summaries import SUMMARIES, SummaryFiles
from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    CloseEvent,
    Event,
    Finding,
    ForgetEvent,
    Host,
    KlawError,
    ListeningExtension,
    MessageEvent,
    RecordError,
    SkippedEntry,
    Source,
    SourcedExtension,
)
from klaw_core.values.config import ConversationSettings
from klaw_core.values.findings import named
from klaw_journals import (
    BadLine,
    Chat,
    FileJournals,
    ImportCounts,
    Journals,
    Message,
    Record,
    RecordedExtension,
    Summary,
    check_lines,
    check_private,
    journals_of,
    make_private,
)
from klaw_journals.checked_names import secret_in_name

MESSAGE = "message"
SUMMARY = "summary"

_BATCH = 100
_CLOSING_SECONDS = 30.0


@frozen
class _ChatMessage:
    """A message and its file; ``day`` is the file's name."""

    chat: Chat
    day: str
    message: Message


@frozen
class _ChatSummary:
    """A summary of a chat."""

    chat: Chat
    summary: Summary


@define(eq=False, slots=False)
class ConversationsExtension(
    AttachedExtension, SourcedExtension, CheckedExtension, RecordedExtension, ListeningExtension
):
    """Stores conversations and makes them searchable."""

    files: FileJournals
    settings: ConversationSettings = field(factory=ConversationSettings)
    origins: Sequence[str] = (CONVERSATIONS,)
    record_kinds: Sequence[str] = (MESSAGE, SUMMARY)
    _host: Host | None = field(default=None, init=False)

    name = CONVERSATIONS
    exported_journals = (CONVERSATIONS, SUMMARIES)

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host
        self.settings = host.config.conversations

    @property
    def journal(self) -> Journal:
        """The journals of messages."""
        return Journal(self._journals.logs(CONVERSATIONS))

    @property
    def summaries(self) -> SummaryFiles:
        """The files of summaries."""
        return SummaryFiles(self._journals.logs(SUMMARIES))

    @property
    def _journals(self) -> Journals:
        return self.files if self._host is None else journals_of(self._host)

    @cached_property
    def archive(self) -> Conversations:
        """The object behind ``Memory.conversations``; available once the extension is attached."""
        host = self._attached
        row_sync = RowSync(
            host.store,
            self.journal,
            self.summaries,
            self.settings.redactor,
            partial(host.forget_removed_text, CONVERSATIONS),
            lambda messages: host.emit(ForgetEvent(tuple(messages))),
        )
        return Conversations(row_sync, host.forget, self._emit, self._index)

    @property
    def _attached(self) -> Host:
        if self._host is None:
            raise KlawError("this Conversations is not attached to a Memory")
        return self._host

    def _index(self) -> None:
        """Index the files again from which messages were removed."""
        if self.sources():
            self._attached.index(CONVERSATIONS)

    def _emit(self, message: Message) -> None:
        chat = Chat.of(message.meta)
        self._attached.emit(
            MessageEvent(chat.name, message.id, message.role, message.content, message.ts, message.type, message.meta)
        )

    def on(self, event: Event, /) -> None:
        """Before the memory closes, wait for messages that are written behind their callers."""
        if isinstance(event, CloseEvent) and "archive" in vars(self):
            self.archive.behind.flush(_CLOSING_SECONDS)

    def sources(self) -> Sequence[Source]:
        """Return a source with the journals and summaries; none if there are none."""
        if not (self.journal.logs.exists or self.summaries.logs.exists):
            return ()
        return (IndexedConversations(self.archive, self.settings.include_roles),)

    def check(self) -> Iterator[Finding]:
        """Report broken lines, files that are not journals, and rows that differ from the journals."""
        yield from check_private(self._files())
        yield from _check_journal(self.journal)
        yield from _check_summaries(self.summaries)
        if self._host is not None:
            yield from check_rows(self.archive.row_sync)

    def fix(self, findings: Sequence[Finding], /) -> None:
        """Make files private, and rebuild rows that differ from the journals. Raise StoreError."""
        make_private(self._files())
        if self._host is not None:
            fix_rows(self.archive.row_sync, findings)

    def _files(self) -> Iterator[Path]:
        yield from self.files.logs(CONVERSATIONS).files()
        yield from self.files.logs(SUMMARIES).files()

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every message by chat and day, then every summary."""
        listing = self.journal.files()
        for file in listing.files:
            for line in self.journal.read_file(file):
                if isinstance(line, BadLine):
                    yield _skipped(line)
                else:
                    value = {"chat": file.chat.name, "day": file.day.isoformat(), "value": line.message.record()}
                    yield Record(MESSAGE, value)
        yield from listing.skipped
        for chat in self.summaries.listing():
            if isinstance(chat, SkippedEntry):
                yield chat
                continue
            for summary in self.summaries.lines(chat):
                if isinstance(summary, BadLine):
                    yield _skipped(summary)
                else:
                    yield Record(SUMMARY, {"chat": chat.name, "value": SummaryFiles.record(summary)})

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is a message or a summary."""
        _parse_message(record.value) if record.kind == MESSAGE else self._parse_summary(record.value)

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add messages and summaries to the files with the names that the export gives."""
        counts = ImportCounts()
        for kind, group in groupby(records, key=lambda record: record.kind):
            if kind == MESSAGE:
                counts += self._add_messages(_parse_message(record.value) for record in group)
            else:
                counts += self._add_summaries(self._parse_summary(record.value) for record in group)
        return counts

    def _add_messages(self, messages: Iterator[_ChatMessage]) -> ImportCounts:
        """Add messages. Afterwards each line occurs as often as in the export, or as before if that is more often."""
        journal = self.journal
        counts = ImportCounts()
        for (chat, day), group in groupby(messages, key=lambda item: (item.chat, item.day)):
            if refusal := self._refusal(chat):
                counts += ImportCounts(kept=(refusal,))
                continue
            file = journal.file(chat, date.fromisoformat(day))
            here = _records_in(journal, file)
            missing = []
            for item in group:
                record = item.message.record()
                key = _canonical(record)
                if refusal := self._refusal(chat, item.message.id):
                    counts += ImportCounts(kept=(refusal,))
                    continue
                if here[key]:
                    here[key] -= 1
                    counts += ImportCounts(present=1)
                else:
                    missing.append(record)
            for first in range(0, len(missing), _BATCH):
                part = missing[first : first + _BATCH]
                file.log.append(*part)
                counts += ImportCounts(added=len(part))
        return counts

    def _refusal(self, chat: Chat, message_id: str = "") -> str:
        """Return why a message cannot be added: its names contain a secret; usually empty."""
        redactor = self.settings.redactor
        return next(filter(None, (secret_in_name(redactor, *name) for name in names_of(chat, message_id))), "")

    def _add_summaries(self, summaries: Iterator[_ChatSummary]) -> ImportCounts:
        """Add summaries, except those older than the existing ones: a chat's last summary is the current one."""
        files = self.summaries
        counts = ImportCounts()
        for chat, group in groupby(summaries, key=lambda item: item.chat):
            if refusal := self._refusal(chat):
                counts += ImportCounts(kept=(refusal,))
                continue
            here = files.read(chat)
            latest = here[-1].created_at if here else None
            for item in group:
                if item.summary in here:
                    counts += ImportCounts(present=1)
                elif latest is not None and item.summary.created_at < latest:
                    what = f"{chat.name} already has a later summary than the one of {item.summary.created_at}"
                    counts += ImportCounts(kept=(what,))
                else:
                    files.append(chat, item.summary)
                    counts += ImportCounts(added=1)
        return counts

    def _parse_summary(self, value: Mapping[str, Any]) -> _ChatSummary:
        chat = Chat.parse(_string(value, "chat"))
        return _ChatSummary(chat, self.summaries.parse(chat, value["value"]))


def _parse_message(value: Mapping[str, Any]) -> _ChatMessage:
    day = _string(value, "day")
    if Path(day).name != day or len(day) != len("2026-02-24"):
        raise RecordError(f"{day!r} is not a day")
    chat = Chat.parse(_string(value, "chat"))
    return _ChatMessage(chat, date.fromisoformat(day).isoformat(), Message.parse(value["value"]))


def _string(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise RecordError(f"{name} is {'not a string' if name in value else 'missing'}")
    return found


def _skipped(line: BadLine) -> SkippedEntry:
    return SkippedEntry(f"{line.location}@{line.offset}", line.reason, keep=True)


def _check_journal(journal: Journal) -> Iterator[Finding]:
    listing = journal.files()
    renamed: list[str] = []
    for chat in dict.fromkeys(file.chat for file in listing.files):
        bad: dict[str, list[BadLine]] = {}
        for line in journal.read(chat):
            if isinstance(line, BadLine):
                bad.setdefault(line.location, []).append(line)
            elif line.is_renamed and not line.duplicate:
                renamed.append(f"{chat.name}/{line.id} is called {chat.name}/{line.message.id}")
        for location, lines in bad.items():
            yield from check_lines("conversation-lines", location, lines)
    if renamed:
        messages = "message has" if len(renamed) == 1 else "messages have"
        what = f"{len(renamed):,} {messages} an id that another message of the chat has: {named(renamed)}"
        hint = "give each message of a chat an id of its own; these are found by their longer names"
        yield Finding("conversation-ids", "warning", what, journal.logs.location, hint, tuple(renamed))
    yield from _foreign_file_findings(journal.logs.location, listing.skipped)


def _check_summaries(files: SummaryFiles) -> Iterator[Finding]:
    listing = list(files.listing())
    for chat in listing:
        if isinstance(chat, Chat):
            bad = [line for line in files.lines(chat) if isinstance(line, BadLine)]
            yield from check_lines("conversation-lines", files.log(chat).location, bad)
    yield from _foreign_file_findings(files.logs.location, [item for item in listing if isinstance(item, SkippedEntry)])


def _foreign_file_findings(location: str, skipped: Sequence[SkippedEntry]) -> Iterator[Finding]:
    if skipped:
        paths = tuple(f"{item.path} {item.reason}" for item in skipped)
        yield Finding("conversation-files", "warning", named(paths), location, "move it to another place", paths)


def _records_in(journal: Journal, file: ChatFile) -> Counter[str]:
    """Return how often each message occurs in a file."""
    lines = journal.read_file(file)
    return Counter(_canonical(line.message.record()) for line in lines if isinstance(line, JournalEntry))


def _canonical(record: Mapping[str, Any]) -> str:
    """Return a message for comparison, without its sender and its class: importers of earlier versions wrote none."""
    meta = {name: value for name, value in record["meta"].items() if name != "sender_id"}
    return json.dumps({**record, "meta": meta, "trust": ""}, sort_keys=True)
