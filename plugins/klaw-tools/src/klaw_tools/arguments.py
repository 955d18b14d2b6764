"""Arguments from a model for a tool: adapt them to the schema if their meaning is clear, then check them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isnan
from typing import Any

from klaw_core import Tool
from klaw_core.values.tools import Json
from klaw_redaction import Redactor

_SHOWN_CHARACTERS = 60
_MAX_NUMBER_CHARACTERS = 20
_NOT_A_WORD = re.compile(r"[^0-9A-Za-z]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake_case(name: str) -> str:
    """Return a name in the style of tools: ``memory.search`` and ``memorySearch`` become ``memory_search``."""
    return _NOT_A_WORD.sub("_", _HUMP.sub("_", name)).strip("_").lower()


def adapted(arguments: object, tool: Tool) -> Any:
    """Convert arguments to the names and types of the tool's schema if their meaning is clear.

    Models use the argument names of other tools (``aliases``, ``camelCase``), write numbers as strings, put a single
    number into a list or pass a value instead of one, pass null for an argument that they omit, and send an array or
    the whole object as a JSON string. Unclear arguments, such as a list of texts, are left for the check to report.
    """
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    if not isinstance(arguments, Mapping):
        return arguments
    given = {str(name): value for name, value in arguments.items()}
    found = {name: value for name, value in given.items() if name in tool.properties}
    for name, value in given.items():
        if name in tool.properties:
            continue
        own = _own_name(name, tool)
        found[name if own is None or own in found else own] = value
    return {
        name: _as_type(value, tool.properties.get(name, {}).get("type"))
        for name, value in found.items()
        if value is not None or name in tool.required or name not in tool.properties
    }


def _own_name(name: str, tool: Tool) -> str | None:
    """Return the tool's own name for an argument that a model has named differently; None if there is none."""
    snake = snake_case(name)
    aliased = tool.aliases.get(name) or tool.aliases.get(snake)
    return aliased or (snake if snake in tool.properties else None)


def _as_type(value: Any, wanted: object) -> Any:
    """Convert a value to the type of a schema; return it unchanged if that would be a guess."""
    if isinstance(value, list) and len(value) == 1 and wanted in _PARSERS:
        value = value[0]
    if isinstance(value, str) and wanted == "array":
        return _several(value)
    if isinstance(value, float) and wanted == "integer" and value.is_integer():
        return int(value)
    parse = _PARSERS.get(str(wanted))
    if isinstance(value, str) and parse is not None and len(value) <= _MAX_NUMBER_CHARACTERS:
        with suppress(ValueError, OverflowError, KeyError):
            return parse(value.strip().lower())
    return value


def _several(text: str) -> list[Any]:
    """Return the array that a text is in JSON, or an array of this text."""
    if text.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return list(json.loads(text))
    return [text]


def _whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


_TRUTH = {"true": True, "false": False}
_PARSERS: Mapping[str, Callable[[str], Any]] = {"integer": _whole, "number": float, "boolean": _TRUTH.__getitem__}


def problems_of(arguments: object, schema: Json) -> Sequence[str]:
    """Return all violations of a tool's schema, so that a model can fix them at once."""
    if not isinstance(arguments, Mapping):
        return [f"arguments must be an object, not {shown(arguments)}"]
    if _match_plain_schema(arguments, schema):
        return []
    from jsonschema import (
        Draft202012Validator,
    )  # importing it takes a third of a search's time, and only tool calls need it

    found = sorted(
        Draft202012Validator(schema).iter_errors(arguments), key=lambda error: list(map(str, error.absolute_path))
    )
    lines = [line for error in found for line in _described(error, schema, arguments)]
    # No limit of a number excludes NaN, because every comparison with it is false.
    numbers = {name for name, rules in schema["properties"].items() if rules.get("type") == "number"}
    nan = [name for name, value in arguments.items() if isinstance(value, float) and isnan(value) and name in numbers]
    return list(dict.fromkeys([*lines, *(f"{name} must be a number, not NaN" for name in nan)]))


# Keywords that restrict nothing, and those of strings and numbers that the check below knows.
_NOTES = frozenset({"type", "description", "default", "title"})
_OF_STRINGS = _NOTES | {"minLength", "maxLength", "enum"}
_OF_NUMBERS = _NOTES | {"minimum", "maximum"}


def _match_plain_schema(arguments: Mapping[str, Any], schema: Json) -> bool:
    """Return whether arguments satisfy a schema of plain strings, numbers and booleans; False if it is not certain.

    Most calls are of this kind. jsonschema needs many times as long, a tenth of a search.
    """
    properties = schema["properties"]
    return all(name in arguments for name in schema["required"]) and all(
        name in properties and _matches_plain_rules(value, properties[name]) for name, value in arguments.items()
    )


def _matches_plain_rules(value: Any, rules: Json) -> bool:
    kind, wanted = type(value), rules.get("type")
    if kind is str and wanted == "string" and rules.keys() <= _OF_STRINGS:
        fits = rules.get("minLength", 0) <= len(value) <= rules.get("maxLength", len(value))
        return fits and ("enum" not in rules or value in rules["enum"])
    if (kind is int or (kind is float and wanted == "number")) and wanted in ("integer", "number"):
        return rules.keys() <= _OF_NUMBERS and rules.get("minimum", value) <= value <= rules.get("maximum", value)
    return kind is bool and wanted == "boolean" and rules.keys() <= _NOTES


_TYPES = {"integer": "a whole number", "string": "a string", "number": "a number", "boolean": "true or false"}


def _described(error: Any, schema: Json, given: Mapping[str, Any]) -> Sequence[str]:
    """Describe a violation in lines that a model can act on, with a short form of the value."""
    name = ".".join(map(str, error.absolute_path))
    value, rule = error.instance, error.validator_value
    if error.validator == "required":
        return [f"{missing} is missing" for missing in rule if missing not in given]
    if error.validator == "additionalProperties" and not name:
        unknown = ", ".join(shown(key) for key in given if key not in schema["properties"])
        return [f"unknown argument {unknown}; known: {', '.join(schema['properties']) or 'none'}"]
    bounds = schema["properties"].get(name, {})
    problems = {
        "type": f"must be {_TYPES.get(str(rule), f'of type {rule}')}, not {shown(value)}",
        "enum": f"must be one of {', '.join(map(str, bounds.get('enum', ())))}, not {shown(value)}",
        "minimum": f"must be {bounds.get('minimum')} to {bounds.get('maximum')}, not {shown(value)}",
        "maximum": f"must be {bounds.get('minimum')} to {bounds.get('maximum')}, not {shown(value)}",
        "maxLength": f"has {len(str(value)):,} characters; the limit is {bounds.get('maxLength', 0):,}",
        "minLength": "is empty",
        "pattern": "is empty",
    }
    return [f"{name} {problems.get(error.validator, error.message[:200])}"]


def shown(value: object) -> str:
    """Return a value in ASCII and shortened, for a message."""
    strike = Redactor().text  # before it is cut, because a part of a secret is not recognised
    text = ascii(strike(value)) if isinstance(value, str) else strike(ascii(value))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
