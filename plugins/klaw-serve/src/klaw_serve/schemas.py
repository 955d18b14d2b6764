"""JSON Schemas of arguments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from klaw_core import QueryError, quoted

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


def moment(given: Json, name: str, *, end_of_day: bool = False) -> datetime | None:
    """Return the time in an argument: ISO 8601, or a UTC day (its start, or ``end_of_day``). Raise QueryError."""
    text = given.get(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.strip().upper())
        day = end_of_day and "T" not in text.upper() and ":" not in text
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC) + timedelta(days=day)
    except (ValueError, OverflowError) as error:
        raise QueryError(
            f"{name} is not an ISO 8601 date: {quoted(text)}", hint="write 2026-02-24 or 2026-02-24T10:30Z"
        ) from error
