"""``KlawChatMessageHistory``: a chat of a memory as LangChain's history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from klaw_core import Memory
from klaw_core.cli.kit import visible
from klaw_journals import BadLine, Chat, Message

_KEY = "langchain"
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_TYPES = {role: kind for kind, role in _ROLES.items()}


class KlawChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session, kept in a journal and found by searches of the memory.

        history = KlawChatMessageHistory("trip-to-oslo", memory)
        history.add_user_message("When does the ferry leave?")

    Messages are on disk when :meth:`add_messages` returns. Secrets are redacted before messages are indexed. Messages
    that other programs have written to the chat are returned as well. ``sender_id`` identifies the user in the
    channel: facts belong to this person in every session. The ``name`` of a human's message is kept.
    """

    def __init__(self, session_id: str, memory: Memory, *, channel: str = "langchain", sender_id: str = "") -> None:
        self._memory = memory
        self._sender_id = sender_id
        self._chat = Chat(channel, session_id)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # theirs is an attribute
        """Every message of the chat, oldest first."""
        lines = self._memory.conversations.read(self._chat)
        return [_from_klaw(line.message) for line in lines if not isinstance(line, BadLine) and not line.message.type]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages. Raise klaw_core.StoreError if they cannot be written."""
        now = datetime.now(UTC)
        self._memory.conversations.append_many(
            _to_klaw(message, self._chat, now, self._sender_id) for message in messages
        )

    def clear(self) -> None:
        """Delete the chat permanently: its journal, its rows and its chunks."""
        self._memory.conversations.purge(self._chat)


def _to_klaw(message: BaseMessage, chat: Chat, now: datetime, sender_id: str) -> Message:
    role = _ROLES.get(message.type, "system")
    told = {"sender_id": sender_id, "name": message.name} if role == "user" else {}
    return Message(
        role,
        str(message.text),
        now,
        message.id or "",
        meta={**{key: value for key, value in told.items() if value}, **chat.meta},
        extra={_KEY: message_to_dict(message)},
    )


def _from_klaw(message: Message) -> BaseMessage:
    written: Any = message.extra.get(_KEY)
    if not isinstance(written, dict):
        data = {"content": visible(message.content), "id": message.id, "tool_call_id": message.id}
        written = {"type": _TYPES[message.role], "data": data}
    return messages_from_dict([written])[0]
