"""How good one ranking is: pure functions of the ranked ids and the relevant ones.

any@k: at least one relevant id is among the first k. frac@k: the part of the relevant ids that is (recall). all@k: all
of them are. mrr: one over the rank of the first relevant id, 0 if it is not among the first ten. ndcg@10: the gains
of the first ten, each its relevance over log2(rank + 1), over those of the best possible order (Järvelin and
Kekäläinen, *Cumulated gain-based evaluation of IR techniques*, TOIS 2002; linear gains, as in trec_eval).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Rows are questions, columns :data:`METRICS`.
Scores: TypeAlias = NDArray[np.float64]

CUTS = (5, 10)
#: How many distinct ids a ranking needs.
DEPTH = max(CUTS)
METRICS = (*(f"{kind}@{k}" for k in CUTS for kind in ("any", "frac", "all")), "mrr", "ndcg@10")

_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))


def distinct(ids: Iterable[str]) -> list[str]:
    """Return each id at its first appearance: what is ranked is documents, not their chunks."""
    return list(dict.fromkeys(ids))


def score(ranked: Sequence[str], gold: Mapping[str, float]) -> Scores:
    """Return one value for each of :data:`METRICS`.

    ``ranked`` holds distinct ids, best first; ``gold`` at least one id, each with a relevance above 0.
    """
    gains = np.array([gold.get(name, 0.0) for name in ranked[:DEPTH]])
    relevant = gains > 0
    values: list[float] = []
    for k in CUTS:
        found = int(relevant[:k].sum())
        values += [float(found > 0), found / len(gold), float(found == len(gold))]
    values.append(1 / (1 + int(relevant.argmax())) if relevant.any() else 0.0)
    best = np.sort(np.array(list(gold.values())))[::-1][:DEPTH]
    values.append(float(gains @ _DISCOUNTS[: len(gains)]) / float(best @ _DISCOUNTS[: len(best)]))
    return np.array(values)
