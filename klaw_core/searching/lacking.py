"""Report that a retriever lacks chunks. Imported only for a retriever that found nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from klaw_core.errors import as_klaw_error
from klaw_core.indexing.reconcile import count_lacking
from klaw_core.interfaces.index import Index

if TYPE_CHECKING:
    from klaw_core.interfaces.store import Snapshot
    from klaw_core.searching.retrievers import ConfiguredRetriever


def lacking_chunks(snapshot: Snapshot[Any], configured: ConfiguredRetriever, collection: str) -> Iterator[str]:
    """Report missing chunks in a retriever, for example after an upgrade or an interrupted run."""
    if not isinstance(configured.retriever, Index):
        return
    try:
        lacking = count_lacking(snapshot, collection, (configured.retriever,))
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything; the search continues
        yield f"{configured.name} cannot say what it holds: {as_klaw_error(error)}"
        return
    if lacking > 0:
        hint = "klaw embed" if configured.retriever.needs_vectors else "klaw index"
        yield f"{configured.name} lacks {lacking:,} {'chunk' if lacking == 1 else 'chunks'}: {hint}"
