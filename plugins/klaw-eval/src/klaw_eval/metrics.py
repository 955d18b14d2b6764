"""The metrics of one ranking, as functions of the ranked and the relevant ids.

any@k: at least one relevant id is among the first k. frac@k: the share of the relevant ids among the first k (recall).
all@k: all relevant ids are among the first k. mrr: the reciprocal of the rank of the first relevant id, 0 if it is
above 10. ndcg@10: the sum of the gains of the first ten, each its relevance over log2(rank + 1), divided by that of the
best possible order (Järvelin and Kekäläinen, *Cumulated gain-based evaluation of IR techniques*, TOIS 2002; linear
gains, as in trec_eval).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: A row per question, a column for each of :data:`METRICS`.
Scores: TypeAlias = NDArray[np.float64]

CUTS = (5, 10)
#: The number of distinct ids that a ranking needs.
DEPTH = max(CUTS)
METRICS = (*(f"{kind}@{k}" for k in CUTS for kind in ("any", "frac", "all")), "mrr", "ndcg@10")

_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))


def distinct(ids: Iterable[str]) -> list[str]:
    """Return each id once, at its first position, because documents are ranked and not their chunks."""
    return list(dict.fromkeys(ids))


def score(ranked: Sequence[str], gold: Mapping[str, float]) -> Scores:
    """Return one value for each of :data:`METRICS`.

    ``ranked`` are distinct ids, best first; ``gold`` is at least one id, each with a relevance above 0.
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
