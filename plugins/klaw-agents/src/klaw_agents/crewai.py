"""CrewAI: the tools of a memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from crewai.tools import BaseTool
from crewai.utilities.pydantic_schema_utils import create_model_from_schema
from pydantic import PrivateAttr

from klaw_agents.threads import in_thread
from klaw_agents.turns import offered
from klaw_core import Memory, Tool


def klaw_tools(memory: Memory, *, allow: Collection[str] = ()) -> list[BaseTool]:
    """Return the tools of a memory (search, read, save, ...) for ``Agent(tools=...)`` of a crew.

        Agent(role="librarian", goal="...", backstory="...", tools=klaw_tools(memory))

    ``allow`` names the opt-in tools to offer (``memory_forget``). A wrong call of a model raises nothing; its
    answer is ``{"error": ...}``. Several agents of a crew can share the tools. The caller closes ``memory``.
    """
    return [_tool(tool, run) for tool, run in offered(memory, allow)]


class _KlawTool(BaseTool):
    _run_it: Callable[[Any], str] = PrivateAttr()

    def _run(self, **arguments: Any) -> str:
        # CrewAI gives every argument that the model has left out as None.
        return self._run_it({name: value for name, value in arguments.items() if value is not None})

    async def _arun(self, **arguments: Any) -> str:
        return await in_thread(self._run, **arguments)

    def _validate_kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        return kwargs  # Klaw checks the arguments itself and describes the problems to the model


def _tool(tool: Tool, run: Callable[[Any], str]) -> BaseTool:
    schema = create_model_from_schema(tool.input_schema, model_name=tool.name)
    made = _KlawTool(name=tool.name, description=tool.description, args_schema=schema, cache_function=_never)
    made._run_it = run  # noqa: SLF001  # its own
    return made


def _never(_arguments: Any = None, _result: Any = None) -> bool:
    return False  # the same question can have another answer later
