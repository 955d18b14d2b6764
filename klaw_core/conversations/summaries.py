"""Summaries of chats, kept as JSON lines: ``{root}/{channel}_{chat_id}/summaries.jsonl``, append-only."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core.conversations.chat import Chat
from klaw_core.errors import RecordError
from klaw_core.jsonl import JsonLines, Record
from klaw_core.mirror import Summary
from klaw_core.timestamps import as_utc, format_ts, parse_ts

_FILE = "summaries.jsonl"


@frozen
class SummaryFiles:
    """The summaries of every chat. The last one of a chat is the one that counts."""

    root: Path

    def append(self, chat: Chat, summary: Summary) -> None:
        """Keep a summary; it is on the disk when this returns. Raise RecordError or StoreError."""
        JsonLines(self.path(chat)).append(
            {
                "ts": format_ts(summary.created_at),
                "content": summary.content,
                "from_message_id": summary.from_message_id,
                "to_message_id": summary.to_message_id,
            }
        )

    def read(self, chat: Chat) -> tuple[Summary, ...]:
        """Return a chat's summaries, oldest first; lines that hold none are passed over."""
        lines = JsonLines(self.path(chat)).read() if self.path(chat).exists() else ()
        parsed = (self._parse(chat, line.value) for line in lines if isinstance(line, Record))
        return tuple(summary for summary in parsed if summary is not None)

    def summary(
        self,
        chat: Chat,
        content: str,
        created_at: datetime,
        from_message_id: str | None = None,
        to_message_id: str | None = None,
    ) -> Summary:
        """Return a summary of a chat as this would keep it."""
        place = f"{self.root.name}/{chat.name}/{_FILE}"
        return Summary(chat.name, content, place, as_utc(created_at), from_message_id, to_message_id)

    def chats(self) -> tuple[str, ...]:
        """Return the names of the chats that have a file of summaries."""
        return tuple(sorted(path.parent.name for path in self.root.glob(f"*/{_FILE}")))

    def remove(self, chat: Chat) -> None:
        """Remove a chat's summaries. Raise OSError."""
        self.path(chat).unlink(missing_ok=True)

    def path(self, chat: Chat) -> Path:
        """Return where a chat's summaries are, whether there are any or not."""
        return self.root / chat.name / _FILE

    def _parse(self, chat: Chat, record: Mapping[str, Any]) -> Summary | None:
        content = record.get("content")
        between = [record.get(name) for name in ("from_message_id", "to_message_id")]
        if not isinstance(content, str) or not all(item is None or isinstance(item, str) for item in between):
            return None
        try:
            return self.summary(chat, content, parse_ts(record.get("ts")), *between)
        except RecordError:
            return None
