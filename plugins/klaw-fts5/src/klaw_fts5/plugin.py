"""The hook for the retriever ``fts5``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import Component, ComponentContext, hookimpl
from klaw_fts5.options import Fts5Options

if TYPE_CHECKING:
    from klaw_fts5.index import Fts5Index


def build(options: Fts5Options, _context: ComponentContext) -> Fts5Index:
    """Build the index, which stores everything in the store's database."""
    from klaw_fts5.index import Fts5Index

    return Fts5Index(
        heading_weight=options.heading_weight,
        text_weight=options.text_weight,
        context_weight=options.context_weight,
        pair_weight=options.pair_weight,
        search_by=options.search,
        exact_up_to=options.exact_up_to,
    )


@hookimpl
def klaw_retrievers() -> Iterable[Component[Any, Any]]:
    """Yield the full-text retriever."""
    yield Component("fts5", options=Fts5Options, factory=build, api=2, summary="full-text search with BM25")
