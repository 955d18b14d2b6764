"""The stages after fusion: each reorders what the one before it left, and every change is explained.

A stage gives scores on a scale of its own: a cross-encoder's lie in 0..1, fused ones near 1/60. They are not
blended. What a stage scored stands by the stage's score; its contribution is the difference that this made, so that
the contributions always add up to the score. What it did not score keeps its order behind the rest; if its scores
would stand higher, all of them are lowered by one amount, just enough, and that is their contribution, with
weight 0. Scores compare within one answer only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

from attrs import evolve, frozen

from klaw_core.errors import PluginContractError, as_klaw_error
from klaw_core.interfaces.components import Reranker
from klaw_core.interfaces.store import Store
from klaw_core.values.candidates import Candidate, RerankScore
from klaw_core.values.search import Contribution, Hit, Query
from klaw_core.values.text import StoredChunk

Found: TypeAlias = Sequence[tuple[StoredChunk, Hit]]

# Beyond this, a score's difference to one near 1/60 would lose it to rounding, and the sum would not explain it.
_LARGEST_SCORE = 1e6
# Where copies of one text were left out, thousands may have been found: a stage is given the best of them.
_MOST_CANDIDATES = 100


@frozen(eq=False, repr=False)
class Stage:
    """One reranker as configured; it is built at its first use, and again if that failed."""

    name: str
    build: Callable[[], Reranker]

    @cached_property
    def reranker(self) -> Reranker:
        """The reranker. Raise whatever its factory raises."""
        return self.build()


def rerank(
    stages: Sequence[Stage], store: Store[Any], query: Query, found: Found, limit: int
) -> tuple[Found, Sequence[str]]:
    """Send what was found, best first, through every stage; of the result, ``limit`` are wanted.

    Return it with what a person should know: a stage that fails or breaks its contract leaves the order as it was.
    """
    if not stages or not found:
        return found, ()
    candidates = [Candidate(stored, hit) for stored, hit in found]
    notices = []
    for stage in stages:
        wanted = limit if stage is stages[-1] else max(limit, _MOST_CANDIDATES)  # the next may want any of them
        try:
            candidates = _apply(stage, store, query, candidates, wanted)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a stage fails open, whatever it raises
            notices.append(f"not reranked by {stage.name}: {as_klaw_error(error)}")
    return [(candidate.stored, candidate.hit) for candidate in candidates], notices


def _apply(stage: Stage, store: Store[Any], query: Query, found: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return everything as the stage orders it. Raise what it raises, or PluginContractError."""
    reranker = stage.reranker
    candidates = found[: max(limit, _MOST_CANDIDATES)]
    if reranker.needs_vectors:
        candidates = _with_vectors(candidates, store, query.collection)
    scored = reranker.rerank(query, candidates, limit)
    if scored is None:
        return _abstained(stage.name, found)
    _check(stage.name, scored, {candidate.key for candidate in candidates}, limit)
    return _moved(stage.name, found, scored)


def _with_vectors(candidates: Sequence[Candidate], store: Store[Any], collection: str) -> list[Candidate]:
    """Give each candidate its vector from the embedding cache, where there is one."""
    with store.read() as snapshot:
        record = snapshot.space(collection)
        hashes = [candidate.stored.chunk.embedding_hash for candidate in candidates]
        vectors = snapshot.cached_vectors(record.space, hashes) if record else {}
    return [evolve(candidate, vector=vectors.get(digest)) for candidate, digest in zip(candidates, hashes, strict=True)]


def _moved(name: str, candidates: Sequence[Candidate], scored: Sequence[RerankScore]) -> list[Candidate]:
    """Return the scored candidates in their new order, then the others in their old one."""
    rest = {candidate.key: candidate for candidate in candidates}
    front = []
    for rank, item in enumerate(scored, start=1):
        candidate = rest.pop(item.key)
        score = float(item.score)  # numpy's numbers are no JSON
        raw = score if item.raw is None else float(item.raw)
        part = Contribution(name, rank, raw, 1.0, score - candidate.hit.score)
        front.append(_changed(candidate, score, part))
    if not rest:
        return front
    lowest = front[-1].hit.score
    shift = min(0.0, lowest - next(iter(rest.values())).hit.score)
    parts = (Contribution(name, rank, 0.0, 0.0, shift) for rank in range(len(front) + 1, len(candidates) + 1))
    # min: rounding in the shift must not lift anything above what it stands behind
    behind = (
        _changed(candidate, min(candidate.hit.score + shift, lowest), part)
        for candidate, part in zip(rest.values(), parts, strict=True)
    )
    return [*front, *behind]


def _abstained(name: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    return [
        _changed(candidate, candidate.hit.score, Contribution(name, rank, 0.0, 0.0, 0.0))
        for rank, candidate in enumerate(candidates, start=1)
    ]


def _changed(candidate: Candidate, score: float, part: Contribution) -> Candidate:
    return evolve(candidate, hit=Hit(candidate.key, score, (*candidate.hit.contributions, part)))


def _check(name: str, scored: Sequence[RerankScore], known: set[int], limit: int) -> None:
    """Raise PluginContractError unless the answer keeps the Protocol: known keys, each once, best first, some."""
    keys = {item.key for item in scored}
    sound = all(abs(item.score) <= _LARGEST_SCORE and math.isfinite(item.raw or 0.0) for item in scored)  # false of NaN
    ordered = all(first.score >= second.score for first, second in pairwise(scored))
    if not (sound and ordered and keys <= known) or len(keys) != len(scored) or not 0 < len(keys) <= limit:
        raise PluginContractError(
            f"the reranker {name!r} returned scores that are unsorted, repeated, unknown, not finite, none or too many"
        )
