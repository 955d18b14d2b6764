"""Read the metadata of the installed packages once: thousands of tests open a memory, and each would read it again.

What a test installs itself lies in a directory that came onto the path later; then everything is read again.

Of the names in a plugin's module only functions are looked at: pluggy takes each apart, which is half of a discovery.
"""

from __future__ import annotations

import importlib.metadata
import sys
from functools import cache, cached_property
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pluggy

_read = importlib.metadata.entry_points
_parse = pluggy.PluginManager.parse_hookimpl_opts
_HOOKABLE = (FunctionType, MethodType, staticmethod, classmethod)
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


def _has_distributions(place: str) -> bool:
    return any(Path(place).glob("*.dist-info"))


def entry_points(**options: Any) -> EntryPoints:
    """Return the entry points, as the function does in whose place this one is."""
    if any(map(_has_distributions, {*sys.path} - _AT_FIRST)):
        return _read(**options)
    if not options:  # of Python 3.11 it is a table by groups, which no plugin of Klaw asks for
        return _read()
    return _installed(tuple(sys.path), tuple(options.items()))


importlib.metadata.entry_points = entry_points  # type: ignore[assignment]  # returns no dictionary, even in 3.11


def parse_hookimpl_opts(manager: pluggy.PluginManager, plugin: object, name: str) -> Any:
    """Return the options of a hook, or None, as the method does in whose place this one is."""
    if isinstance(plugin, ModuleType) and not isinstance(vars(plugin).get(name), _HOOKABLE):
        return None
    return _parse(manager, plugin, name)


pluggy.PluginManager.parse_hookimpl_opts = parse_hookimpl_opts  # type: ignore[method-assign]  # this is the point
