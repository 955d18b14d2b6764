"""What the stages that weigh a chunk by its nature share: which chunks a mark means, and how a score is weighted."""

from collections.abc import Iterable, Sequence

from klaw_core.values.candidates import Candidate, RerankScore
from klaw_core.values.text import StoredChunk


def is_marked(stored: StoredChunk, mark: str) -> bool:
    """Return whether ``mark`` means this chunk: a path's beginning if there is a ``/`` in it, else a source label."""
    return stored.path.startswith(mark) if "/" in mark else stored.source == mark


def weigh(weighted: Iterable[tuple[Candidate, float, float]], limit: int) -> Sequence[RerankScore]:
    """Multiply each candidate's score by a factor; given are (candidate, factor, raw).

    Return at most ``limit`` scores, best first, ties in the order given. A fusion may give negative scores: a factor
    below 1 lowers those too.
    """
    scored = [
        RerankScore(candidate.key, candidate.hit.score + (factor - 1.0) * abs(candidate.hit.score), raw)
        for candidate, factor, raw in weighted
    ]
    return sorted(scored, key=lambda item: -item.score)[:limit]
