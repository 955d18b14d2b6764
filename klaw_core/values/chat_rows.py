"""Conversations in a store: rows that copy the journal, each with its position there.

The ``chat_id`` of a row is the name of the chat's directory (``telegram_123456``, see
:class:`klaw_core.values.chats.Chat`), because a bare chat id is unique only within its channel.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from attrs import field, frozen


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
