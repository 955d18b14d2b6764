"""Report that a retriever lacks chunks. Imported only if one does, or has found nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from klaw_core.errors import as_klaw_error
from klaw_core.indexing.reconcile import count_lacking
from klaw_core.interfaces.index import Index

if TYPE_CHECKING:
    from klaw_core.interfaces.store import Snapshot
    from klaw_core.searching.retrievers import ConfiguredRetriever


def lacking_chunks(snapshot: Snapshot[Any], configured: ConfiguredRetriever, collection: str) -> Iterator[str]:
    """Report missing chunks in a retriever, for example after an upgrade or an interrupted run."""
    index = configured.retriever
    if not isinstance(index, Index):
        return
    try:
        lacking = index.lacking(snapshot.resource, collection, partial(snapshot.count, collection))
        if lacking is None:
            lacking = count_lacking(snapshot, collection, (index,))
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything; the search continues
        yield f"{configured.name} cannot say what it holds: {as_klaw_error(error)}"
        return
    if lacking > 0:
        chunks = "chunk" if lacking == 1 else "chunks"
        if index.needs_vectors:
            have, them = ("has", "it") if lacking == 1 else ("have", "them")
            yield f"{lacking:,} {chunks} {have} no vector yet, so only words find {them}: klaw embed"
        else:
            yield f"{configured.name} lacks {lacking:,} {chunks}: klaw index"
