"""A plugin whose hook yields one component and then raises."""

from collections.abc import Iterable

from attrs import frozen

from klaw_core import Component, ComponentContext, Embedder, hookimpl


@frozen
class Options:
    """None: this component is never to be built."""


def _embedder(_options: Options, _context: ComponentContext) -> Embedder:
    raise AssertionError("a component of a plugin that failed was built")


@hookimpl
def klaw_embedders() -> Iterable[Component[Options, Embedder]]:
    yield Component("half", Options, factory=_embedder, api=2)
    raise RuntimeError("klaw-raises lost its licence\nand says so on two lines")
