"""Open WebUI: a filter that recalls before each message and keeps what was said, for each user apart.

In Open WebUI, an administrator makes a function of these lines, and switches it on for the models that remember::

    \"\"\"
    title: Klaw
    requirements: klaw-agents
    \"\"\"
    from klaw_agents.open_webui import Filter
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from klaw_agents.threads import in_thread
from klaw_agents.turns import remember
from klaw_core import Agents, KlawError, Memory, ThreadLock
from klaw_journals import Chat

_CHANNEL = "open-webui"
_LAST = 2  # messages of a turn: the question and the answer
_OPENING = ThreadLock("the memories of Open WebUI's users")
_opened: list[Agents] = []


class Filter:
    """A filter function of Open WebUI.

    Each user has a memory of their own, ``agents/open-webui-USER`` in Klaw's data directory: nobody gets what another
    user has said. Errors of the memory do not stop a chat; the user is told of them.
    """

    class Valves(BaseModel):
        """What an administrator can set."""

        priority: int = Field(default=0, description="Filters with a lower number come first.")
        budget: int = Field(default=1000, ge=50, description="The size of what is recalled, in tokens.")
        remember: bool = Field(default=True, description="Keep what is said.")

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def inlet(
        self,
        body: dict[str, Any],
        __user__: Mapping[str, Any] | None = None,
        __event_emitter__: Any = None,
    ) -> dict[str, Any]:
        """Add what the memory says about the last message to the system message."""
        asked = [text for role, text, _ in _said(body) if role == "user"]
        if not asked:
            return body
        try:
            found = str(await in_thread(self._recall, __user__, asked[-1]))
        except KlawError as error:
            await _tell(__event_emitter__, error)
            return body
        return _with_system(body, found) if found else body

    async def outlet(
        self,
        body: dict[str, Any],
        __user__: Mapping[str, Any] | None = None,
        __event_emitter__: Any = None,
    ) -> dict[str, Any]:
        """Keep the last message and its answer in the journal of the user's memory."""
        if self.valves.remember:
            try:
                await in_thread(_keep, __user__, str(body.get("chat_id") or "none"), _said(body)[-_LAST:])
            except KlawError as error:
                await _tell(__event_emitter__, error)
        return body

    def _recall(self, user: Mapping[str, Any] | None, message: str) -> Any:
        memory = _memory(user)
        return "" if memory is None else memory.context(message, budget=self.valves.budget)


def _memory(user: Mapping[str, Any] | None) -> Memory | None:
    """Return the memory of a user; None without one, as for a task of Open WebUI itself."""
    if not user or not user.get("id"):
        return None
    with _OPENING.hold():
        if not _opened:
            _opened.append(Agents())
    return _opened[0].memory(f"{_CHANNEL}-{user['id']}")


def _keep(user: Mapping[str, Any] | None, chat: str, said: list[tuple[str, str, str]]) -> None:
    memory = _memory(user)
    if memory is not None:
        remember(
            memory, Chat(_CHANNEL, chat), [(role, text) for role, text, _ in said], ids=[name for *_, name in said]
        )


def _said(body: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return role, text and id of the messages of user and assistant."""
    messages = [each for each in body.get("messages") or () if each.get("role") in {"user", "assistant"}]
    return [(each["role"], _text(each.get("content")), str(each.get("id") or "")) for each in messages]


def _text(content: Any) -> str:
    if isinstance(content, list):  # a message with pictures
        return "\n".join(str(part.get("text", "")) for part in content if part.get("type") == "text")
    return content if isinstance(content, str) else ""


def _with_system(body: dict[str, Any], found: str) -> dict[str, Any]:
    first, *rest = body["messages"]
    if first.get("role") == "system":
        system = {**first, "content": f"{_text(first.get('content'))}\n\n{found}"}
        return {**body, "messages": [system, *rest]}
    return {**body, "messages": [{"role": "system", "content": found}, first, *rest]}


async def _tell(emit: Any, error: KlawError) -> None:
    if emit is not None:
        await emit({"type": "status", "data": {"description": f"Klaw: {error.message}", "done": True}})
