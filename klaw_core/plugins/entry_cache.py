"""A cache of the installed plugins, so that a search need not read the metadata of every installed package.

Reading it and importing every plugin took a third of ``klaw search --mode fts``. The file ``plugins-*.json`` in Klaw's
cache directory lists the components of each plugin; only plugins with configured components are imported. The file is
valid while all directories on Python's path, and the module of each plugin, have the same modification times, and only
if no other user can write to it, because it determines which code is loaded.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

from attrs import frozen

from klaw_core.errors import KlawError
from klaw_core.kinds import CONVERTER, EXTENSION
from klaw_core.plugins.discover import discover, load_plugins
from klaw_core.plugins.registry import Registry

_FORMAT = 3
_ALWAYS = {EXTENSION.name, CONVERTER.name}
# A plugin has a few hundred bytes. A larger file is invalid.
_MAX_BYTES = 1_000_000


@frozen(eq=False, repr=False)
class CachedEntryPoint:
    """An entry point and its components, (kind, name); None if it was not loaded when the cache was written."""

    name: str
    value: str
    distribution: str
    version: str
    offers: frozenset[tuple[str, str]] | None = None

    def load(self) -> Any:
        """Import the object that the entry point names."""
        module, _, attribute = self.value.partition(":")
        found: Any = import_module(module)
        for name in filter(None, attribute.split(".")):
            found = getattr(found, name)
        return found


def installed(cache_dir: Path, needed: Collection[tuple[str, str]], *, disabled: Collection[str] = ()) -> Registry:
    """Return the plugins with the needed components, (kind, name), and those with extensions and converters.

    The registry's ``whole`` returns all plugins. Without a valid cache, every plugin is discovered and the cache is
    written.
    """
    discover_all = partial(discover, disabled=disabled)
    path = cache_dir / f"plugins-{crc32(_environment_id().encode()):08x}.json"
    cached = _read_cache(path)
    known = {offer for plugin in cached for offer in plugin.offers or ()}
    # Extensions may listen to any event, and converters read any file. Their modules are small, and they are built only
    # when they are needed.
    wanted = {*needed, *(offer for offer in known if offer[0] in _ALWAYS)}
    if wanted <= known:
        chosen = [plugin for plugin in cached if plugin.offers is None or plugin.offers & wanted]
        points = ((plugin, plugin.distribution, plugin.version) for plugin in chosen)
        kinds = {plugin: {kind for kind, _ in plugin.offers & wanted} for plugin in chosen if plugin.offers is not None}
        return load_plugins(points, disabled=disabled, kinds=kinds, whole=discover_all)
    registry = discover_all()
    _write_cache(path, registry)
    return registry


def _environment_id() -> str:
    """Return an identifier of the environment and the program: ``python -m klaw_core`` has another ``sys.path``."""
    return f"{sys.prefix}\0{Path(sys.argv[0]).name}"


def _read_cache(path: Path) -> Sequence[CachedEntryPoint]:
    """Return the cached plugins; nothing if the cache is outdated or another user may have written it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor
            status = os.fstat(descriptor)
            private = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
            content = json.loads(file.read(_MAX_BYTES)) if private else {}
        if content.get("stamp") != _stamp(content["modules"]):
            return ()
        return [
            CachedEntryPoint(
                name, value, distribution, version, None if offers is None else frozenset(map(tuple, offers))
            )
            for name, value, distribution, version, offers in content["plugins"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def _write_cache(path: Path, registry: Registry) -> None:
    """Write the cache. If that fails, the next process discovers the plugins again."""
    from klaw_core.files.atomic import write_atomically

    modules = sorted(filter(None, (_file(plugin.value) for plugin in registry.plugins)))
    plugins = [
        (
            plugin.name,
            plugin.value,
            plugin.distribution,
            plugin.version,
            None if plugin.disabled else [(kind, name) for kind, name, _ in plugin.components],
        )
        for plugin in registry.plugins
    ]
    content = {"stamp": _stamp(modules), "modules": modules, "plugins": plugins}
    with suppress(KlawError, OSError, ValueError):
        write_atomically(path, json.dumps(content))


def _file(value: str) -> str | None:
    """Return the file of the module that an entry point's value names, if it was imported."""
    return getattr(sys.modules.get(value.partition(":")[0]), "__file__", None)


def _stamp(modules: Iterable[str]) -> list[Any]:
    """Return the modification times of the paths, which change when something is installed, removed or edited."""
    return [_FORMAT, sys.version, *([path, _changed(path)] for path in (*sys.path, *modules))]


def _changed(path: str) -> int | None:
    try:
        return os.stat(path or os.curdir).st_mtime_ns  # noqa: PTH116  # an entry of sys.path, not always a path
    except OSError:
        return None
