"""The tools of a memory: what a language model is told about them, and what happens when it calls one.

A tool is described as ``name``, ``description`` and ``input_schema`` (JSON Schema), which is what Anthropic's API takes
and what OpenAI's takes under other names. Arguments come from a model, so they are checked against that schema and the
lengths it allows, and whatever is wrong is returned to the model as data: ``{"error": …, "hint": …}``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from klaw_core import KlawError, Tool, ToolExtension, to_json
from klaw_core.cli.kit import visible_json
from klaw_core.errors import as_klaw_error, isolated
from klaw_core.values.tools import Json
from klaw_tools.arguments import adapted, problems_of, shown, snake_case
from klaw_tools.memory_tools import ToolMemory, memory_tools

_LOG = logging.getLogger("klaw")


def tools(memory: ToolMemory, allow: Collection[str] = ()) -> list[Json]:
    """Return the tools of a memory as ``name``, ``description``, ``input_schema``: plain JSON."""
    return [to_json(tool) for tool in all_tools(memory, allow).values()]


def all_tools(memory: ToolMemory, allow: Collection[str] = ()) -> Mapping[str, Tool]:
    """Return the tools by name: the memory's own, then those of extensions. Of two with the same name, keep the first.

    ``allow`` names the opt-in tools to include.
    """
    found = {tool.name: tool for tool in memory_tools(memory)}
    for name, extension in memory.extensions.having(ToolExtension):
        try:
            with isolated(f"the tools of the extension {name!r}"):
                offered = {tool.name: tool for tool in extension.tools()}
        except KlawError as error:
            _LOG.warning("%s", error)
        else:
            found = {**found, **{own: tool for own, tool in offered.items() if own not in found}}
    return {name: tool for name, tool in found.items() if not tool.opt_in or name in allow}


def call(memory: ToolMemory, name: str, arguments: Mapping[str, Any] | str, allow: Collection[str] = ()) -> Json:
    """Run a tool of a memory with a model's arguments, as :func:`answer_to_model` does."""
    return answer_to_model(all_tools(memory, allow), name, arguments)


def answer_to_model(known: Mapping[str, Tool], name: str, arguments: Mapping[str, Any] | str) -> Json:
    """Run one of these tools as :func:`run_tool` does; no text in the answer has characters that nobody sees."""
    answer: Json = visible_json(run_tool(known, name, arguments))
    return answer


def run_tool(known: Mapping[str, Tool], name: str, arguments: Mapping[str, Any] | str) -> Json:
    """Run one of these tools, by name, with a model's arguments; return its answer as plain JSON.

    No input of a model raises. An unknown tool, arguments that do not match the schema, and an error of Klaw return
    ``{"error": message}``, with a ``hint`` if there is one.
    """
    asked: object = name  # a model may send anything
    tool = known.get(str(asked)) or (known.get(snake_case(asked)) if isinstance(asked, str) else None)
    if tool is None:
        return {"error": f"unknown tool {shown(name)}", "hint": f"known: {', '.join(known)}"}
    given = adapted(arguments, tool)
    problems = problems_of(given, tool.input_schema)
    if problems:
        return {"error": f"{tool.name}: {'; '.join(problems)}"}
    try:
        with isolated(f"the tool {tool.name!r}"):
            return tool.run(dict(given))
    except KlawError as error:
        answer: Json = to_json(as_klaw_error(error))
        return answer
