"""Pydantic AI: the tools of a memory as a toolset."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pydantic_ai import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from klaw_agents.threads import in_thread
from klaw_core import Memory, Tool

if TYPE_CHECKING:
    from pydantic_ai import RunContext

_RETRIES = 1


def _as_object(arguments: Any) -> Any:
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


# Accept any object: Klaw checks the arguments itself and describes the problems to the model.
_OBJECT = SchemaValidator(core_schema.no_info_before_validator_function(_as_object, core_schema.dict_schema()))


class KlawToolset(AbstractToolset[Any]):
    """The tools of a memory (search, read, save, ...) for ``Agent(toolsets=[...])``.

        agent = Agent(model, toolsets=[KlawToolset(memory)])

    ``allow`` names the opt-in tools to offer (``memory_forget``). A wrong call of a model raises nothing; its
    answer is ``{"error": ...}``. The caller closes ``memory``.
    """

    def __init__(self, memory: Memory, *, allow: Collection[str] = (), id: str | None = "klaw") -> None:  # noqa: A002  # their name
        self._memory = memory
        self._allow = frozenset(allow)
        self._id = id

    @property
    def id(self) -> str | None:
        """The name of the toolset, unique among those of an agent."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002  # every run has the same
        """Return the tools by name."""
        toolbox = await in_thread(self._memory.toolbox, allow=self._allow)
        return {name: self._offered(tool) for name, tool in toolbox.items()}

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002  # every run has the same
        tool: ToolsetTool[Any],  # noqa: ARG002  # its name is enough
    ) -> Any:
        """Run a tool and return its answer as JSON."""
        return await in_thread(self._memory.call_tool, name, tool_args, allow=self._allow)

    def _offered(self, tool: Tool) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.input_schema,
            metadata={"read_only": tool.read_only, "destructive": tool.destructive},
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=_RETRIES, args_validator=_OBJECT)
