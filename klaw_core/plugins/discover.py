"""Load plugins through their entry points. A broken plugin never stops Klaw."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import redirect_stdout
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import pluggy
from attrs import evolve

from klaw_core import hookspecs
from klaw_core.errors import reason
from klaw_core.hookspecs import API, Component
from klaw_core.kinds import KINDS
from klaw_core.plugins.registry import Listing, Offer, Plugin, Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "klaw"
_ALL_KINDS = frozenset(KINDS)
_HOOKS = {kind.hook for kind in KINDS.values()}


class EntryPointLike(Protocol):
    """An entry point of ``importlib.metadata``, or a cached one."""

    @property
    def name(self) -> str:
        """Return the name of the entry point."""

    @property
    def value(self) -> str:
        """Return the name of the module."""

    def load(self) -> Any:
        """Import the module. Raise what it raises."""


def discover(*, disabled: Collection[str] = (), points: Iterable[EntryPoint] | None = None) -> Registry:
    """Load every installed plugin; return the registry of their components.

    ``disabled`` names entry points or distributions that are not loaded; names are compared as package indexes do.
    ``points`` replaces the installed entry points (tests). An exception of a plugin becomes its ``problem``.
    """
    from importlib.metadata import entry_points  # as slow as half of all other imports of a search

    found = entry_points(group=GROUP) if points is None else points
    return load_plugins(((point, *_distribution(point)) for point in found), disabled=disabled)


def load_plugins(
    points: Iterable[tuple[EntryPointLike, str, str]],
    *,
    disabled: Collection[str] = (),
    kinds: Mapping[Any, Collection[str]] = MappingProxyType({}),
    whole: Callable[[], Registry] | None = None,
    listing: Listing | None = None,
) -> Registry:
    """Load these plugins, given with their distributions' names and versions; return the registry of their components.

    ``disabled`` and errors are as in :func:`discover`. ``kinds`` restricts an entry point to hooks of these kinds;
    ``whole`` returns the complete registry; ``listing`` names components of plugins that are not loaded.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    plugins: list[Plugin] = []
    offers: dict[tuple[str, str], list[Offer]] = {}
    for point, distribution, version in sorted(points, key=lambda found: (found[1], found[0].name)):
        plugin = Plugin(point.name, distribution, version, value=point.value)
        if is_disabled(point.name, distribution, disabled):
            plugins.append(evolve(plugin, disabled=True))
            continue
        try:
            components = _load(manager, point, distribution, kinds.get(point, _ALL_KINDS))
        except KeyboardInterrupt as interrupt:  # otherwise nothing would name the plugin that hangs
            interrupt.add_note(f"while loading {distribution}; set KLAW_DISABLE_PLUGINS={distribution} to skip it")
            raise
        except BaseException as error:  # noqa: BLE001  # a plugin may raise anything at all; panics of Rust are no Exception
            plugins.append(evolve(plugin, problem=reason(error)))
            continue
        for kind, component in components:
            offer = Offer(component, distribution, _incompatibility(component))
            offers.setdefault((kind, component.name), []).append(offer)
        summary = tuple((kind, component.name, component.summary) for kind, component in components)
        misfits = "; ".join(filter(None, (_incompatibility(component) for _, component in components)))
        plugins.append(evolve(plugin, components=summary, problem=misfits))
    return Registry(tuple(plugins), offers, whole, listing)


def is_disabled(name: str, distribution: str, disabled: Collection[str]) -> bool:
    """Return whether ``disabled`` names this entry point or its distribution."""
    return not {_normalized(each) for each in disabled}.isdisjoint({_normalized(name), _normalized(distribution)})


def _load(
    manager: pluggy.PluginManager, point: EntryPointLike, distribution: str, kinds: Collection[str]
) -> list[tuple[str, Component[Any, Any]]]:
    """Import and register one plugin; collect the components that its hooks of these kinds yield."""
    name = f"{distribution}:{point.name}"
    with redirect_stdout(sys.stderr):  # standard output is for data; a plugin may print to standard error
        module = point.load()
    manager.register(module, name)
    _check_hooks(manager, module)
    # Each implementation is called separately, because a pluggy call stops at the first one that raises.
    components = [
        (kind.name, component)
        for kind in KINDS.values()
        if kind.name in kinds
        for implementation in getattr(manager.hook, kind.hook).get_hookimpls()
        if implementation.plugin_name == name
        for component in implementation.function()
    ]
    for _, component in components:
        _check(component)
    return components


def _check_hooks(manager: pluggy.PluginManager, module: object) -> None:
    """Raise TypeError if a module implements an unknown hook, which pluggy would never call."""
    unknown = sorted({caller.name for caller in manager.get_hookcallers(module) or ()} - _HOOKS)
    if not unknown:
        return
    from difflib import get_close_matches

    for name in unknown:
        near = get_close_matches(name, sorted(_HOOKS), n=1)
        known = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(_HOOKS))}"
        raise TypeError(f"unknown hook {name!r}; {known}")


def _check(found: object) -> None:
    """Raise TypeError unless a hook yielded a component with fields of the right types."""
    if not isinstance(found, Component):
        raise TypeError(f"a hook yielded {found!r}, not a Component")
    component: Any = found  # Any, because its annotations are what is checked here
    if not isinstance(component.name, str) or not component.name:
        raise TypeError(f"a component has the name {component.name!r}, not a string")
    for field, kind, noun in (("api", int, "number"), ("rank", int, "number"), ("summary", str, "string")):
        if not isinstance(getattr(component, field), kind):
            raise TypeError(f"{component.name!r}: {field} is not a {noun}")
    try:
        re.compile(component.questions, re.IGNORECASE)  # as it is asked, so that it is compiled once
    except (re.error, TypeError) as error:
        raise TypeError(f"{component.name!r}: questions is not a regular expression: {error}") from error
    if not callable(component.factory):
        raise TypeError(f"{component.name!r}: the factory is not callable")
    if not (isinstance(component.options, type) and attrs.has(component.options)):
        raise TypeError(f"{component.name!r}: options is not an attrs class")


def _incompatibility(component: Component[Any, Any]) -> str:
    if component.api > API:
        from klaw_core.plugins.installing import update_command

        return f"{component.name!r} needs plugin API {component.api}, this klaw has {API}: {update_command()}"
    if component.api < API:
        return f"{component.name!r} was written for plugin API {component.api}; klaw provides {API}: update the plugin"
    return ""


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """Return name and version; either may be missing in a broken installation, and then is not asked for."""
    if point.dist is None:
        return point.value, ""
    known = point.dist.metadata
    name, version = (known[key] if key in known else "" for key in ("Name", "Version"))  # noqa: SIM401  # has no `get`
    return name or point.value, version


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()  # PEP 503
