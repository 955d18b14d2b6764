"""Agno: the tools of a memory as a toolkit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from agno.tools import Toolkit
from agno.tools.function import Function

from klaw_agents.turns import offered
from klaw_core import Memory, Tool


class KlawTools(Toolkit):
    """The tools of a memory (search, read, save, ...) for ``Agent(tools=[...])``.

        agent = Agent(model=model, tools=[KlawTools(memory)])

    For recall without a tool call, give ``memory.context(message)`` as ``additional_context``. ``allow`` names the
    opt-in tools to offer (``memory_forget``). A wrong call of a model raises nothing; its answer is
    ``{"error": ...}``. The caller closes ``memory``.
    """

    def __init__(self, memory: Memory, *, allow: Collection[str] = (), name: str = "klaw") -> None:
        super().__init__(name=name, tools=[_function(tool, run) for tool, run in offered(memory, allow)])


def _function(tool: Tool, run: Callable[[Any], str]) -> Function:
    def call(**arguments: Any) -> str:
        return run(arguments)

    # Klaw checks the arguments itself and describes the problems to the model; its schema is the model's.
    return Function(
        name=tool.name,
        description=tool.description,
        parameters=tool.input_schema,
        entrypoint=call,
        skip_entrypoint_processing=True,
    )
