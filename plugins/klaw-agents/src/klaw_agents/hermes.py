"""Hermes Agent: a memory provider. A file of one line in Hermes' directory of plugins imports :func:`register`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agent.memory_provider import MemoryProvider

from klaw_agents.turns import offered, remember
from klaw_core import Memory
from klaw_journals import Chat

NAME = "klaw"
_INSTRUCTIONS = (
    "# Klaw\nA memory of notes, past sessions and saved texts. What fits a message is given with it; search for more "
    "with memory_search. Save with memory_save what will matter later."
)


class KlawMemoryProvider(MemoryProvider):
    """Recalls before each message, keeps each turn in the memory's journal, and offers the memory's tools.

    The memory is that of Klaw's configuration (``KLAW_DATA_DIR``). Turns of subagents and of scheduled work are not
    kept. What Hermes adds to its own MEMORY.md and USER.md is saved as well, as written by an agent. ``budget`` is the
    size of what is recalled, in tokens. Methods raise klaw_core.KlawError, which Hermes logs.
    """

    def __init__(self, *, budget: int = 1000, open_memory: Callable[[], Memory] = Memory.open) -> None:
        self._budget = budget
        self._open = open_memory
        self._memory: Memory | None = None
        self._run: dict[str, Callable[[Any], str]] = {}
        self._session = NAME
        self._sender_id = ""
        self._keeps = True

    @property
    def name(self) -> str:
        """The name for ``memory.provider`` in Hermes' configuration."""
        return NAME

    def is_available(self) -> bool:
        """Return True: nothing has to be configured."""
        return True

    def get_config_schema(self) -> list[dict[str, Any]]:
        """Return what ``hermes memory setup`` asks for: the directory of another memory."""
        what = "directory of the memory, if not the usual one"
        return [{"key": "data_dir", "description": what, "required": False, "env_var": "KLAW_DATA_DIR"}]

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Open the memory for a session."""
        self._session = session_id or NAME
        self._sender_id = str(kwargs.get("user_id") or "")
        self._keeps = kwargs.get("agent_context", "primary") in (None, "", "primary")
        self._opened()

    def system_prompt_block(self) -> str:
        """Return how to use the memory, with core memory and whatever else is the same for every message."""
        return f"{_INSTRUCTIONS}\n\n{self._recalled('', 'stable')}".rstrip()

    def prefetch(self, query: str, *, session_id: str = "") -> str:  # noqa: ARG002  # every session has one memory
        """Return what the memory says about a message."""
        return self._recalled(query, "volatile")

    def sync_turn(self, user_content: str, assistant_content: str, *, session_id: str = "", **_given: Any) -> None:
        """Append a turn to the journal of the session and index it."""
        if self._memory is not None and self._keeps:
            said = [("user", user_content), ("assistant", assistant_content)]
            remember(self._memory, Chat("hermes", session_id or self._session), said, sender_id=self._sender_id)

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools of the memory. Hermes asks for them before it initializes a provider."""
        found = offered(self._opened(), ())
        self._run = {tool.name: run for tool, run in found}
        return [
            {"name": tool.name, "description": tool.description, "parameters": tool.input_schema} for tool, _ in found
        ]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **_given: Any) -> str:
        """Run a tool; a wrong call raises nothing and is answered with ``{"error": ...}``."""
        if tool_name not in self._run:
            return json.dumps({"error": f"the memory has no tool {tool_name!r}"})
        return self._run[tool_name](args)

    def on_session_switch(self, new_session_id: str, **_given: Any) -> None:
        """Keep what follows in the chat of the new session."""
        self._session = new_session_id or self._session

    def on_memory_write(self, action: str, target: str, content: str, metadata: Any = None) -> None:  # noqa: ARG002
        """Save what Hermes adds to its own memory."""
        if action == "add" and content.strip() and self._memory is not None and self._keeps:
            self._memory.call_tool("memory_save", {"content": content, "tags": ["hermes", target]})

    def shutdown(self) -> None:
        """Close the memory."""
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _opened(self) -> Memory:
        if self._memory is None:
            self._memory = self._open()
        return self._memory

    def _recalled(self, message: str, part: Any) -> str:
        return "" if self._memory is None else str(self._memory.context(message, budget=self._budget, part=part))


def register(ctx: Any) -> None:
    """Register the provider with Hermes."""
    ctx.register_memory_provider(KlawMemoryProvider())
