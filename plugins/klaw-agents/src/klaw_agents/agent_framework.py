"""Microsoft Agent Framework: a context provider that remembers, and the tools of a memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from agent_framework import ContextProvider, FunctionTool

from klaw_agents.threads import in_thread
from klaw_agents.turns import offered, remember
from klaw_core import Memory, Tool
from klaw_journals import Chat

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext, SupportsAgentRun

_CHANNEL = "agent-framework"
_NO_SESSION = "none"


class KlawContextProvider(ContextProvider):
    """Gives an agent what the memory says about a message, and keeps what was said in the memory's journal.

        agent = Agent(client, context_providers=[KlawContextProvider(memory)])

    Each session is a chat; every later session finds its messages. ``budget`` is the size of the context in tokens.
    ``sender_id`` identifies the user: facts belong to this person in every session. With ``remember=False`` nothing is
    kept. The caller closes ``memory``.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        source_id: str = "klaw",
        budget: int = 1000,
        sender_id: str = "",
        remember: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._memory = memory
        self._budget = budget
        self._sender_id = sender_id
        self._remember = remember

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,  # noqa: ARG002  # their interface
        session: AgentSession,  # noqa: ARG002
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002
    ) -> None:
        """Add the context for the new messages to the instructions."""
        asked = "\n".join(message.text for message in context.input_messages if message.role == "user")
        if found := str(await in_thread(self._memory.context, asked, budget=self._budget)):
            context.extend_instructions(self.source_id, found)

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,  # noqa: ARG002  # their interface
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002
    ) -> None:
        """Append the new messages and the answer to the journal. Raise klaw_core.RecordError, StoreError."""
        if not self._remember:
            return
        answers = context.response.messages if context.response is not None else []
        said = [(str(message.role), message.text) for message in (*context.input_messages, *answers)]
        chat = Chat(_CHANNEL, session.session_id or _NO_SESSION)
        await in_thread(remember, self._memory, chat, said, sender_id=self._sender_id)


def klaw_tools(memory: Memory, *, allow: Collection[str] = ()) -> list[FunctionTool]:
    """Return the tools of a memory (search, read, save, ...) for ``Agent(tools=...)``.

    ``allow`` names the opt-in tools to offer (``memory_forget``). A wrong call of a model raises nothing; its
    answer is ``{"error": ...}``.
    """
    return [_function(tool, run) for tool, run in offered(memory, allow)]


def _function(tool: Tool, run: Callable[[Any], str]) -> FunctionTool:
    async def call(**arguments: Any) -> str:
        return await in_thread(run, arguments)

    return FunctionTool(name=tool.name, description=tool.description, func=call, input_model=tool.input_schema)
