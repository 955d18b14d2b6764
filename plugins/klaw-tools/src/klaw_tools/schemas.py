"""JSON Schemas of tool arguments."""

from klaw_core.values.tools import Json


def string(description: str, most: int, *, least: int = 1) -> Json:
    """Return the schema of a string of ``least`` to ``most`` characters, not all of them white space."""
    schema: Json = {"type": "string", "description": description, "maxLength": most}
    return {**schema, "minLength": least, "pattern": r"\S"} if least else schema


def integer(description: str, least: int, most: int) -> Json:
    """Return the schema of an integer from ``least`` to ``most``."""
    return {"type": "integer", "description": description, "minimum": least, "maximum": most}


def number(description: str, least: float, most: float) -> Json:
    """Return the schema of a number from ``least`` to ``most``."""
    return {"type": "number", "description": description, "minimum": least, "maximum": most}


def one_of(description: str, *values: str) -> Json:
    """Return the schema of one of some strings."""
    return {"type": "string", "description": description, "enum": list(values)}


def strings(description: str, count: int) -> Json:
    """Return the schema of a list of at most ``count`` strings."""
    return {"type": "array", "description": description, "items": {"type": "string"}, "maxItems": count}
