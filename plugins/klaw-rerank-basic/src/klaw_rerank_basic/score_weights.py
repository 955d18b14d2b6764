"""Shared by the stages that weight a score by its chunk's source or age."""

from collections.abc import Iterable, Sequence

from klaw_core import Candidate, RerankScore, StoredChunk


def is_marked(stored: StoredChunk, mark: str) -> bool:
    """Return whether ``mark`` matches this chunk: the beginning of its path if it contains ``/``, else its label."""
    return stored.path.startswith(mark) if "/" in mark else stored.source == mark


def weigh(weighted: Iterable[tuple[Candidate, float, float]], limit: int) -> Sequence[RerankScore]:
    """Multiply scores by factors, given triples of candidate, factor and raw.

    Return at most ``limit`` scores, best first, ties in the order given. A factor below 1 also lowers a negative score.
    """
    scored = [
        RerankScore(candidate.key, candidate.hit.score + (factor - 1.0) * abs(candidate.hit.score), raw)
        for candidate, factor, raw in weighted
    ]
    return sorted(scored, key=lambda item: -item.score)[:limit]
