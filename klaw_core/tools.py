"""The agent's tools: what a language model is told about them, and what happens when it calls one.

A tool is described as ``name``, ``description`` and ``input_schema`` (JSON Schema), which is what Anthropic's API takes
and what OpenAI's takes under other names. Arguments come from a model, so they are checked against that very schema,
and whatever is wrong is returned to the model as data: ``{"error": …, "hint": …}``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import frozen

from klaw_core.core_memory.facts import MAX_KEY_CHARACTERS, MAX_VALUE_CHARACTERS, SECTIONS
from klaw_core.errors import KlawError, QueryError
from klaw_core.files.timestamps import format_ts, parse_ts
from klaw_core.values.search import Filters, SearchResult

if TYPE_CHECKING:
    from klaw_core.memory import Memory

#: A JSON object, as it is sent to a model or comes from one.
Json: TypeAlias = dict[str, Any]

_MOST_RESULTS = 50
_MOST_QUERY_CHARACTERS = 4_000
_MOST_CONTENT_CHARACTERS = 100_000
_MOST_LABEL_CHARACTERS = 200
_SHOWN_CHARACTERS = 60


@frozen
class _Tool:
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    run: Callable[[Memory, Json], Json]

    @property
    def schema(self) -> Json:
        return {
            "type": "object",
            "properties": deepcopy(dict(self.properties)),
            "required": list(self.required),
            "additionalProperties": False,
        }


def tools(memory: Memory) -> list[Json]:
    """Return every tool of a memory as ``name``, ``description``, ``input_schema``: plain JSON, yours to change."""
    del memory  # every memory has the same so far
    return [
        {"name": name, "description": tool.description, "input_schema": tool.schema} for name, tool in _TOOLS.items()
    ]


def call(memory: Memory, name: str, arguments: Mapping[str, Any]) -> Json:
    """Run a tool with a model's arguments; return what it answers as plain JSON.

    Nothing that a model can say raises: an unknown tool, arguments that do not match the schema, and anything
    that Klaw refuses give ``{"error": what is wrong}``, with ``hint`` where something mends it.
    """
    tool = _TOOLS.get(str(name))
    if tool is None:
        return {"error": f"there is no tool {_shown(name)}", "hint": f"known: {', '.join(_TOOLS)}"}
    problems = list(_problems(arguments, tool.schema))
    if problems:
        return {"error": f"{name}: {'; '.join(problems)}"}
    try:
        return tool.run(memory, dict(arguments))
    except KlawError as error:
        return {"error": error.message, **({"hint": error.hint} if error.hint else {})}


def _search(memory: Memory, arguments: Json) -> Json:
    filters = Filters(
        source=arguments.get("source"),
        since=_moment(arguments, "since"),
        until=_moment(arguments, "until", whole_day=True),
    )
    found = memory.search(arguments["query"], limit=int(arguments.get("topK", 5)), filters=filters)
    answer: Json = {"results": [_result(result) for result in found]}
    return answer | ({"notices": list(found.notices)} if found.notices else {})


def _result(result: SearchResult) -> Json:
    return {
        "content": result.content,
        **({"context": result.context} if result.context else {}),
        "source": result.source,
        "created_at": format_ts(result.created_at),
        "path": f"{result.path}:{result.start_line}-{result.end_line}",
        "heading": " > ".join(result.heading),
        "score": round(result.score, 6),
    }


def _save(memory: Memory, arguments: Json) -> Json:
    saved = memory.save(arguments["content"], source=arguments.get("source", "manual"))
    return {"saved": saved.path}


def _core_get(memory: Memory, _arguments: Json) -> Json:
    facts = memory.core.get()
    return {"user": dict(facts.user), "agent": dict(facts.agent)}


def _core_update(memory: Memory, arguments: Json) -> Json:
    memory.core.update(arguments["section"], arguments["key"], arguments["value"])
    return {"updated": f"{arguments['section']}.{arguments['key']}"}


def _core_delete(memory: Memory, arguments: Json) -> Json:
    memory.core.delete(arguments["section"], arguments["key"])
    return {"deleted": f"{arguments['section']}.{arguments['key']}"}


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


def _problems(value: object, schema: Json) -> Sequence[str]:
    """Return what keeps arguments from matching a tool's schema; all of it, so that a model can mend it at once."""
    if not isinstance(value, Mapping):
        return [f"arguments must be an object, not {_shown(value)}"]
    properties: Mapping[str, Json] = schema["properties"]
    problems = [f"{name} is missing" for name in schema["required"] if name not in value]
    unknown = ", ".join(_shown(name) for name in value if name not in properties)
    if unknown:
        problems.append(f"unknown argument {unknown}, known are {', '.join(properties) or 'none'}")
    for name, rules in properties.items():
        problem = _violation(value[name], rules) if name in value else ""
        problems += [f"{name} {problem}"] if problem else []
    return problems


def _violation(value: object, rules: Json) -> str:
    """Return how a value breaks the rules of its property; empty if it does not. Knows the keywords used below."""
    if rules["type"] == "integer":
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole:
            return f"must be a whole number, not {_shown(value)}"
        low, high = rules["minimum"], rules["maximum"]
        return "" if low <= value <= high else f"must be {low} to {high}, not {value}"
    if not isinstance(value, str):
        return f"must be a text, not {_shown(value)}"
    if "enum" in rules and value not in rules["enum"]:
        return f"must be one of {', '.join(rules['enum'])}, not {_shown(value)}"
    if len(value) > rules.get("maxLength", len(value)):
        return f"has {len(value):,} characters, at most {rules['maxLength']:,} are allowed"
    return "is empty" if len(value.strip()) < rules.get("minLength", 0) else ""


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _text(description: str, most: int, *, least: int = 1) -> Json:
    return {"type": "string", "description": description, "minLength": least, "maxLength": most}


_SECTION: Json = {"type": "string", "enum": list(SECTIONS), "description": "About the user, or about yourself."}
_KEY = _text("Such as name, preferences, learned_rules.", MAX_KEY_CHARACTERS)

_TOOLS: Mapping[str, _Tool] = {
    "memory_search": _Tool(
        "Search long-term memory: notes, past conversations, saved facts. Use it before saying you do not know.",
        {
            "query": _text("What to find, in plain words.", _MOST_QUERY_CHARACTERS),
            "topK": {
                "type": "integer",
                "description": "How many chunks to return; 5 by default.",
                "minimum": 1,
                "maximum": _MOST_RESULTS,
            },
            "source": _text(
                "Only this source: MEMORY.md, memory/2026-02-24.md, conversation, manual.", _MOST_LABEL_CHARACTERS
            ),
            "since": _text("Only from this day on: 2026-02-24.", 40),
            "until": _text("Only up to this day, included: 2026-02-24.", 40),
        },
        ("query",),
        _search,
    ),
    "memory_save": _Tool(
        "Save a fact, decision or event for later, in a sentence that can be understood alone. Nothing is ever "
        "overwritten: if something has changed, say so and when.",
        {
            "content": _text("What to remember.", _MOST_CONTENT_CHARACTERS),
            "source": _text("Where it is from: manual (default) or conversation.", _MOST_LABEL_CHARACTERS),
        },
        ("content",),
        _save,
    ),
    "memory_core_get": _Tool(
        "Read core memory: the few facts about the user and yourself that always apply.", {}, (), _core_get
    ),
    "memory_core_update": _Tool(
        "Set one fact of core memory. Do it at once when the user states a preference, corrects you or gives a rule.",
        {
            "section": _SECTION,
            "key": _KEY,
            "value": _text("The whole new value; it replaces the old one.", MAX_VALUE_CHARACTERS, least=0),
        },
        ("section", "key", "value"),
        _core_update,
    ),
    "memory_core_delete": _Tool(
        "Remove one fact of core memory that is no longer true.",
        {"section": _SECTION, "key": _KEY},
        ("section", "key"),
        _core_delete,
    ),
}
