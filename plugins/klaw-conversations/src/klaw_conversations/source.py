"""The journal as documents: each file becomes a transcript with the same line numbers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time

from attrs import field, frozen

from klaw_conversations.journal import ChatFile, Journal, JournalEntry, JournalLine
from klaw_conversations.names import Names
from klaw_core import Document, Entry, RecordError, SkippedEntry, Source
from klaw_core.values.runs import VANISHED
from klaw_journals import BadLine, Chat, Log, Message
from klaw_journals.messages import SESSION_BREAK, speaker_of
from klaw_journals.trust import lowest
from klaw_redaction import Redactor
from klaw_words.days import named_day

#: The origin of conversations, and the first part of their paths.
CONVERSATIONS = "conversations"
#: The source label in results.
LABEL = "conversation"
#: The format of the documents, which the chunker ``transcript`` splits.
TRANSCRIPT = "transcript"
#: The line of a transcript where a session starts. It is white space, so that it is not visible in a chunk.
SECTION = "\f"


def document_path(file: ChatFile) -> str:
    """Return the document path of a journal file: ``conversations/telegram_123456/2026-02-24.jsonl``."""
    return f"{CONVERSATIONS}/{file.chat.name}/{file.name}"


@frozen
class ConversationSource(Source):
    """The files of a journal as transcripts, with one line per message and a time for each line.

    A transcript contains the messages with ``roles``, redacted. Other lines, such as tool output and broken lines, are
    empty in the transcript, so that its line numbers are those of the file.
    """

    journal: Journal
    roles: tuple[str, ...] = ("user", "assistant")
    redactor: Redactor = field(factory=Redactor)

    origin = CONVERSATIONS
    forgets_missing = True

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield the files of every chat, sorted by chat and day."""
        listing = self.journal.files()
        for file in listing.files:
            size = file.log.size
            if size is None:
                yield SkippedEntry(document_path(file), "cannot be read", keep=True)
            elif size:  # a file whose last message was forgotten is empty
                yield Entry(document_path(file), size)
        for skipped in listing.skipped:
            relative = os.path.relpath(skipped.path, self.journal.logs.location)
            path = CONVERSATIONS if relative == "." else f"{CONVERSATIONS}/{relative}"
            yield SkippedEntry(path, skipped.reason, keep=skipped.keep)

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Render one file. Return a SkippedEntry if it cannot be read or the transcript is empty."""
        file = self._file(entry.path)
        if file is None or not file.log.exists:
            return SkippedEntry(entry.path, VANISHED, keep=True)
        lines = list(self.journal.read_file(file))
        unread = next((line for line in lines if isinstance(line, BadLine) and line.ends_reading), None)
        if unread is not None:
            return SkippedEntry(entry.path, unread.reason, keep=True)
        rendered = list(self._render(file.log, lines))
        text = "\n".join(line for line, _ in rendered)
        if not text.strip():
            return SkippedEntry(entry.path, "contains no text to show", keep=False)
        return Document(
            path=entry.path,
            text=text,
            source=LABEL,
            origin=CONVERSATIONS,
            created_at=datetime.combine(file.day, time(), UTC),
            chat_id=file.chat.name,
            format=TRANSCRIPT,
            heading=(file.chat.name, named_day(file.day)),
            times=tuple((number, moment) for number, (_, moment) in enumerate(rendered, start=1) if moment),
            is_redacted=True,
            trust=lowest(message.trust_class for message in self._shown(lines)),
        )

    def _shown(self, lines: Iterable[JournalLine]) -> Iterator[Message]:
        """Yield the messages that a transcript contains."""
        said = (line.message for line in lines if isinstance(line, JournalEntry))
        return (message for message in said if message.role in self.roles and message.type != SESSION_BREAK)

    def log(self, path: str) -> Log | None:
        """Return the log of a document; None if the path is not that of a day."""
        file = self._file(path)
        return None if file is None else file.log

    def _file(self, path: str) -> ChatFile | None:
        try:
            origin, name, day = path.split("/")
            chat = Chat.parse(name)
            file = self.journal.file(chat, date.fromisoformat(day.removesuffix(".jsonl")))
        except (ValueError, RecordError):
            return None
        return file if origin == CONVERSATIONS and document_path(file) == path else None

    def _render(self, log: Log, lines: Iterable[JournalLine]) -> Iterator[tuple[str, datetime | None]]:
        """Yield the transcript's lines, each with its time; skipped lines are empty.

        A writer may append a message twice to be safe; only the first copy is shown.
        """
        end = 0
        lines = tuple(lines)
        names = Names({line.offset: line.message for line in lines if isinstance(line, JournalEntry)}.get)
        seen: set[str] = set()
        for line in lines:
            yield from [("", None)] * log.count_blank(end, line.offset)
            end = line.end
            name = names.name(line.message, line.offset) if isinstance(line, JournalEntry) else ""
            if not isinstance(line, JournalEntry) or name in seen:
                yield "", None
                continue
            seen.add(name)
            shown = self._line(line.message)
            yield shown, line.message.ts if shown.strip() else None

    def _line(self, message: Message) -> str:
        if message.type == SESSION_BREAK:
            return SECTION
        if message.role not in self.roles:
            return ""
        said = " ".join(self.redactor.text(message.content).split())
        return f"{self._speaker(message)}: {said}" if said else ""

    def _speaker(self, message: Message) -> str:
        """Return the speaker's name from ``meta``, or else the role."""
        name = message.meta.get("name")  # redacted as it is written: in one line, secrets are harder to recognise
        meta = {"name": self.redactor.text(name)} if isinstance(name, str) else {}
        return speaker_of(message.role.capitalize(), meta)
