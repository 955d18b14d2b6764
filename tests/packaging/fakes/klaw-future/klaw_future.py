"""A plugin that was written for generation 99 of the hooks."""

from collections.abc import Iterable

from attrs import frozen

from klaw_core import Component, ComponentContext, Embedder, hookimpl


@frozen
class Options:
    """None: this component is never to be built."""


def _embedder(_options: Options, _context: ComponentContext) -> Embedder:
    raise AssertionError("a component of another generation was built")


@hookimpl
def klaw_embedders() -> Iterable[Component[Options, Embedder]]:
    yield Component("future", Options, factory=_embedder, api=99, summary="from the year 2099")
