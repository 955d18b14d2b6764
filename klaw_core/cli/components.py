"""Whether the configured components can be built, each tried by itself: ``klaw init`` names every one that cannot."""

from __future__ import annotations

from typing import Any

import attrs

from klaw_core.cli.effective import selections
from klaw_core.config import Config, Selection, build_options
from klaw_core.errors import ConfigError, PluginError, as_klaw_error
from klaw_core.hookspecs import Place
from klaw_core.interfaces import Index
from klaw_core.plugins import Registry


@attrs.frozen
class Part:
    """One component the configuration asks for. ``problem`` and ``remedy`` are empty if it works."""

    kind: str
    type: str
    distribution: str = ""
    problem: str = ""
    remedy: str = ""


def examine(config: Config, registry: Registry) -> list[Part]:
    """Build every component and let the retrievers join the store. No model is loaded and no server asked."""
    parts: list[Part] = []
    store: Any = None
    try:
        for selection in selections(config):
            part, built = _try(config, registry, selection)
            if selection is config.store:
                store = built
            elif store is not None and built is not None and selection.kind == "retriever":
                part = _join(config, part, store, built)
            parts.append(part)
    finally:
        if store is not None:
            store.close()
    return parts


def examine_embedder(config: Config, registry: Registry) -> Part:
    """Build the embedder alone."""
    return _try(config, registry, config.embedding)[0]


def _try(config: Config, registry: Registry, selection: Selection) -> tuple[Part, Any]:
    """Return what became of a component, and the component itself, None if it cannot be built."""
    part = Part(selection.kind, selection.type)
    try:
        component = registry.component(selection.kind, selection.type)
        part = attrs.evolve(part, distribution=registry.offers[selection.kind, selection.type][0].distribution)
        problems: list[str] = []
        options = build_options(component, selection, problems)
        if problems:
            raise ConfigError(problems, hint="`klaw config path` names the file")  # noqa: TRY301  # one report for all
        return part, component.factory(options, Place(config.data_dir, config.cache_dir, config.offline))
    except Exception as error:  # noqa: BLE001  # the plugin edge: a defect of a plugin is a problem of the component
        return _broken(part, error), None


def _join(config: Config, part: Part, store: Any, retriever: Any) -> Part:
    """Let a retriever join the store as it would at work."""
    if retriever.needs_vectors and config.embedding.type == "none":
        return part
    try:
        if not issubclass(store.offers, retriever.joins):
            raise PluginError("does not work in this store", hint="`klaw plugins` lists the retrievers")  # noqa: TRY301
        if isinstance(retriever, Index):
            store.enlist(part.type, retriever)
    except Exception as error:  # noqa: BLE001  # the plugin edge, as above
        return _broken(part, error)
    return part


def _broken(part: Part, error: Exception) -> Part:
    known = as_klaw_error(error)
    return attrs.evolve(part, problem=known.message, remedy=known.hint)
