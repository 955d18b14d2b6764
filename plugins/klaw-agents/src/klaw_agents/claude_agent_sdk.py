"""Claude Agent SDK: the tools of a memory in the program's own process, and recall before each prompt."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    McpSdkServerConfig,
    SdkMcpTool,
    ToolAnnotations,
    create_sdk_mcp_server,
)

from klaw_agents.threads import in_thread
from klaw_agents.turns import offered
from klaw_core import Memory, Tool

NAME = "klaw"


def klaw_server(memory: Memory, *, allow: Collection[str] = (), name: str = NAME) -> McpSdkServerConfig:
    """Return the tools of a memory as a server for ``ClaudeAgentOptions(mcp_servers={"klaw": ...})``.

    ``allow`` names the opt-in tools to offer (``memory_forget``). A wrong call of a model raises nothing; its
    answer is ``{"error": ...}``. The caller closes ``memory``.
    """
    return create_sdk_mcp_server(name, tools=klaw_tools(memory, allow=allow))


def klaw_tools(memory: Memory, *, allow: Collection[str] = ()) -> list[SdkMcpTool[Any]]:
    """Return the tools of :func:`klaw_server`, for a server that has others as well."""
    return [_tool(tool, run) for tool, run in offered(memory, allow)]


def klaw_options(
    memory: Memory, *, allow: Collection[str] = (), budget: int = 1000, **options: Any
) -> ClaudeAgentOptions:
    """Return ``ClaudeAgentOptions`` with the server, the right to call its tools, and recall before each prompt.

    ``options`` are others of ``ClaudeAgentOptions``, except ``mcp_servers``, ``allowed_tools`` and ``hooks``.
    ``budget`` is the size of the recalled text in tokens.
    """
    tools = [f"mcp__{NAME}__{name}" for name in memory.toolbox(allow=frozenset(allow))]
    return ClaudeAgentOptions(
        mcp_servers={NAME: klaw_server(memory, allow=allow)},
        allowed_tools=tools,
        hooks={"UserPromptSubmit": [HookMatcher(hooks=[recall(memory, budget=budget)])]},
        **options,
    )


def recall(memory: Memory, *, budget: int = 1000) -> Callable[[Any, str | None, Any], Any]:
    """Return a hook for ``UserPromptSubmit`` that adds what the memory says about the prompt."""

    async def hook(given: Any, _tool_use_id: str | None, _context: Any) -> dict[str, Any]:
        found = str(await in_thread(memory.context, str(given.get("prompt", "")), budget=budget))
        said = {"hookEventName": "UserPromptSubmit", "additionalContext": found}
        return {"hookSpecificOutput": said} if found else {}

    return hook


def _tool(tool: Tool, run: Callable[[Any], str]) -> SdkMcpTool[Any]:
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": await in_thread(run, arguments)}]}

    hints = ToolAnnotations(readOnlyHint=tool.read_only, destructiveHint=tool.destructive)
    return SdkMcpTool(tool.name, tool.description, tool.input_schema, call, hints)
