"""The rule that skips a reranker with a model, if the first result leads clearly."""

from __future__ import annotations

import math
from collections.abc import Sequence

from klaw_core import Candidate


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
