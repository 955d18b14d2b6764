"""The tools that an agent is offered, and those that only this server has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from klaw_core import Memory, NotFoundError, Tool
from klaw_mcp.connector import connector_tools
from klaw_tools import answer_to_model

#: The tools that agents are offered by default, in this order, as far as they are installed; ``memory_forget`` only if
#: the policy allows it.
NAMES = (
    "memory_search",
    "memory_get",
    "memory_save",
    "memory_context",
    "memory_remember",
    "memory_facts",
    "memory_core_get",
    "memory_core_update",
    "memory_core_delete",
    "memory_status",
    "memory_forget",
)
FORGET = "memory_forget"

# Arguments that agents are not told of, to save tokens; a call may have them.
_UNTOLD = {
    "memory_get": {"lines"},
    "memory_search": {"source", "min_relevance", "per_document", "mode", "tags"},
    "memory_save": {"source"},
    "memory_context": {"budget"},
    "memory_facts": {"limit"},
}
# Keywords that only restrict an argument. The core checks them, and models work better with shorter schemas.
_CHECKS_ONLY = frozenset({"minLength", "maxLength", "maxItems", "pattern", "minimum", "maximum"})


@frozen
class Policy:
    """The permissions of an agent. ``collections`` are those that it searches; empty means the default.

    ``names`` are the tools that it is offered, ``extra`` are tools that it is offered besides.
    """

    read_only: bool = False
    allow_forget: bool = False
    collections: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    names: tuple[str, ...] = NAMES


def toolbox(memory: Memory, policy: Policy) -> Mapping[str, Tool]:
    """Return the tools that an agent is offered, by name. Raise NotFoundError if an extra tool does not exist."""
    own = memory.toolbox()
    search = _confined(own["memory_search"], policy)
    found = {FORGET: _forget(memory), **connector_tools(memory, search), **own}
    unknown = [name for name in policy.extra if name not in found]
    if unknown:
        raise NotFoundError(f"unknown tool {unknown[0]!r}", hint=f"known: {', '.join(found)}")
    names = [name for name in dict.fromkeys((*policy.names, *policy.extra)) if name in found]
    return {
        name: _confined(found[name], policy)
        for name in names
        if (name != FORGET or policy.allow_forget) and (found[name].read_only or not policy.read_only)
    }


@define(eq=False)
class Toolbox:
    """The tools that an agent is offered, created at the first call. ``get_memory`` may open the memory."""

    get_memory: Callable[[], Memory]
    policy: Policy
    _tools: Mapping[str, Tool] | None = field(default=None, init=False)

    def tools(self) -> Mapping[str, Tool]:
        """Return the tools by name."""
        if self._tools is None:
            self._tools = toolbox(self.get_memory(), self.policy)
        return self._tools

    def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Run a tool. Return its result as JSON, and whether it is an error."""
        answer = answer_to_model(self.tools(), name, arguments)
        return json.dumps(answer, ensure_ascii=False), "error" in answer


def described(tool: Tool) -> dict[str, Any]:
    """Return a tool's JSON Schema, to save tokens without rare arguments and what only restricts others."""
    schema = tool.input_schema
    told = {name: rules for name, rules in schema["properties"].items() if name not in _UNTOLD.get(tool.name, ())}
    properties = {name: _without_checks(rules) for name, rules in told.items()}
    required = {"required": schema["required"]} if schema["required"] else {}
    return {"type": "object", "properties": properties, **required}


def _without_checks(rules: Mapping[str, Any]) -> dict[str, Any]:
    dropped = _CHECKS_ONLY | ({"description"} if "enum" in rules else set())
    kept = {key: value for key, value in rules.items() if key not in dropped}
    return kept | ({"items": _without_checks(rules["items"])} if "items" in rules else {})


def _confined(tool: Tool, policy: Policy) -> Tool:
    """Return a tool that searches the policy's collections if its arguments name no collection."""
    if not policy.collections or "collection" not in tool.properties:
        return tool
    where: Any = list(policy.collections) if len(policy.collections) > 1 else policy.collections[0]
    run = tool.run
    return evolve(tool, run=lambda arguments: run({"collection": where, **arguments}))


def _forget(memory: Memory) -> Tool:
    def forget(arguments: dict[str, Any]) -> dict[str, Any]:
        path = arguments["path"]
        if path.endswith("/"):
            raise NotFoundError(
                f"{path} is a whole workspace or chat", hint="only the user can forget it: `klaw forget`"
            )
        gone = memory.forget(path)
        return {"forgotten": list(gone.paths)}

    path = {"type": "string", "description": "As in a result: saved/2026-02-24-1a2b3c.", "minLength": 1}
    description = "Forget one saved memory or note. Only when the user asks."
    return Tool(FORGET, description, {"path": path}, forget, ("path",), destructive=True)
