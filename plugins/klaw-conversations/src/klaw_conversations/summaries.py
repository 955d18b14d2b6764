"""Summaries of chats in append-only logs: ``{channel}_{chat_id}/summaries.jsonl``."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from attrs import evolve, field, frozen

from klaw_conversations.journal import as_logs
from klaw_core import RecordError, SkippedEntry, operations
from klaw_journals import BadLine, Chat, Log, LogFolder, LogRecord, Summary, format_ts, parse_ts
from klaw_journals.file_journals import shown_path
from klaw_journals.timestamps import as_utc

#: The name of the folder of logs, and of the log of each chat.
SUMMARIES = "summaries"


def summaries_path(chat: Chat) -> str:
    """Return the document path of a chat's summaries: ``conversations/telegram_123456/summaries.jsonl``."""
    return f"conversations/{chat.name}/{SUMMARIES}.jsonl"


@operations
@frozen
class SummaryFiles:
    """The summaries of all chats. The last summary of a chat is the current one.

    ``logs`` can be given as the path of a directory.
    """

    logs: LogFolder = field(converter=as_logs)

    def append(self, chat: Chat, summary: Summary) -> None:
        """Append a summary; it is on disk when this returns. Raise RecordError or StoreError."""
        self.log(chat).append(self.record(summary))

    def read(self, chat: Chat) -> tuple[Summary, ...]:
        """Return a chat's summaries, oldest first; invalid lines are skipped."""
        return tuple(line for line in self.lines(chat) if isinstance(line, Summary))

    def lines(self, chat: Chat) -> Iterator[Summary | BadLine]:
        """Yield a chat's summaries, oldest first, and a :class:`BadLine` for each invalid line."""
        log = self.log(chat)
        for line in log.read():
            if not isinstance(line, LogRecord):
                yield line
                continue
            try:
                yield self.parse(chat, line.value)
            except RecordError as error:
                yield BadLine(log.location, line.offset, line.end, error.message)

    def summary(
        self,
        chat: Chat,
        content: str,
        created_at: datetime,
        from_message_id: str | None = None,
        to_message_id: str | None = None,
    ) -> Summary:
        """Make a summary of a chat."""
        place = f"{SUMMARIES}/{chat.name}/{SUMMARIES}.jsonl"
        return Summary(chat.name, content, place, as_utc(created_at), from_message_id, to_message_id)

    @staticmethod
    def record(summary: Summary) -> dict[str, Any]:
        """Return the JSON object of a summary, without the chat, which the file's path names."""
        return {
            "ts": format_ts(summary.created_at),
            "content": summary.content,
            "from_message_id": summary.from_message_id,
            "to_message_id": summary.to_message_id,
        }

    def parse(self, chat: Chat, record: Mapping[str, Any]) -> Summary:
        """Return the summary of a line's JSON object. Raise RecordError if it is invalid."""
        content = record.get("content")
        between = [record.get(name) for name in ("from_message_id", "to_message_id")]
        if not isinstance(content, str):
            raise RecordError("not a summary: content is not a string")
        if not all(item is None or isinstance(item, str) for item in between):
            raise RecordError("not a summary: a message id is not a string")
        return self.summary(chat, content, parse_ts(record.get("ts")), *between)

    def chats(self) -> tuple[str, ...]:
        """Return the names of the chats that have a directory here; it may be empty."""
        return tuple(item.name for item in self.listing() if isinstance(item, Chat))

    def listing(self) -> Iterator[Chat | SkippedEntry]:
        """Yield the chats that have a directory here, by name, and a SkippedEntry for each other name."""
        for name in self.logs.groups():
            if isinstance(name, SkippedEntry):
                yield evolve(name, keep=True)
                continue
            try:
                chat = Chat.parse(name)
            except RecordError as error:
                yield self._skipped(name, f"is not named like a chat: {error.message}")
            else:
                yield chat if chat.name == name else self._skipped(name, f"should be named {chat.name}")

    def remove(self, chat: Chat) -> None:
        """Remove a chat's summaries. Raise StoreError."""
        self.log(chat).delete()

    def forget(self, chat: Chat, said: Sequence[str], ids: Collection[str]) -> int:
        """Remove the summaries that cover forgotten messages; return the number of removed summaries. Raise StoreError.

        ``said`` are the message ids of the chat in order. If the first or last id of a summary is not among them, the
        summary counts as covering the chat from its start or to its end. A summary without both ids is kept, because it
        is unknown which messages it covers.
        """
        places = {name: number for number, name in enumerate(said)}
        wanted = [places[name] for name in ids if name in places]

        def covers_forgotten(record: LogRecord) -> bool:
            first, last = (record.value.get(name) for name in ("from_message_id", "to_message_id"))
            start, end = places.get(str(first), 0), places.get(str(last), len(said))
            return not (first is None and last is None) and any(start <= place <= end for place in wanted)

        log = self.log(chat)
        with suppress(OSError):  # the removal raises it as a StoreError
            if not log.exists:  # the removal would create it
                return 0
        return log.remove(covers_forgotten)

    def log(self, chat: Chat) -> Log:
        """Return the log of a chat's summaries, which need not exist."""
        return self.logs.log(chat.name, SUMMARIES)

    def _skipped(self, name: str, reason: str) -> SkippedEntry:
        return SkippedEntry(shown_path(f"{self.logs.location}/{name}"), reason, keep=True)
