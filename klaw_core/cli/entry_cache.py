"""A cache of the installed plugins, so that a search need not read the metadata of every installed package.

Reading it and importing every plugin took a third of ``klaw search --mode fts``. The file ``plugins-*.json`` in Klaw's
cache directory lists the components of each plugin. Only plugins with configured components are imported, and one
with an extension, a converter or a reranker as soon as this is built. The file is valid while all directories on
Python's path, and the module of each plugin, have the same modification times, and only if no other user can write to
it, because it determines which code is loaded.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

from attrs import astuple, frozen

from klaw_core.errors import KlawError
from klaw_core.kinds import CONVERTER, EXTENSION, RERANKER
from klaw_core.plugins.discover import discover, is_disabled, load_plugins
from klaw_core.plugins.registry import ListedComponent, Listing, Plugin, Registry

_FORMAT = 7
# These components are used by their names in the cache; their plugins are loaded when one of them is built.
_LISTED = frozenset({EXTENSION.name, CONVERTER.name, RERANKER.name})
# A plugin has a few hundred bytes. A larger file is invalid.
_MAX_BYTES = 1_000_000


@frozen(eq=False, repr=False)
class CachedEntryPoint:
    """An entry point and its components."""

    name: str
    value: str
    distribution: str
    version: str
    components: tuple[ListedComponent, ...] = ()

    @property
    def offers(self) -> frozenset[tuple[str, str]]:
        """The kind and name of each component."""
        return frozenset((component.kind, component.name) for component in self.components)

    def load(self) -> Any:
        """Import the object that the entry point names."""
        module, _, attribute = self.value.partition(":")
        found: Any = import_module(module)
        for name in filter(None, attribute.split(".")):
            found = getattr(found, name)
        return found


def installed(cache_dir: Path, needed: Collection[tuple[str, str]], *, disabled: Collection[str] = ()) -> Registry:
    """Return a registry in which the plugins with the needed components, (kind, name), are loaded.

    Its other methods load what they need: extensions, converters and rerankers together, ``whole`` all plugins. Without
    a valid cache, every plugin is discovered and the cache is written.
    """
    discover_all = partial(discover, disabled=disabled)
    path = cache_dir / f"plugins-{crc32(_environment_id().encode()):08x}.json"
    cached = _read_cache(path, disabled)
    wanted = frozenset(needed)
    if cached and wanted <= {offer for plugin in cached for offer in plugin.offers}:
        listed = [
            component
            for plugin in cached
            if not is_disabled(plugin.name, plugin.distribution, disabled)
            for component in plugin.components
            if component.kind in _LISTED
        ]
        load_listed = partial(_load_of_kinds, cached, disabled)
        chosen = {plugin: {kind for kind, _ in plugin.offers & wanted} for plugin in cached if plugin.offers & wanted}
        return _load(chosen, disabled, whole=discover_all, listing=Listing(tuple(listed), load_listed))
    registry = discover_all()
    _write_cache(path, registry)
    return registry


def _load_of_kinds(cached: Iterable[CachedEntryPoint], disabled: Collection[str], name: str | None) -> Registry:
    """Load the plugins with listed components, or with one of a name, and only listed components of them."""
    kinds = {
        plugin: {kind for kind, offered in plugin.offers if name in {None, offered}} & _LISTED for plugin in cached
    }
    return _load({plugin: found for plugin, found in kinds.items() if found}, disabled)


def _load(kinds: Mapping[CachedEntryPoint, Collection[str]], disabled: Collection[str], **of_registry: Any) -> Registry:
    points = ((plugin, plugin.distribution, plugin.version) for plugin in kinds)
    return load_plugins(points, disabled=disabled, kinds=kinds, **of_registry)


def _environment_id() -> str:
    """Return an identifier of the environment and the program: ``python -m klaw_core`` has another ``sys.path``."""
    return f"{sys.prefix}\0{Path(sys.argv[0]).name}"


def _read_cache(path: Path, disabled: Collection[str]) -> Sequence[CachedEntryPoint]:
    """Return the cached plugins in order of distribution and name.

    Return nothing if the cache is outdated, another user may have written it, or it does not know the components of a
    plugin that was disabled when the cache was written and is not now.
    """
    from klaw_core.files.atomic import open_regular
    from klaw_core.files.platform import NO_FOLLOW, OTHERS_WRITE

    try:
        with open_regular(path, NO_FOLLOW) as file:
            status = os.fstat(file.fileno())
            private = status.st_uid == getattr(os, "geteuid", int)() and not status.st_mode & OTHERS_WRITE
            content = json.loads(file.read(_MAX_BYTES)) if private else {}
        if content.get("stamp") != _stamp(content["modules"]):
            return ()
        unknown = [
            (name, distribution) for name, _, distribution, _, components in content["plugins"] if components is None
        ]
        if not all(is_disabled(name, distribution, disabled) for name, distribution in unknown):
            return ()
        return [
            CachedEntryPoint(
                name,
                value,
                distribution,
                version,
                tuple(
                    ListedComponent(kind, of, rank, tuple(listens), tuple(separate), questions)
                    for kind, of, rank, listens, separate, questions in components or ()
                ),
            )
            for name, value, distribution, version, components in content["plugins"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def _write_cache(path: Path, registry: Registry) -> None:
    """Write the cache. If that fails, the next process discovers the plugins again."""
    from klaw_core.files.atomic import write_atomically

    modules = sorted(filter(None, (_file(plugin.value) for plugin in registry.plugins)))
    plugins = [
        (plugin.name, plugin.value, plugin.distribution, plugin.version, _components(registry, plugin))
        for plugin in registry.plugins
    ]
    content = {"stamp": _stamp(modules), "modules": modules, "plugins": plugins}
    with suppress(KlawError, OSError, ValueError):
        write_atomically(path, json.dumps(content))


def _components(registry: Registry, plugin: Plugin) -> list[tuple[Any, ...]] | None:
    """Return the fields of the ListedComponent of each component of a plugin; None if it is disabled."""
    if plugin.disabled:
        return None
    return [
        astuple(ListedComponent.of(kind, offer.component))
        for kind, name, _ in plugin.components
        for offer in registry.offers.get((kind, name), ())
        if offer.distribution == plugin.distribution
    ]


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
