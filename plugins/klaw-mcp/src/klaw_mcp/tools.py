"""Which tools an agent is offered, and those that the core does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from klaw_core import Memory, NotFoundError, Tool, run_tool, to_json

#: The tools that agents are offered by default, in this order; ``memory_forget`` only where that is allowed.
NAMES = (
    "memory_search",
    "memory_get",
    "memory_save",
    "memory_context",
    "memory_core_get",
    "memory_core_update",
    "memory_core_delete",
    "memory_status",
    "memory_forget",
)
FORGET = "memory_forget"

_MOST_LINES = 2_000
_MOST_TOKENS = 8_000
# What only checks an argument, and is checked by the core: a model does better with fewer words.
_CHECKS_ONLY = frozenset({"minLength", "maxLength", "pattern", "minimum", "maximum"})


@frozen
class Policy:
    """What an agent may do. ``collections`` are where it searches, by default as the memory does."""

    read_only: bool = False
    allow_forget: bool = False
    collections: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


def toolbox(memory: Memory, policy: Policy) -> Mapping[str, Tool]:
    """Return the tools that an agent is offered, by name. Raise NotFoundError for an extra one that there is not."""
    found = {**{tool.name: tool for tool in _own(memory)}, **memory.toolbox()}
    unknown = [name for name in policy.extra if name not in found]
    if unknown:
        raise NotFoundError(f"there is no tool {unknown[0]!r}", hint=f"known: {', '.join(found)}")
    names = [name for name in dict.fromkeys((*NAMES, *policy.extra)) if name in found]
    return {
        name: _confined(found[name], policy)
        for name in names
        if (name != FORGET or policy.allow_forget) and (found[name].read_only or not policy.read_only)
    }


def call(memory: Memory, policy: Policy, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run a tool that an agent is offered; what is wrong is an answer as well."""
    return run_tool(toolbox(memory, policy), name, arguments)


def described(tool: Tool) -> dict[str, Any]:
    """Return a tool's JSON Schema in few tokens: what only the check of the arguments needs is left out."""
    schema = tool.input_schema
    properties = {
        name: {key: value for key, value in rules.items() if key not in _CHECKS_ONLY}
        for name, rules in schema["properties"].items()
    }
    required = {"required": schema["required"]} if schema["required"] else {}
    return {"type": "object", "properties": properties, **required}


def _confined(tool: Tool, policy: Policy) -> Tool:
    """Return a tool that searches in the policy's collections unless it is told where."""
    if not policy.collections or "collection" not in tool.properties:
        return tool
    where: Any = list(policy.collections) if len(policy.collections) > 1 else policy.collections[0]
    run = tool.run
    return evolve(tool, run=lambda arguments: run({"collection": where, **arguments}))


def _own(memory: Memory) -> Sequence[Tool]:
    return (_get(memory), _context(memory), _status(memory), _forget(memory))


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description, "minLength": 1, "pattern": r"\S"}


def _number(description: str, most: int) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": 1, "maximum": most}


def _get(memory: Memory) -> Tool:
    def get(arguments: dict[str, Any]) -> dict[str, Any]:
        found = memory.get(arguments["path"], int(arguments.get("line", 1)), int(arguments.get("lines", 200)))
        return {"path": found.path, "lines": f"{found.start_line}-{found.end_line}", "content": found.content}

    properties = {
        "path": _text("As in a result: notes/a.md."),
        "line": _number("First line.", 10_000_000),
        "lines": _number("How many; 200 by default.", _MOST_LINES),
    }
    return Tool("memory_get", "Read a document, or some of its lines.", properties, get, ("path",), read_only=True)


def _context(memory: Memory) -> Tool:
    def context(arguments: dict[str, Any]) -> dict[str, Any]:
        found = memory.context(arguments["message"], budget=int(arguments.get("budget", 1_000)))
        answer: dict[str, Any] = {"context": str(found)}
        return answer | ({"notices": list(found.notices)} if found.notices else {})

    properties = {
        "message": _text("What the user says."),
        "budget": _number("Tokens; 1000 by default.", _MOST_TOKENS),
    }
    description = "Everything worth knowing for a message: core memory, facts and the best chunks, in one block."
    return Tool("memory_context", description, properties, context, ("message",), read_only=True)


def _status(memory: Memory) -> Tool:
    def status(_arguments: dict[str, Any]) -> dict[str, Any]:
        found = to_json(memory.status())
        kept = ("origins", "collections", "embedder", "statistics", "problems")
        return {name: found[name] for name in kept if found[name]}

    return Tool("memory_status", "What is indexed, and what does not work.", {}, status, read_only=True)


def _forget(memory: Memory) -> Tool:
    def forget(arguments: dict[str, Any]) -> dict[str, Any]:
        path = arguments["path"]
        if path.endswith("/"):
            raise NotFoundError(f"{path} is a whole workspace", hint="only the user can forget it: `klaw forget`")
        gone = memory.forget(path)
        return {"forgotten": list(gone.paths)}

    properties = {"path": _text("As in a result: saved/2026-02-24-1a2b3c.")}
    description = "Forget one saved memory or note for good. Only when the user asks."
    return Tool(FORGET, description, properties, forget, ("path",), destructive=True)
