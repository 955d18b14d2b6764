"""The stages after fusion: each reorders the result of the previous one, and every change is explained.

A stage has its own scale of scores: a cross-encoder's are in 0..1, fused ones near 1/60. They are not blended. A chunk
that the stage scores gets the stage's score; the difference to the old score is its contribution, so that the
contributions always add up to the score. The other chunks keep their order after the scored ones; if their scores would
be higher, all of them are lowered by the same minimal amount, which is their contribution, with weight 0. Scores are
comparable only within one answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from attrs import evolve

from klaw_core.errors import PluginContractError, as_klaw_error
from klaw_core.interfaces.store import Store
from klaw_core.searching.stages import Stage
from klaw_core.values.candidates import Candidate, RerankScore
from klaw_core.values.search import Contribution, Hit, Query
from klaw_core.values.text import StoredChunk

Found: TypeAlias = Sequence[tuple[StoredChunk, Hit]]

# The largest score. With larger ones, rounding would lose the fused scores near 1/60, and the sum would be wrong.
_MAX_SCORE = 1e6
# The maximum number of candidates for a stage, because thousands may be found if copies of a text were left out.
_MAX_CANDIDATES = 100


def rerank(
    stages: Sequence[Stage],
    store: Store[Any],
    query: Query,
    found: Found,
    limit: int,
    *,
    per_document: int | None = None,
) -> tuple[Found, Sequence[str]]:
    """Apply every stage to the candidates, best first.

    The caller wants ``limit`` of the result, of which ``per_document`` are from one document unless the others are
    clearly worse, so they need scores of the stage too. Return the candidates and notices. A stage that fails or
    violates its contract does not change the order.
    """
    if not stages or not found:
        return found, ()
    candidates = [Candidate(stored, hit) for stored, hit in found]
    notices = []
    needs_all = per_document is not None and any(
        count > per_document for count in Counter(stored.path for stored, _ in found).values()
    )
    for stage in stages:
        # The next stage may need any of them.
        wanted = limit if stage is stages[-1] and not needs_all else max(limit, _MAX_CANDIDATES)
        try:
            own = [candidate for candidate in candidates if stage.concerns(candidate.stored)]
            moved = _apply(stage, store, query, own, wanted) if own else own
            candidates = moved if len(own) == len(candidates) else _in_places(stage, candidates, moved)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a stage fails open, whatever it raises
            notices.append(f"not reranked by {stage.name}: {as_klaw_error(error)}")
    return [(candidate.stored, candidate.hit) for candidate in candidates], notices


def _apply(stage: Stage, store: Store[Any], query: Query, found: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return all candidates in the order of the stage. Raise what it raises, or PluginContractError."""
    reranker = stage.reranker
    candidates = found[: max(limit, _MAX_CANDIDATES)]
    if reranker.needs_vectors:
        candidates = _with_vectors(candidates, store, query.collection)
    scored = reranker.rerank(query, candidates, limit)
    if scored is None:
        parts = [Contribution(stage.name, rank, 0.0, 0.0, 0.0) for rank in range(1, len(found) + 1)]
        return [_changed(each, each.hit.score, part) for each, part in zip(found, parts, strict=True)]
    _check(stage.name, scored, {candidate.key for candidate in candidates}, limit)
    return _moved(stage.name, found, scored)


def _with_vectors(candidates: Sequence[Candidate], store: Store[Any], collection: str) -> list[Candidate]:
    """Add the vectors from the embedding cache to the candidates."""
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
        score = float(item.score)  # numpy's numbers cannot be converted to JSON
        raw = score if item.raw is None else float(item.raw)
        part = Contribution(name, rank, raw, 1.0, score - candidate.hit.score)
        front.append(_changed(candidate, score, part, item.relevance))
    if not rest:
        return front
    lowest = front[-1].hit.score
    shift = min(0.0, lowest - next(iter(rest.values())).hit.score)
    parts = (Contribution(name, rank, 0.0, 0.0, shift) for rank in range(len(front) + 1, len(candidates) + 1))
    # min, because rounding in the shift must not change the order
    behind = (
        _changed(candidate, min(candidate.hit.score + shift, lowest), part)
        for candidate, part in zip(rest.values(), parts, strict=True)
    )
    return [*front, *behind]


def _in_places(stage: Stage, candidates: Sequence[Candidate], moved: Sequence[Candidate]) -> list[Candidate]:
    """Put what a stage has moved into the places of what it concerns; each place keeps its score."""
    rest = iter(moved)
    return [
        _with_score(next(rest), candidate.hit.score) if stage.concerns(candidate.stored) else candidate
        for candidate in candidates
    ]


def _with_score(candidate: Candidate, score: float) -> Candidate:
    """Return a candidate that a stage has moved, with another score; the stage's part is the difference."""
    *others, last = candidate.hit.contributions
    part = evolve(last, value=last.value + score - candidate.hit.score)
    return evolve(candidate, hit=evolve(candidate.hit, score=score, contributions=(*others, part)))


def _changed(candidate: Candidate, score: float, part: Contribution, relevance: float | None = None) -> Candidate:
    hit = candidate.hit
    relevance = hit.relevance if relevance is None else relevance
    return evolve(candidate, hit=Hit(candidate.key, score, (*hit.contributions, part), relevance))


def _check(name: str, scored: Sequence[RerankScore], known: set[int], limit: int) -> None:
    """Raise PluginContractError unless the answer is valid: known keys, distinct, best first, at least one."""
    keys = {item.key for item in scored}
    sound = all(
        abs(item.score) <= _MAX_SCORE and math.isfinite(item.raw or 0.0) and 0 <= (item.relevance or 0.0) <= 1
        for item in scored
    )  # false for NaN
    ordered = all(first.score >= second.score for first, second in pairwise(scored))
    if not (sound and ordered and keys <= known) or len(keys) != len(scored) or not 0 < len(keys) <= limit:
        raise PluginContractError(
            f"the reranker {name!r} returned scores that are unsorted, repeated, unknown, not finite, none or too many"
        )
