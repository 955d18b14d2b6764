"""Load plugins through their entry points, each behind a wall: one that is broken never stops Klaw."""

from collections.abc import Collection, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy
from attrs import evolve

from klaw_core import hookspecs
from klaw_core.hookspecs import API, Component
from klaw_core.plugins.registry import KINDS, Offer, Plugin, Registry

GROUP = "klaw"


def discover(*, disabled: Collection[str] = (), points: Iterable[EntryPoint] | None = None) -> Registry:
    """Load every installed plugin and return what they offer.

    ``disabled`` names entry points or distributions that are not to be loaded; ``points`` replaces the
    installed entry points (tests). Nothing a plugin raises escapes: it becomes the plugin's ``problem``.
    """
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    plugins: list[Plugin] = []
    offers: dict[tuple[str, str], list[Offer]] = {}
    found = entry_points(group=GROUP) if points is None else points
    for point in sorted(found, key=lambda point: (_distribution(point)[0], point.name)):
        distribution, version = _distribution(point)
        plugin = Plugin(point.name, distribution, version)
        if point.name in disabled or distribution in disabled:
            plugins.append(evolve(plugin, disabled=True))
            continue
        try:
            components = _load(manager, point, distribution)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin may raise anything at all
            plugins.append(evolve(plugin, problem=_reason(error)))
            continue
        for kind, component in components:
            offer = Offer(component, distribution, _misfit(component))
            offers.setdefault((kind, component.name), []).append(offer)
        summary = tuple((kind, component.name, component.summary) for kind, component in components)
        misfits = "; ".join(filter(None, (_misfit(component) for _, component in components)))
        plugins.append(evolve(plugin, components=summary, problem=misfits))
    return Registry(tuple(plugins), offers)


def _load(manager: pluggy.PluginManager, point: EntryPoint, distribution: str) -> list[tuple[str, Component[Any, Any]]]:
    """Import one plugin, register it, and collect what its hooks yield."""
    name = f"{distribution}:{point.name}"
    manager.register(point.load(), name)
    # Each implementation is called by itself: pluggy's own call stops at the first one that raises.
    components = [
        (kind, component)
        for hook, kind in KINDS.items()
        for implementation in getattr(manager.hook, hook).get_hookimpls()
        if implementation.plugin_name == name
        for component in implementation.function()
    ]
    for _, component in components:
        if not isinstance(component, Component):
            raise TypeError(f"a hook yielded {component!r}, not a Component")
    return components


def _misfit(component: Component[Any, Any]) -> str:
    if component.api > API:
        return f"{component.name!r} needs plugin API {component.api}, this klaw has {API}: pip install -U klaw"
    if component.api < API:
        return f"{component.name!r} was written for plugin API {component.api}, this klaw has {API}: update the plugin"
    return ""


def _distribution(point: EntryPoint) -> tuple[str, str]:
    dist = point.dist
    return (dist.name, dist.version) if dist is not None else (point.module, "")


def _reason(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
