"""Explain empty and weak results: filters that match nothing, misspelled words, lacking chunks. Imported if needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from klaw_core.errors import as_klaw_error, quoted
from klaw_core.indexing.reconcile import count_lacking
from klaw_core.interfaces.index import Index
from klaw_core.values.search import Filters

if TYPE_CHECKING:
    from klaw_core.interfaces.store import Snapshot
    from klaw_core.searching.retrievers import ConfiguredRetriever
    from klaw_core.searching.scope import Scope

# A longer question is a pasted text.
_MAX_SUGGESTION_CHARACTERS = 200

# Filters that may be misspelled: the message if nothing passes, and what to write.
_FILTERS = {
    "path": ("no path starts with", "paths start with the workspace name, as in results, e.g. notes/memory/"),
    "source": ("no results with source", "the source of a note is its path inside the workspace, e.g. MEMORY.md"),
    "chat_id": ("no messages from chat", "a chat name has the form CHANNEL_ID, e.g. telegram_123456"),
}


def unmatched(snapshot: Snapshot[Any], collections: Sequence[str], filters: Filters) -> Iterator[str]:
    """Report every filter that matches nothing by itself, because it is probably misspelled."""
    for name, (problem, advice) in _FILTERS.items():
        value = getattr(filters, name)
        if value is not None and _nothing_passes(snapshot, collections, Filters(**{name: value})):
            yield f"{problem} {quoted(value)} ({advice})"
    for condition in filters.metadata:
        if _nothing_passes(snapshot, collections, Filters(metadata=(condition,))):
            yield f"no metadata has {condition.key} {condition.operator} {quoted(condition.value)}"


def suggestions(scope: Scope) -> Iterator[str]:
    """Yield corrections of the question from retrievers, because a misspelled question finds little."""
    for target in scope.targets:
        query = target.query

        def read(keys: Sequence[int], collection: str = query.collection) -> list[str]:
            return [stored.chunk.text for stored in scope.snapshot.chunks(collection, keys)]

        for configured in target.retrievers if len(query.text) <= _MAX_SUGGESTION_CHARACTERS else ():
            with suppress(Exception):  # a plugin may raise anything; suggestions are optional
                if meant := configured.retriever.suggest(scope.snapshot.resource, query, read):
                    yield meant


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


def _nothing_passes(snapshot: Snapshot[Any], collections: Sequence[str], filters: Filters) -> bool:
    return all(snapshot.select(collection, filters).is_empty for collection in collections)
