"""OpenAI Agents SDK: a session in a journal of the memory, and the tools of the memory."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from agents import FunctionTool
from agents.memory.session_settings import SessionSettings, coerce_session_settings, resolve_session_limit

from klaw_agents.threads import in_thread
from klaw_core import Memory, ThreadLock, Tool
from klaw_journals import BadLine, Chat, Message

if TYPE_CHECKING:
    from agents import TResponseInputItem
    from agents.tool_context import ToolContext

_KEY = "openai_agents"
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
# The last item is read and removed in one step, so that two callers never get the same item.
_POPPING = ThreadLock("the last item of a session")


class KlawSession:
    """A ``Session`` of the OpenAI Agents SDK: its items are the messages of a chat in the memory's journal.

        session = KlawSession("trip-to-oslo", memory)
        result = await Runner.run(agent, "When does the ferry leave?", session=session)

    Items are on disk when :meth:`add_items` returns, and are read back unchanged. After ``memory.index()``, searches
    find the messages of user and assistant, with secrets redacted. Messages of the chat that other programs have
    written are items as well. :meth:`pop_item` removes an item from the journal, the rows and the index.
    ``sender_id`` identifies the user in the channel: facts belong to this person in every session. Methods raise
    klaw_core.StoreError if the memory cannot be read or written. The caller closes ``memory``.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory,
        *,
        channel: str = "openai-agents",
        sender_id: str = "",
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = coerce_session_settings(session_settings or {})
        self._memory = memory
        self._chat = Chat(channel, session_id)
        self._sender_id = sender_id

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the last ``limit`` items, oldest first. The default is the limit of the settings, or all items."""
        wanted = resolve_session_limit(limit, self.session_settings)
        return await in_thread(self._items, wanted)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items. Raise klaw_core.RecordError if an item is not JSON."""
        if items:
            await in_thread(self._append, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item permanently and return it; None if there is none."""
        return await in_thread(self._pop)

    async def clear_session(self) -> None:
        """Delete the chat permanently: its journal, its rows and its chunks."""
        await in_thread(self._memory.conversations.purge, self._chat)

    def _items(self, limit: int | None) -> list[TResponseInputItem]:
        if limit == 0:
            return []
        items = [item for _, item in self._kept()]
        return items if limit is None or limit < 0 else items[-limit:]

    def _kept(self) -> list[tuple[str, TResponseInputItem]]:
        """Return the ids and items of the chat, oldest first. If an id occurs twice, the first item counts."""
        lines = self._memory.conversations.read(self._chat)
        messages = (line.message for line in lines if not isinstance(line, BadLine) and not line.duplicate)
        found = ((message.id, _item(message)) for message in messages if not message.type)
        return [(name, item) for name, item in found if item is not None]

    def _append(self, items: Sequence[TResponseInputItem]) -> None:
        now = datetime.now(UTC)
        self._memory.conversations.append_many([_message(item, self._chat, now, self._sender_id) for item in items])

    def _pop(self) -> TResponseInputItem | None:
        with _POPPING.hold():
            kept = self._kept()
            if not kept:
                return None
            name, item = kept[-1]
            self._memory.conversations.remove(self._chat, [name])
            return item


def klaw_tools(memory: Memory, *, allow: Collection[str] = ()) -> list[FunctionTool]:
    """Return the tools of a memory (search, read, save, ...) for ``Agent(tools=...)``.

    ``allow`` names the opt-in tools to offer (``memory_forget``). A wrong call of a model raises nothing; its
    answer is ``{"error": ...}``.
    """
    return [_function(memory, tool, frozenset(allow)) for tool in memory.toolbox(allow=allow).values()]


def _function(memory: Memory, tool: Tool, allow: frozenset[str]) -> FunctionTool:
    async def invoke(_context: ToolContext[Any], arguments: str) -> str:
        answer = await in_thread(memory.call_tool, tool.name, arguments, allow=allow)
        return json.dumps(answer, ensure_ascii=False)

    # Klaw checks the arguments itself; in strict mode every argument would have to be given.
    return FunctionTool(tool.name, tool.description, tool.input_schema, invoke, strict_json_schema=False)


def _message(item: Any, chat: Chat, now: datetime, sender_id: str) -> Message:
    role = _ROLES.get(str(item.get("role")), "tool")
    meta = {**chat.meta, **({"sender_id": sender_id} if sender_id and role == "user" else {})}
    # A new id, because the SDK may add an item that it popped again with its old id.
    return Message(role, _said(item), now, uuid.uuid4().hex, meta=meta, extra={_KEY: dict(item)})


def _said(item: Mapping[str, Any]) -> str:
    """Return the text of an item: that of a message, or the arguments or the result of a tool call."""
    for key in ("content", "output"):
        value = item.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, Iterable):
            parts = (part.get("text") or part.get("refusal") for part in value if isinstance(part, Mapping))
            return "\n".join(part for part in parts if isinstance(part, str))
    return f"{item['name']}({item.get('arguments', '')})" if "name" in item else ""


def _item(message: Message) -> TResponseInputItem | None:
    """Return the item of a message; None if another program wrote it and the SDK has no such item."""
    kept = message.extra.get(_KEY)
    if isinstance(kept, dict):
        return cast("TResponseInputItem", kept)
    if message.role == "tool":
        return None
    return cast("TResponseInputItem", {"role": message.role, "content": message.content})
