"""The stage ``mmr``: chunks that repeat a better result rank lower."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from klaw_core import Candidate, Query, RerankScore
from klaw_rerank_basic.options import MmrOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Similarities = NDArray[np.float64]  # shape (n,), 0..1

# In scripts without spaces, each character counts as a word.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_WORD = (
    rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+"  # compiled at first use, because that takes longer than the rest of the import
)


@frozen
class MaximalMarginalRelevance:
    """Picks chunks one after another, each time the one with the best score minus a penalty for repetition.

    Carbonell and Goldstein, *The Use of MMR, Diversity-Based Reranking for Reordering Documents and Producing
    Summaries* (SIGIR 1998): the largest ``lambda * relevance - (1 - lambda) * nearest``, where relevance is the score
    scaled to 0..1 by the range of all scores. Dividing by lambda and scaling back gives a score minus a penalty: the
    order is the paper's, the first result keeps its score, and no score rises. ``nearest``, which is also raw, is the
    largest cosine to a chunk picked before, at least 0. If any chunk has no vector, all are compared by shared words
    (Jaccard).
    """

    options: MmrOptions = field(factory=MmrOptions)

    needs_vectors = True

    def rerank(self, _query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore]:
        """Return at most ``limit`` scores in the order of the picks, ties in the order given."""
        import numpy as np

        if not candidates:
            return ()
        scores = np.array([candidate.hit.score for candidate in candidates], np.float64)
        unit = float(np.ptp(scores)) or abs(float(scores[0])) or 1.0
        penalty = unit * (1.0 - self.options.relevance) / self.options.relevance
        similarities_to = _comparer(candidates)
        nearest = np.zeros(len(candidates))
        waiting = np.ones(len(candidates), dtype=bool)
        picks = []
        for _ in range(min(limit, len(candidates))):
            marginal = scores - penalty * nearest
            pick = int(np.argmax(np.where(waiting, marginal, -np.inf)))
            picks.append(RerankScore(candidates[pick].key, float(marginal[pick]), float(nearest[pick])))
            waiting[pick] = False
            nearest = np.maximum(nearest, similarities_to(pick))
        return picks


def _comparer(candidates: Sequence[Candidate]) -> Callable[[int], Similarities]:
    """Return a function that compares the candidate at an index with all candidates."""
    import numpy as np

    vectors = [candidate.vector for candidate in candidates if candidate.vector is not None]
    if len(vectors) == len(candidates):
        matrix = np.stack(vectors).astype(np.float64)
        return lambda place: np.clip(matrix @ matrix[place], 0.0, 1.0)
    words = [frozenset(re.findall(_WORD, candidate.stored.chunk.text.casefold())) for candidate in candidates]

    def jaccard(place: int) -> Similarities:
        own = words[place]
        return np.array([len(own & other) / (len(own | other) or 1) for other in words])

    return jaccard
