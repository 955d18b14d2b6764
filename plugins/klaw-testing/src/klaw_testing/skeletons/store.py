"""A store: at first the one in RAM, to be replaced method by method by one that keeps its data."""

from collections.abc import Iterable
from typing import Any

from klaw_core import Component, ComponentContext, NoOptions, Store, hookimpl


def open_store(_options: NoOptions, _context: ComponentContext) -> Store[Any]:
    """Open the store. ``_context.data_dir`` is where its files go, ``_context.agent`` whose rows it may show."""
    from klaw_testing.memory_store import MemoryStore  # passes the contract; replace it with your own class

    class SkeletonStore(MemoryStore):
        """Replace one method at a time, and run the contract after each change."""

        location = "skeleton"

    return SkeletonStore()


@hookimpl
def klaw_stores() -> Iterable[Component[NoOptions, Store[Any]]]:
    """Yield the store, with the retrievers that go with it."""
    yield Component("skeleton", NoOptions, open_store, api=2, retrievers=("cosine", "words"))
