"""The rows of conversations, in one snapshot or one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from klaw_core.values.chat_rows import JournalFileState, Session, StoredMessage, Summary


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
