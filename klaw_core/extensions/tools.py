"""The tools of a memory: what a language model is told about them, and what happens when it calls one.

A tool is described as ``name``, ``description`` and ``input_schema`` (JSON Schema), which is what Anthropic's API takes
and what OpenAI's takes under other names. Arguments come from a model, so they are checked against that very schema,
and whatever is wrong is returned to the model as data: ``{"error": …, "hint": …}``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from klaw_core.errors import KlawError, QueryError, as_klaw_error, isolated
from klaw_core.extensions.json_forms import result_for_model, to_json
from klaw_core.extensions.schemas import integer, string
from klaw_core.files.timestamps import parse_ts
from klaw_core.interfaces.extension import ToolExtension
from klaw_core.values.search import Filters
from klaw_core.values.tools import Json, Tool

if TYPE_CHECKING:
    from klaw_core.memory import Memory

_LOG = logging.getLogger("klaw")
_MOST_RESULTS = 50
_MAX_QUERY_CHARACTERS = 4_000
_MAX_LABEL_CHARACTERS = 200
_SHOWN_CHARACTERS = 60


def tools(memory: Memory) -> list[Json]:
    """Return every tool of a memory as ``name``, ``description``, ``input_schema``: plain JSON, yours to change."""
    return [to_json(tool) for tool in all_tools(memory).values()]


def all_tools(memory: Memory) -> Mapping[str, Tool]:
    """Return the tools by name: the search, then those of the extensions. Of two with one name the first counts."""
    found = {tool.name: tool for tool in (_search_tool(memory),)}
    for name, extension in memory.extensions.having(ToolExtension):
        try:
            with isolated(f"the tools of the extension {name!r}"):
                offered = {tool.name: tool for tool in extension.tools()}
        except KlawError as error:
            _LOG.warning("%s", error)
        else:
            found = {**found, **{own: tool for own, tool in offered.items() if own not in found}}
    return found


def call(memory: Memory, name: str, arguments: Mapping[str, Any]) -> Json:
    """Run a tool of a memory with a model's arguments, as :func:`run_tool` does."""
    return run_tool(all_tools(memory), name, arguments)


def run_tool(known: Mapping[str, Tool], name: str, arguments: Mapping[str, Any]) -> Json:
    """Run one of these tools, by name, with a model's arguments; return what it answers as plain JSON.

    Nothing that a model can say raises: an unknown tool, arguments that do not match the schema, and anything
    that Klaw refuses give ``{"error": what is wrong}``, with ``hint`` where something helps.
    """
    tool = known.get(str(name))
    if tool is None:
        return {"error": f"there is no tool {_shown(name)}", "hint": f"known: {', '.join(known)}"}
    problems = list(_problems(arguments, tool.input_schema))
    if problems:
        return {"error": f"{name}: {'; '.join(problems)}"}
    try:
        with isolated(f"the tool {name!r}"):
            return tool.run(dict(arguments))
    except KlawError as error:
        answer: Json = to_json(as_klaw_error(error))
        return answer


def _search_tool(memory: Memory) -> Tool:
    def search(arguments: Json) -> Json:
        filters = Filters(
            source=arguments.get("source"),
            since=_moment(arguments, "since"),
            until=_moment(arguments, "until", whole_day=True),
        )
        found = memory.search(arguments["query"], limit=int(arguments.get("topK", 5)), filters=filters)
        answer: Json = {"results": [result_for_model(result) for result in found]}
        return answer | ({"notices": list(found.notices)} if found.notices else {})

    source = "Only this source: MEMORY.md, memory/2026-02-24.md, conversation, manual."
    properties = {
        "query": string("What to find, in plain words.", _MAX_QUERY_CHARACTERS),
        "topK": integer("How many chunks to return; 5 by default.", 1, _MOST_RESULTS),
        "source": string(source, _MAX_LABEL_CHARACTERS),
        "since": string("Only from this day on: 2026-02-24.", 40),
        "until": string("Only up to this day, included: 2026-02-24.", 40),
    }
    description = (
        "Search long-term memory: notes, past conversations, saved facts. Use it before saying you do not know."
    )
    return Tool("memory_search", description, properties, search, ("query",), read_only=True)


def _moment(arguments: Json, name: str, *, whole_day: bool = False) -> datetime | None:
    """Return the moment of an argument: a time with its zone, or a day of UTC (its end, if ``whole_day``)."""
    text = arguments.get(name)
    if text is None:
        return None
    try:
        day = date.fromisoformat(text) + timedelta(days=whole_day)
        return datetime.combine(day, time(), UTC)
    except (ValueError, OverflowError):
        pass
    try:
        return parse_ts(text)
    except KlawError as error:
        raise QueryError(f"{name} is no date: {_shown(text)}", hint="write 2026-02-24") from error


def _problems(arguments: object, schema: Json) -> Sequence[str]:
    """Return what keeps arguments from matching a tool's schema; all of it, so that a model can fix it at once."""
    if not isinstance(arguments, Mapping):
        return [f"arguments must be an object, not {_shown(arguments)}"]
    from jsonschema import Draft202012Validator  # takes a third of a search to import; only calls of tools need it

    given = {str(name): value for name, value in arguments.items()}
    found = sorted(
        Draft202012Validator(schema).iter_errors(given), key=lambda error: list(map(str, error.absolute_path))
    )
    return list(dict.fromkeys(line for error in found for line in _described(error, schema, given)))


_TYPES = {"integer": "a whole number", "string": "a string", "number": "a number", "boolean": "true or false"}


def _described(error: Any, schema: Json, given: Mapping[str, Any]) -> Sequence[str]:
    """Return a violation in lines that a model can act on, with what it said in short."""
    name = ".".join(map(str, error.absolute_path))
    value, rule = error.instance, error.validator_value
    if error.validator == "required":
        return [f"{missing} is missing" for missing in rule if missing not in given]
    if error.validator == "additionalProperties" and not name:
        unknown = ", ".join(_shown(key) for key in given if key not in schema["properties"])
        return [f"unknown argument {unknown}, known are {', '.join(schema['properties']) or 'none'}"]
    bounds = schema["properties"].get(name, {})
    problems = {
        "type": f"must be {_TYPES.get(str(rule), f'of type {rule}')}, not {_shown(value)}",
        "enum": f"must be one of {', '.join(map(str, bounds.get('enum', ())))}, not {_shown(value)}",
        "minimum": f"must be {bounds.get('minimum')} to {bounds.get('maximum')}, not {_shown(value)}",
        "maximum": f"must be {bounds.get('minimum')} to {bounds.get('maximum')}, not {_shown(value)}",
        "maxLength": f"has {len(str(value)):,} characters, at most {bounds.get('maxLength', 0):,} are allowed",
        "minLength": "is empty",
        "pattern": "is empty",
    }
    return [f"{name} {problems.get(error.validator, error.message[:200])}"]


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
