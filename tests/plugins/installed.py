"""Read the metadata of the installed packages once: thousands of tests open a memory, and each would read it again.

What a test installs itself lies below a temporary directory on the path; then everything is read anew.
"""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
from functools import cache, cached_property
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

_read = importlib.metadata.entry_points
_AT_FIRST = frozenset(sys.path)


class _Distribution:
    """A distribution whose metadata are parsed once."""

    def __init__(self, found: Any) -> None:
        self._found = found

    @cached_property
    def metadata(self) -> Any:
        return self._found.metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)


def _known(point: EntryPoint) -> EntryPoint:
    vars(point).update(dist=point.dist and _Distribution(point.dist))
    return point


@cache
def _installed(_path: tuple[str, ...], options: tuple[tuple[str, Any], ...]) -> EntryPoints:
    return EntryPoints(map(_known, _read(**dict(options))))


def entry_points(**options: Any) -> EntryPoints:
    """Return the entry points, as the function does in whose place this one is."""
    if any(place.startswith(tempfile.gettempdir()) for place in {*sys.path} - _AT_FIRST):
        return _read(**options)
    return _installed(tuple(sys.path), tuple(options.items()))


importlib.metadata.entry_points = entry_points  # type: ignore[assignment]  # returns no dictionary, even in 3.11
