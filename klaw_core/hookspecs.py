"""Every hook, on one page. A hook takes nothing and yields components.

    from klaw_core import Component, hookimpl

    @hookimpl
    def klaw_embedders():
        yield Component("hashing", options=HashingEmbedder, factory=lambda options, place: options, api=1)

A distribution names the module that holds its hooks as an entry point of the group ``klaw``:

    [project.entry-points.klaw]
    hello = "klaw_hello.plugin"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import pluggy
from attrs import frozen

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Chunker, Embedder, Fusion, Reranker
    from klaw_core.interfaces.index import Retriever
    from klaw_core.interfaces.source import Source
    from klaw_core.interfaces.store import Store

#: The generation of hooks and Protocols that this core speaks.
API = 1

hookspec = pluggy.HookspecMarker("klaw")
hookimpl = pluggy.HookimplMarker("klaw")

OptionsT = TypeVar("OptionsT")
T_co = TypeVar("T_co", covariant=True)


@frozen
class ComponentContext:
    """Where a component may keep files: ``data_dir`` holds what cannot be lost, ``cache_dir`` what can."""

    data_dir: Path
    cache_dir: Path
    offline: bool = False


@frozen
class Component(Generic[OptionsT, T_co]):
    """What a plugin offers under a name.

    ``name`` is what follows ``type =`` in the configuration; ``options`` is an attrs class whose fields
    are the other keys; ``factory`` builds the component, and imports what is heavy; ``api`` is the
    generation the plugin was written for.
    """

    name: str
    options: type[OptionsT]
    factory: Callable[[OptionsT, ComponentContext], T_co]
    api: int
    summary: str = ""


@hookspec
def klaw_embedders() -> Iterable[Component[object, Embedder]]:  # type: ignore[empty-body]  # a spec has no body
    """Yield what turns texts into vectors."""


@hookspec
def klaw_chunkers() -> Iterable[Component[object, Chunker]]:  # type: ignore[empty-body]  # a spec has no body
    """Yield what cuts documents into chunks."""


@hookspec
def klaw_retrievers() -> Iterable[Component[object, Retriever[object]]]:  # type: ignore[empty-body]  # as above
    """Yield what answers queries with keys; an ``Index`` also keeps rows."""


@hookspec
def klaw_fusions() -> Iterable[Component[object, Fusion]]:  # type: ignore[empty-body]  # a spec has no body
    """Yield what makes one ranking of several."""


@hookspec
def klaw_stores() -> Iterable[Component[object, Store[object]]]:  # type: ignore[empty-body]  # as above
    """Yield what keeps chunks and transactions."""


@hookspec
def klaw_sources() -> Iterable[Component[object, Source]]:  # type: ignore[empty-body]  # a spec has no body
    """Yield what documents come from."""


@hookspec
def klaw_rerankers() -> Iterable[Component[object, Reranker]]:  # type: ignore[empty-body]  # as above
    """Yield what reorders the best chunks by reading them."""
