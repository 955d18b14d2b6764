"""Operations on conversations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from klaw_journals import BadLine, Chat, Message
from klaw_serve.operations import Json, Operation
from klaw_serve.schemas import integer, moment, one_of, string
from klaw_serve.tenants import Tenant

_CHAT = string("A chat's name: CHANNEL_ID, as in telegram_123456.", 300)
_MAX_MESSAGES = 1_000


def _chats(tenant: Tenant, _given: Json) -> Any:
    return {"chats": tenant.memory.conversations.chats()}


def _messages(tenant: Tenant, given: Json) -> Any:
    """Return messages with their secrets redacted, as they are indexed."""
    conversations = tenant.memory.conversations
    chat, limit = Chat.parse(given["chat"]), given.get("limit", 100)
    since, until = moment(given, "since", day="first"), moment(given, "until", day="end")
    if since is None and until is None:
        lines = conversations.tail(chat, limit)
    else:
        lines = tuple(conversations.read(chat, since, until))[-limit:]
    # A writer may have appended a message twice: the last lines of a chat are not marked as duplicates.
    said = {line.message.id: line.message for line in lines if not isinstance(line, BadLine)}.values()
    strike = conversations.redactor.text
    return {"messages": [{**message.record(), "content": strike(message.content)} for message in said]}


def _append(tenant: Tenant, given: Json) -> Any:
    chat = Chat.parse(given["chat"])
    said_at = moment(given, "ts") or datetime.now(UTC)
    who = {name: given[name] for name in ("sender_id", "name") if given.get(name)}
    message = Message(given["role"], given["content"], said_at, id=given.get("id", ""), meta={**who, **chat.meta})
    return tenant.memory.conversations.append(message).record()


CHAT_OPERATIONS: Final[Sequence[Operation]] = (
    Operation("memory.chats", "GET", "/api/chats", "List chats, the most recently active first.", _chats),
    Operation(
        "memory.messages",
        "GET",
        "/api/chats/{chat}",
        "Read the last messages of a chat, oldest first.",
        _messages,
        {
            "chat": _CHAT,
            "limit": integer("At most this many; default 100.", 1, _MAX_MESSAGES),
            "since": string("Only from this time on.", 40),
            "until": string("Only up to this time; a day is included.", 40),
        },
        ("chat",),
    ),
    Operation(
        "memory.append",
        "POST",
        "/api/chats/{chat}",
        "Append a message to a chat.",
        _append,
        {
            "chat": _CHAT,
            "role": one_of("The speaker.", "user", "assistant", "system", "tool"),
            "content": string("The text of the message.", 1_000_000),
            "id": string("The id of the message; repeating a message with its id and its time adds nothing.", 200),
            "ts": string("The time of the message; default now.", 40),
            "sender_id": string("Who wrote the message, in the channel: facts belong to this person.", 80),
            "name": string("The name of the speaker.", 80),
        },
        ("chat", "role", "content"),
        read_only=False,
        status=201,
    ),
)
