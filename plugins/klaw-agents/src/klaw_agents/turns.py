"""What the adapters share: the turns of a conversation in a journal of the memory, and tools that answer in JSON."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from itertools import chain, repeat
from typing import Any

from klaw_core import Memory, SearchResult, Tool
from klaw_core.cli.kit import visible_json
from klaw_journals import Chat, Message

_CONVERSATIONS = "conversations"
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def remember(
    memory: Memory, chat: Chat, said: Iterable[tuple[str, str]], *, ids: Iterable[str] = (), sender_id: str = ""
) -> int:
    """Append messages (role, text) to the journal of a chat and index them; return how many there were.

    Empty ones are left out; an unknown role is a tool. ``ids`` are their ids, or empty: the same message with the same
    id is kept once. Raise klaw_core.RecordError, StoreError.
    """
    now = datetime.now(UTC)
    own = {"sender_id": sender_id} if sender_id else {}
    messages = []
    for (role, text), name in zip(said, chain(ids, repeat("")), strict=False):
        known = _ROLES.get(role, "tool")
        meta = {**chat.meta, **own} if known == "user" else chat.meta
        if text.strip():
            messages.append(Message(known, text, now, name or uuid.uuid4().hex, meta=meta))
    if messages:
        memory.conversations.append_many(messages)
        memory.index(origin=_CONVERSATIONS)
    return len(messages)


def place_of(result: SearchResult) -> dict[str, Any]:
    """Return the metadata of a result for another framework's record: its own, and its place and trust.

    A model may read them, so they have nothing that nobody sees. Its own cannot change the place.
    """
    place: dict[str, Any] = visible_json(
        {
            **result.metadata,
            "path": result.path,
            "start_line": result.start_line,
            "end_line": result.end_line,
            "origin": result.origin,
            "source": result.source,
            "created_at": result.created_at.isoformat(),
            "is_weak": result.is_weak,
            "trust": result.trust,
        }
    )
    return place


def offered(memory: Memory, allow: Collection[str]) -> list[tuple[Tool, Callable[[Any], str]]]:
    """Return the tools of a memory, each with a function that takes a model's arguments and returns JSON.

    A wrong call raises nothing; its answer is ``{"error": ...}``.
    """
    chosen = frozenset(allow)

    def of(tool: Tool) -> Callable[[Any], str]:
        return lambda arguments: json.dumps(memory.call_tool(tool.name, arguments, allow=chosen), ensure_ascii=False)

    return [(tool, of(tool)) for tool in memory.toolbox(allow=chosen).values()]
