"""Answer a request with conditions but no words: the newest documents that satisfy them, without a relevance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from heapq import nsmallest

from attrs import evolve

from klaw_core.searching.scope import Scope, Target
from klaw_core.values.search import Filters, Hit, SearchResult
from klaw_core.values.text import StoredChunk

_BATCH = 1000  # chunks that are read at once


def newest(scope: Scope, limit: int, holds: Sequence[Callable[[StoredChunk], bool]]) -> tuple[SearchResult, ...]:
    """Return the first matching chunk of each of the ``limit`` newest documents; those of one date are by path."""
    count = sum(len(_keys(scope, target, None)) for target in scope.targets)
    for depth in (*(each for each in (4 * limit, 64 * limit) if 2 * each < count), 0):  # 0: all, which takes long
        ends = (scope.snapshot.newest(each.query.collection, depth)[depth - 1 :] for each in scope.targets if depth)
        since = max((record.created_at for end in ends for record in end), default=None)
        first: dict[tuple[str, int], StoredChunk] = {}
        for number, target in enumerate(scope.targets):
            keys = _keys(scope, target, since)
            for start in range(0, len(keys), _BATCH):
                for stored in scope.snapshot.chunks(target.query.collection, keys[start : start + _BATCH]):
                    held = first.get((stored.path, number), stored)
                    if stored.chunk.start <= held.chunk.start and all(condition(stored) for condition in holds):
                        first[stored.path, number] = stored
        if len(first) >= limit or since is None:
            break
    found = nsmallest(limit, first.items(), key=lambda item: (-item[1].created_at.timestamp(), item[0]))
    combined = (evolve(stored, key=stored.key * len(scope.targets) + number) for (_, number), stored in found)
    return tuple(scope.result(stored, Hit(stored.key, 0.0)) for stored in combined)


def _keys(scope: Scope, target: Target, since: datetime | None) -> Sequence[int]:
    """Return the keys of the chunks of a target that pass its filters, and are not older than a date, if any."""
    name, within = target.query.collection, target.query.within
    if since is None:
        return [*(scope.snapshot.keys(name) if within is None else within.keys()).tolist()]
    recent = scope.snapshot.select(name, Filters(since=since)).keys().tolist()
    return recent if within is None else within.among(recent)
