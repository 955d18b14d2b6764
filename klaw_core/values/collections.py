"""Collections: named sets of chunks, each with indexes of its own."""

import re

from klaw_core.errors import QueryError, quoted

#: Notes, memories and conversations.
MEMORY = "memory"
#: The documentation of software.
DOCS = "docs"

#: The collections that exist in every memory, though they may be empty.
STANDARD_COLLECTIONS = (MEMORY, DOCS)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def check_collection_name(name: str) -> str:
    """Return the name. Raise QueryError unless it is a lower-case letter, then up to 39 of ``a-z0-9_``."""
    if not _NAME.fullmatch(name):
        raise QueryError(
            f"invalid collection name {quoted(name)}",
            hint="use a lower-case letter, then up to 39 lower-case letters, digits or underscores",
        )
    return name
