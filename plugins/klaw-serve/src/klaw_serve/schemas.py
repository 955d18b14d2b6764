"""JSON Schemas of arguments."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from klaw_core import QueryError, parse_moment, quoted

Json = dict[str, Any]


def string(description: str, most: int, *, least: int = 1) -> Json:
    """Return the schema of a string of ``least`` to ``most`` characters."""
    return {"type": "string", "description": description, "minLength": least, "maxLength": most}


def integer(description: str, least: int, most: int) -> Json:
    """Return the schema of an integer from ``least`` to ``most``."""
    return {"type": "integer", "description": description, "minimum": least, "maximum": most}


def number(description: str, least: float, most: float) -> Json:
    """Return the schema of a number from ``least`` to ``most``."""
    return {"type": "number", "description": description, "minimum": least, "maximum": most}


def boolean(description: str) -> Json:
    """Return the schema of a boolean."""
    return {"type": "boolean", "description": description}


def one_of(description: str, *values: str) -> Json:
    """Return the schema of an enumeration of strings."""
    return {"type": "string", "description": description, "enum": list(values)}


def several(description: str, item: Json, most: int = 20) -> Json:
    """Return the schema of an array."""
    return {"type": "array", "description": description, "items": item, "maxItems": most}


def moment(given: Json, name: str, *, day: Literal["begin", "last", "first", "end"] = "begin") -> datetime | None:
    """Return the time in an argument, read as in a command (:func:`klaw_core.parse_moment`). Raise QueryError."""
    text = given.get(name)
    if text is None:
        return None
    try:
        return parse_moment(text, datetime.now(UTC), day=day)
    except ValueError as error:
        raise QueryError(f"{name} is not a date: {quoted(text)}", hint=str(error)) from error
