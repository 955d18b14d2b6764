"""Conversations in a store: rows that copy the journals of messages, each with its position there.

The ``chat_id`` of a row is the name of the chat's directory (``telegram_123456``, see :class:`klaw_core.Chat`), because
a bare chat id is unique only within its channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol, TypeVar

from attrs import field, frozen

K = TypeVar("K")


@frozen
class StoredMessage:
    """A message as a row. ``day`` and ``position`` are its place: the file, and the byte where its line begins.

    Messages of a chat are ordered by these places, not by ``created_at``. ``id`` is unique in its chat;
    ``role`` and ``type`` are as in the journal. ``created_at`` is aware, in UTC, in milliseconds.
    """

    id: str
    channel: str
    chat_id: str
    role: str
    content: str = field(repr=False)
    created_at: datetime
    day: date
    position: int
    type: str | None = None
    metadata: Mapping[str, Any] = field(factory=dict, repr=False)

    @property
    def place(self) -> tuple[date, int]:
        """Its place in the chat, by which messages are ordered."""
        return self.day, self.position


@frozen
class Session:
    """The state of a chat: the last known model, and the start of its current segment and of the chat itself.

    ``model`` is empty if no message names one. A message without a model leaves it unchanged.
    """

    chat_id: str
    model: str
    segment_start: datetime
    created_at: datetime

    @classmethod
    def of(cls, chat_id: str, first: datetime, last_break: datetime | None, models: Iterable[object]) -> Session:
        """Return the state of a chat: from its first message, its last break, and what assistants gave as ``model``.

        ``models`` is read, latest first, until one is a name.
        """
        model = next((name for name in models if isinstance(name, str) and name), "")
        return cls(chat_id, model, first if last_break is None else last_break, first)


@frozen
class Summary:
    """A summary of a chat, up to a moment. ``file_path`` is its file, relative to the data directory.

    ``from_message_id`` and ``to_message_id`` are the first and the last message that it covers, where known.
    """

    chat_id: str
    content: str = field(repr=False)
    file_path: str
    created_at: datetime
    from_message_id: str | None = None
    to_message_id: str | None = None


@frozen
class JournalFileState:
    """How much of a journal file the rows contain: bytes up to ``end``, redacted according to ``recipe``.

    ``checksum`` is the checksum of these bytes; None if it is not known.
    """

    chat_id: str
    day: date
    end: int
    recipe: str = ""
    checksum: int | None = None


def changed_rows(
    messages: Iterable[StoredMessage], held: Callable[[StoredMessage], tuple[K, date, int] | None]
) -> tuple[int, list[K], list[StoredMessage]]:
    """Return how many messages are new, the keys of rows to remove, and the messages to add.

    Of two messages with one id in a chat, the one at the earlier place stays. ``held`` returns the key, the day and the
    position of the row that has a message's id, or None.
    """
    chosen: dict[tuple[str, str], StoredMessage] = {}
    for message in messages:
        other = chosen.setdefault((message.chat_id, message.id), message)
        if message.place < other.place:
            chosen[message.chat_id, message.id] = message
    new, removed, added = 0, [], []
    for message in chosen.values():
        row = held(message)
        if row is None:
            new += 1
        elif message.place >= row[1:]:
            continue
        else:
            removed.append(row[0])
        added.append(message)
    return new, removed, added


class MessageReader(Protocol):
    """The rows of conversations in one snapshot. ``chat_id`` is a chat's name, as in ``telegram_123456``.

    Messages come in the order of their places, oldest first, unless a method says otherwise.
    """

    def all(self, chat_id: str, /) -> Sequence[StoredMessage]:
        """Return every message of a chat."""

    def get(self, chat_id: str, ids: Sequence[str], /) -> Sequence[StoredMessage]:
        """Return the messages of a chat that have one of these ids, in any order."""

    def search(self, text: str, limit: int, chat_id: str | None = None, /) -> Sequence[StoredMessage]:
        """Return messages that contain any word of ``text``, best first. Every text is a valid query."""

    def chats(self) -> Sequence[str]:
        """Return every chat with mirrored messages, by name."""

    def session(self, chat_id: str, /) -> Session | None:
        """Return the state of a chat, or None if it has no messages."""

    def summaries(self, chat_id: str, /) -> Sequence[Summary]:
        """Return a chat's summaries, oldest first."""

    def files(self, chat_id: str, /) -> Mapping[date, JournalFileState]:
        """Return how far each file of a chat is mirrored, by day."""


class MessageWriter(MessageReader, Protocol):
    """The rows of conversations in one transaction. A chat's session is derived again at each insert."""

    def insert(self, messages: Sequence[StoredMessage], /) -> int:
        """Add messages and return how many are new.

        Of two messages with the same id in a chat, the one at the earlier place stays. Raise StoreError for an unknown
        role or type.
        """

    def put_file(self, file: JournalFileState, /) -> None:
        """Record how far a file is mirrored."""

    def put_summaries(self, chat_id: str, summaries: Sequence[Summary], /) -> None:
        """Replace the chat's summaries by these."""

    def purge(self, chat_id: str, /) -> int:
        """Remove everything of a chat, including its summaries; return the number of its messages."""
