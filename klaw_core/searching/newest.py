"""Answer a request with conditions but no words: the newest documents that satisfy them, without a relevance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nsmallest

from attrs import evolve

from klaw_core.searching.scope import Scope
from klaw_core.values.search import Hit, SearchResult
from klaw_core.values.text import StoredChunk

_BATCH = 1000  # chunks that are read at once


def newest(scope: Scope, limit: int, holds: Sequence[Callable[[StoredChunk], bool]]) -> tuple[SearchResult, ...]:
    """Return the first matching chunk of each of the ``limit`` newest documents; those of one date are by path."""
    first: dict[tuple[str, int], StoredChunk] = {}
    for number, target in enumerate(scope.targets):
        name, within = target.query.collection, target.query.within
        keys = (scope.snapshot.keys(name) if within is None else within.keys()).tolist()
        for start in range(0, len(keys), _BATCH):
            for stored in scope.snapshot.chunks(name, keys[start : start + _BATCH]):
                held = first.get((stored.path, number), stored)
                if stored.chunk.start <= held.chunk.start and all(condition(stored) for condition in holds):
                    first[stored.path, number] = stored
    found = nsmallest(limit, first.items(), key=lambda item: (-item[1].created_at.timestamp(), item[0]))
    combined = (evolve(stored, key=stored.key * len(scope.targets) + number) for (_, number), stored in found)
    return tuple(scope.result(stored, Hit(stored.key, 0.0)) for stored in combined)
