"""JSON Schemas of tool arguments."""

from typing import Any, TypeAlias

#: A JSON object, as it is sent to a model or comes from one.
Json: TypeAlias = dict[str, Any]


def string(description: str, most: int, *, least: int = 1) -> Json:
    """Return the schema of a string of ``least`` to ``most`` characters, not all of them white space."""
    schema: Json = {"type": "string", "description": description, "minLength": least, "maxLength": most}
    return {**schema, "pattern": r"\S"} if least else schema


def strings(description: str) -> Json:
    """Return the schema of an array of strings."""
    return {"type": "array", "description": description, "items": {"type": "string"}}
