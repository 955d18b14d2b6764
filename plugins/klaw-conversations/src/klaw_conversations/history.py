"""``HistoryStore``: the messages of an agent's conversations by key, across sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import field, frozen

from klaw_conversations.archive import Conversations
from klaw_conversations.journal import JournalEntry
from klaw_core import RecordError, operations
from klaw_journals import Chat, Message
from klaw_journals.messages import SESSION_BREAK


def chat_of(key: str) -> Chat:
    """Return the chat of a key ``channel:chat`` or ``channel:chat:thread``. Raise RecordError."""
    channel, separator, rest = key.partition(":")
    if not separator:
        raise RecordError(f"invalid history key {key!r}", hint="a key has the form channel:chat:thread")
    return Chat(channel, rest.removesuffix(":"))


@operations
@frozen
class HistoryStore:
    """Messages by the key ``channel:chat:thread``, which stays the same when a new session starts.

    ``max_recent`` limits the result of :meth:`recent`; older messages are kept. Safe for concurrent threads and
    processes.
    """

    conversations: Conversations
    max_recent: int = field(default=100)

    def append(
        self,
        key: str,
        role: str,
        content: str,
        *,
        tool_calls: Sequence[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        ts: datetime | None = None,
    ) -> Message:
        """Append a message, dated now by default, and return it. Raise RecordError or StoreError."""
        chat = chat_of(key)
        meta: dict[str, Any] = {**(metadata or {}), **chat.meta}
        if tool_calls:
            meta["tool_calls"] = [dict(call) for call in tool_calls]
        return self.conversations.append(Message(role, content, ts or datetime.now(UTC), meta=meta))

    def recent(self, key: str, count: int | None = None) -> tuple[Message, ...]:
        """Return the last ``count`` messages (at most ``max_recent``), oldest first, to start a new session with."""
        wanted = min(self.max_recent if count is None else count, self.max_recent)
        asked = wanted
        while wanted > 0:
            lines = self.conversations.tail(chat_of(key), asked)
            entries = [line for line in lines if isinstance(line, JournalEntry)]
            said = _said(entries)
            if len(said) >= wanted or len(entries) < asked:
                return said[-wanted:]
            asked *= 2  # some of the entries were session breaks
        return ()

    def all(self, key: str) -> tuple[Message, ...]:
        """Return every message, oldest first."""
        return _said([line for line in self.conversations.read(chat_of(key)) if isinstance(line, JournalEntry)])

    def length(self, key: str) -> int:
        """Return the number of messages."""
        return len(self.all(key))

    def set_summary(self, key: str, text: str) -> None:
        """Replace the summary. Raise RecordError or StoreError."""
        self.conversations.add_summary(chat_of(key), text)

    def summary(self, key: str) -> str:
        """Return the summary, or ``""``."""
        summaries = self.conversations.summaries(chat_of(key))
        return summaries[-1].content if summaries else ""

    def purge(self, key: str) -> None:
        """Remove the history and the summary permanently, also from the files. Raise StoreError."""
        self.conversations.purge(chat_of(key))


def _said(entries: Sequence[JournalEntry]) -> tuple[Message, ...]:
    """Return the messages without session breaks and duplicates; a writer may have appended a message twice."""
    found: dict[str, Message] = {}
    for entry in entries:
        if entry.message.type != SESSION_BREAK:
            found.setdefault(entry.message.id, entry.message)
    return tuple(found.values())
