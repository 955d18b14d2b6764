"""What the adapters share: the turns of a conversation in a journal of the memory, and tools that answer in JSON."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from klaw_core import Memory, Tool
from klaw_journals import Chat, Message

_CONVERSATIONS = "conversations"
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def remember(memory: Memory, chat: Chat, said: Iterable[tuple[str, str]], *, sender_id: str = "") -> int:
    """Append messages (role, text) to the journal of a chat and index them; return how many there were.

    Empty ones are left out; an unknown role is a tool. Raise klaw_core.RecordError, StoreError.
    """
    now = datetime.now(UTC)
    messages = [_message(role, text, chat, now, sender_id) for role, text in said if text.strip()]
    if messages:
        memory.conversations.append_many(messages)
        memory.index(origin=_CONVERSATIONS)
    return len(messages)


def _message(role: str, text: str, chat: Chat, now: datetime, sender_id: str) -> Message:
    known = _ROLES.get(role, "tool")
    meta = {**chat.meta, **({"sender_id": sender_id} if sender_id and known == "user" else {})}
    return Message(known, text, now, uuid.uuid4().hex, meta=meta)


def offered(memory: Memory, allow: Collection[str]) -> list[tuple[Tool, Callable[[Any], str]]]:
    """Return the tools of a memory, each with a function that takes a model's arguments and returns JSON.

    A wrong call raises nothing; its answer is ``{"error": ...}``.
    """
    chosen = frozenset(allow)

    def of(tool: Tool) -> Callable[[Any], str]:
        return lambda arguments: json.dumps(memory.call_tool(tool.name, arguments, allow=chosen), ensure_ascii=False)

    return [(tool, of(tool)) for tool in memory.toolbox(allow=chosen).values()]
