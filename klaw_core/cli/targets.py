"""Targets: a path with lines in one string, as results show it and as people type it."""

from __future__ import annotations

import re

from klaw_core.errors import QueryError

# path, path:40 (from line 40 to the end), path:40:20 (line and count) or path:40-60 (as search prints it)
_TARGET = re.compile(
    r"(?P<path>.+?)(?::(?P<first>[0-9]{1,15})(?::(?P<count>[0-9]{1,15})|-(?P<last>[0-9]{1,15}))?)?", re.DOTALL
)


def parse_target(target: str) -> tuple[str, int, int | None]:
    """Return path, first line and number of lines (None: to the end). Raise QueryError for an invalid range."""
    match = _TARGET.fullmatch(target)
    if match is None:
        raise QueryError("the path is empty", hint="give a path such as notes/a.md:40:20")
    first = int(match["first"] or 1)
    if match["last"] is None:
        return match["path"], first, int(match["count"]) if match["count"] else None
    last = int(match["last"])
    if last < first:
        raise QueryError(f"{target!r} ends at line {last}, before its first line {first}")
    return match["path"], first, last - first + 1
