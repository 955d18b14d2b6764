"""What an earlier process found installed, so that a search need not read the metadata of every installed package.

That reading, and to import every plugin there is, took a third of ``klaw search --mode fts``. In ``plugins-*.json``,
in Klaw's cache directory, stands which plugin offers what; only those that offer what is configured are imported.
The file counts as long as every place that Python imports from, and every plugin's own module, is as old as it was
then, and only if nobody else could have written it: it says what code is loaded.
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
# Some hundred bytes a plugin; what is larger was not written here.
_MOST_BYTES = 1_000_000


@frozen(eq=False, repr=False)
class CachedEntryPoint:
    """An entry point as it was found, and what it offered: (kind, name); None if it was not loaded then."""

    name: str
    value: str
    distribution: str
    version: str
    offers: frozenset[tuple[str, str]] | None = None

    def load(self) -> Any:
        """Import what the entry point names."""
        module, _, attribute = self.value.partition(":")
        found: Any = import_module(module)
        for name in filter(None, attribute.split(".")):
            found = getattr(found, name)
        return found


def installed(cache_dir: Path, needed: Collection[tuple[str, str]], *, disabled: Collection[str] = ()) -> Registry:
    """Return the plugins that offer what is needed, (kind, name), and every extension and converter.

    The registry's ``whole`` has the others as well.

    Where nothing is remembered every plugin is discovered, and remembered if that can be.
    """
    discover_all = partial(discover, disabled=disabled)
    path = cache_dir / f"plugins-{crc32(_who().encode()):08x}.json"
    remembered = _recall(path)
    known = {offer for plugin in remembered for offer in plugin.offers or ()}
    # Extensions may listen to anything that happens, and converters read any file; their modules are light, and they
    # are built when they are needed.
    wanted = {*needed, *(offer for offer in known if offer[0] in _ALWAYS)}
    if wanted <= known:
        chosen = [plugin for plugin in remembered if plugin.offers is None or plugin.offers & wanted]
        points = ((plugin, plugin.distribution, plugin.version) for plugin in chosen)
        kinds = {plugin: {kind for kind, _ in plugin.offers & wanted} for plugin in chosen if plugin.offers is not None}
        return load_plugins(points, disabled=disabled, kinds=kinds, whole=discover_all)
    registry = discover_all()
    _remember(path, registry)
    return registry


def _who() -> str:
    """Return what tells environments apart, and ``klaw`` from ``python -m klaw_core``, which imports from elsewhere."""
    return f"{sys.prefix}\0{Path(sys.argv[0]).name}"


def _recall(path: Path) -> Sequence[CachedEntryPoint]:
    """Return what is remembered; nothing if it is out of date, or may be somebody else's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor
            status = os.fstat(descriptor)
            private = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
            content = json.loads(file.read(_MOST_BYTES)) if private else {}
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


def _remember(path: Path, registry: Registry) -> None:
    """Write down what was found. A place that cannot be written to is no reason to fail: next time is as this one."""
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
    """Return what changes when something is installed, removed or edited: times of change, by path."""
    return [_FORMAT, sys.version, *([path, _changed(path)] for path in (*sys.path, *modules))]


def _changed(path: str) -> int | None:
    try:
        return os.stat(path or os.curdir).st_mtime_ns  # noqa: PTH116  # an entry of sys.path, not always a path
    except OSError:
        return None
