"""The hooks of the store in RAM. Imports are inside the factories: the kit needs pytest, the store does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import Component, NoOptions, hookimpl

if TYPE_CHECKING:
    from klaw_core import ComponentContext, Index, Retriever, Store


@hookimpl
def klaw_stores() -> Iterable[Component[Any, Store[Any]]]:
    """Yield the store ``memory``."""
    yield Component(
        "memory",
        NoOptions,
        _memory_store,
        api=2,
        summary="in this process only, for tests and trials",
        retrievers=("cosine", "words"),
    )


@hookimpl
def klaw_retrievers() -> Iterable[Component[Any, Retriever[Any]]]:
    """Yield the in-memory store's two indexes."""
    yield Component("cosine", NoOptions, _cosine, api=2, summary="exact cosine similarity in the store 'memory'")
    yield Component("words", NoOptions, _words, api=2, summary="BM25 over whole words in the store 'memory'")


def _memory_store(_options: NoOptions, _context: ComponentContext) -> Store[Any]:
    from klaw_testing.memory_store import MemoryStore

    return MemoryStore()


def _cosine(_options: NoOptions, _context: ComponentContext) -> Index[Any]:
    from klaw_testing.memory_index import CosineIndex

    return CosineIndex()


def _words(_options: NoOptions, _context: ComponentContext) -> Index[Any]:
    from klaw_testing.memory_index import WordIndex

    return WordIndex()
