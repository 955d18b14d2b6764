"""The JSON form of every public value, in one place: ``--json``, tools and servers all use :func:`to_json`.

An attrs value becomes an object with its fields, a datetime an ISO 8601 string in UTC, a path a string, a tuple an
array. The functions below define the exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import cache, singledispatch
from pathlib import Path
from typing import Any

import attrs

from klaw_core.errors import KlawError
from klaw_core.values.runs import Status
from klaw_core.values.search import SearchResult
from klaw_core.values.tools import Json, Tool
from klaw_core.values.vectors import VectorSpace

# Types that are JSON values already. Most values are, so checking them first saves most of the time.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def to_json(value: Any) -> Any:
    """Return the JSON form of a value. Raise TypeError for a type without one."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {str(key): item if type(item) in _PLAIN else to_json(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [item if type(item) in _PLAIN else to_json(item) for item in value]
    return _form(value)


@singledispatch
def _form(value: Any) -> Any:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    if attrs.has(type(value)):
        return _fields(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _fields(value: Any) -> Json:
    kind: Any = type(value)  # mypy does not accept type[Any] as hashable
    return {name: to_json(getattr(value, name)) for name in _public(kind)}


@cache
def _public(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind) if not field.name.startswith("_"))


@_form.register
def _(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


@_form.register
def _(value: date) -> str:
    return value.isoformat()


@_form.register
def _(value: Path) -> str:
    return str(value)


@_form.register
def _(value: KlawError) -> Json:
    return {"error": value.message, **({"hint": value.hint} if value.hint else {})}


@_form.register
def _(value: VectorSpace) -> Json:
    return _fields(value)


# Schema keywords that are not shown to a model, to save tokens. Its arguments are still checked against them.
_UNTOLD = frozenset({"minLength", "maxLength", "pattern"})


@_form.register
def _(value: Tool) -> Json:
    schema = value.input_schema
    told = {
        name: {rule: to_json(item) for rule, item in rules.items() if rule not in _UNTOLD}
        for name, rules in schema["properties"].items()
    }
    return {"name": value.name, "description": value.description, "input_schema": {**schema, "properties": told}}


@_form.register
def _(value: SearchResult) -> Json:
    fields = {**_fields(value), "is_weak": value.is_weak}
    if not value.about:
        del fields["about"]
    return fields


@_form.register
def _(value: Status) -> Json:
    counts = {name: {"documents": documents, "chunks": chunks} for name, (documents, chunks) in value.origins.items()}
    return {**_fields(value), "origins": counts}
