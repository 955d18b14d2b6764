"""The input and output of a reranking stage, a preference, and the rule that skips it for a clear winner."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from attrs import Factory, field, frozen

from klaw_core.values.metadata import Condition
from klaw_core.values.search import Hit
from klaw_core.values.text import StoredChunk
from klaw_core.values.vectors import Vector


@frozen
class Candidate:
    """A chunk that was found, and its scores after fusion and the stages so far.

    ``hit`` has the current score and its contributions, ``fused`` those of the retrievers only. ``vector`` is the
    chunk's from the embedding cache, for a reranker that ``needs_vectors``; None if it was never embedded.
    """

    stored: StoredChunk
    hit: Hit
    fused: Hit = field(default=Factory(lambda self: self.hit, takes_self=True))
    vector: Vector | None = field(default=None, eq=False, repr=False)

    @property
    def key(self) -> int:
        """The key of the stored chunk."""
        return self.stored.key


@frozen
class Preference:
    """A bonus for some of the chunks that were found: ``weight`` is its share of the best score.

    With ``requires`` the others are left out. ``question`` replaces the question, without its ``conditions`` on
    metadata; ``notice`` tells the user how it was read. What is preferred has at least this ``relevance``.
    """

    weight: float
    holds: Callable[[StoredChunk], bool]
    requires: bool = False
    question: str = ""
    conditions: tuple[Condition, ...] = ()
    notice: str = ""
    relevance: float | None = None


@frozen
class RerankScore:
    """A stage's result for one candidate: its new score, which replaces the old one.

    ``raw`` is what the stage computed the score from (a model's logit, an age in days), for ``--explain``; by
    default the score itself. ``relevance`` replaces that of the candidate's hit, unless it is None.
    """

    key: int
    score: float
    raw: float | None = None
    relevance: float | None = None


def has_clear_winner(candidates: Sequence[Candidate], margin: float = 0.3) -> bool:
    """Return whether the first candidate leads so clearly that reranking is not needed.

    It must be first in every retriever that answered, and in one of them no other candidate may be closer than
    ``margin``, a share of the winner's own raw score. Raw scores are compared only within one retriever, and only where
    positive: cosine and BM25 have a meaningful zero, so their ratios mean something. How often the winner was right,
    and how many questions had one, is in ``docs/decisions/0014-reranking.md``.
    """
    if not candidates:
        return False
    first, *others = (candidate.fused.contributions for candidate in candidates)
    best = {part.component: part.raw for part in first if part.weight > 0 and part.rank == 1}
    second: dict[str, float] = {}
    for part in (part for parts in others for part in parts if part.weight > 0):
        second[part.component] = max(part.raw, second.get(part.component, part.raw))
    leads_everywhere = bool(best) and second.keys() <= best.keys()
    return leads_everywhere and any(
        raw > 0 and second.get(retriever, -math.inf) <= (1 - margin) * raw for retriever, raw in best.items()
    )
