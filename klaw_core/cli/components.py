"""Try to build each configured component separately, so that ``klaw init`` can report all that do not work."""

from __future__ import annotations

import os
from typing import Any

import attrs

from klaw_core.assembly import build, join, retrieval_of
from klaw_core.config.options import build_options
from klaw_core.config.tables import AUTO, DEFAULTS
from klaw_core.errors import ConfigError, KlawError
from klaw_core.hookspecs import ComponentContext
from klaw_core.kinds import EMBEDDER, RERANKER
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Config, Selection


@attrs.frozen
class ComponentState:
    """The state of one configured component. ``problem`` and ``remedy`` are empty if it works.

    ``limitation`` describes what a working component cannot do here.
    """

    kind: str
    type: str
    distribution: str = ""
    problem: str = ""
    remedy: str = ""
    limitation: str = ""


def examine(config: Config, registry: Registry) -> list[ComponentState]:
    """Build every component and let the retrievers join the store. No model is loaded and no server is contacted."""
    parts: list[ComponentState] = []
    store: Any = None
    config = attrs.evolve(config, retrieval=tuple(retrieval_of(config, registry)))
    try:
        installed = registry.listed_names(RERANKER)
        defaults = (each for each in config.reranking if each.is_default and each.type in installed)
        for selection in (*config.selections(), *defaults):
            part, built = _try(config, registry, selection)
            if selection is config.store:
                store = built
            elif built is not None and selection.kind == "retriever" and store is not None:
                part = _join(config, selection, part, store, built)
            elif built is not None and selection is config.embedding and selection.type == AUTO:
                part = _choose(config, registry, selection)
            parts.append(part)
    finally:
        if store is not None:
            store.close()
    return parts


def _try(config: Config, registry: Registry, selection: Selection) -> tuple[ComponentState, Any]:
    """Build a component; return its state, and the component or None if it cannot be built."""
    part = ComponentState(selection.kind, selection.type)
    try:
        component = registry.component(selection.kind, selection.type)
        part = attrs.evolve(part, distribution=registry.offers[selection.kind, selection.type][0].distribution)
        problems: list[str] = [selection.problem] if selection.problem else []
        options = None if problems else build_options(component, selection, problems)
        if problems:
            raise ConfigError(problems, hint="`klaw config path` prints the path of your file")
        return part, build(
            component, options, selection, ComponentContext(config.data_dir, config.cache_dir, config.offline)
        )
    except KlawError as error:
        return _broken(part, error), None


def _choose(config: Config, registry: Registry, selection: Selection) -> ComponentState:
    """Return the state of the embedder that ``auto`` selects: the first that can be built, or else the first."""
    from klaw_core.embedding.fallback import auto_types

    types = auto_types(registry.components(EMBEDDER), os.environ) or [DEFAULTS["memory"]["embedding"]["type"]]
    tried = (_try(config, registry, attrs.evolve(selection, type=name))[0] for name in types)
    first = next(tried)
    found = next((part for part in (first, *tried) if not part.problem), first)
    return attrs.evolve(found, type=AUTO)


def _join(config: Config, selection: Selection, part: ComponentState, store: Any, retriever: Any) -> ComponentState:
    """Let a retriever join the store; return its state."""
    try:
        join(store, retriever, selection, config)
    except KlawError as error:
        return _broken(part, error)
    return attrs.evolve(part, limitation=str(retriever.limitation))


def _broken(part: ComponentState, error: KlawError) -> ComponentState:
    return attrs.evolve(part, problem=error.message, remedy=error.hint)
