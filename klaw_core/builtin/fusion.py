"""Two fusions: reciprocal rank fusion and a convex combination of normalised scores."""

import math
from collections.abc import Iterable, Sequence
from itertools import count, repeat
from operator import add, attrgetter, mul, truediv

from attrs import field, frozen, validators

from klaw_core.values.search import Contribution, Hit, Ranking

# The smallest weight of a hit, whatever its relevance, so that it ranks before chunks that were not found.
_MIN_RELEVANCE = 0.0004
# The factor for a hit that the other retriever could not have found: its own contribution and the other's.
_UNREACHED = 2.8


@frozen(eq=False, repr=False)
class _WeightedRanking:
    """One retriever's hits, best first, each with its weight and its contribution to the score of its key."""

    retriever: str
    hits: Sequence[Hit]
    weights: Sequence[float]
    values: Sequence[float]


@frozen
class ReciprocalRankFusion:
    """Score a key by the sum of ``weight * confidence / (k + rank)`` over the retrievers that found it.

    Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) with a weight per retriever and a confidence per
    hit. Ranks alone do not show whether a retriever knows the answer or guesses: a model that never learned the
    question's language still ranks fifty chunks, but gives them all similar scores. So the confidence of a hit is its
    distance in score from the last hit of its retriever's pool, at least ``min_confidence``, times the square root of
    its relevance if the retriever provides one. A hit that the other retrievers could not have found counts as if they
    had found it.

    ``pool`` is the number of hits per retriever that define this scale; later hits have the lowest confidence. If a
    retriever found fewer, the scale begins at 0, the score of a chunk that it did not find. ``min_confidence = 1`` is
    the plain formula. If only one retriever returned hits, their order is kept.
    """

    k: int = field(default=60, validator=validators.ge(1))
    pool: int = field(default=50, validator=validators.ge(1))
    min_confidence: float = field(default=0.3, validator=validators.and_(validators.gt(0.0), validators.le(1.0)))

    def depth(self, limit: int, /) -> int:
        """Return the larger of the pool and ``limit``."""
        return max(limit, self.pool)

    def fuse(self, rankings: Sequence[Ranking], limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key. A contribution's weight includes the confidence."""
        several = sum(bool(ranking.hits) for ranking in rankings) > 1 and self.min_confidence < 1
        return _combine((self._weigh(ranking, several=several) for ranking in rankings), limit)

    def _weigh(self, ranking: Ranking, *, several: bool) -> _WeightedRanking:
        least, sure = self.min_confidence, 1 - self.min_confidence
        has_relevance = several and all(hit.relevance is not None for hit in ranking.hits)
        heights = self._relative_heights(ranking.hits, has_relevance=has_relevance)
        weights = [ranking.weight * (least + sure * height) for height in heights]
        if has_relevance:
            weights = list(map(mul, weights, map(_relevance_weight, ranking.hits)))
        values = list(map(truediv, weights, count(self.k + 1)))
        return _WeightedRanking(ranking.retriever, ranking.hits, weights, values)

    def _relative_heights(self, hits: Sequence[Hit], *, has_relevance: bool) -> Sequence[float]:
        """Return each hit's height above the end of the pool, from 0 to 1, independent of the scale of the scores.

        If a ranking has only scores, a pool with similar scores gets low heights. If it has relevance, which is more
        reliable, the first hit gets height 1.
        """
        if not hits:
            return ()
        best, last = hits[0].score, hits[: self.pool][-1].score
        floor = last if len(hits) >= self.pool else min(0.0, last)
        # A cosine may be negative; then the range itself is the scale.
        span = best - floor if has_relevance else max(abs(best), best - floor)
        return [max(hit.score - floor, 0.0) / span if span > 0 else 1.0 for hit in hits]


def _relevance_weight(hit: Hit) -> float:
    """Return the weight of a hit: the square root of its relevance, as twice the words is not twice the answer."""
    relevance = hit.relevance
    weight = math.sqrt(relevance if relevance is not None and relevance > _MIN_RELEVANCE else _MIN_RELEVANCE)
    return weight * _UNREACHED if hit.unreached else weight


@frozen
class WeightedFusion:
    """Score a key by the weighted mean of its scores, each retriever's scaled to 0..1 by its own range.

    Min-max convex combination (Bruch, Gai and Ingber, *An Analysis of Fusion Functions for Hybrid
    Retrieval*, TOIS 2023). The range of a retriever is that of its fetched hits, ``multiplier`` times the limit. The
    last of them gets 0; if all scores are equal, each gets 1; a key that a retriever did not find gets nothing from it.
    Weights are divided by their sum, so a score lies in 0..1.
    """

    multiplier: int = field(default=4, validator=validators.ge(1))

    def depth(self, limit: int, /) -> int:
        """Return ``multiplier`` times ``limit``, so that the range does not depend on the last hit shown."""
        return self.multiplier * limit

    def fuse(self, rankings: Sequence[Ranking], limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key."""
        # fsum gives the same total for every order of retrievers
        total = math.fsum(ranking.weight for ranking in rankings if ranking.hits) or 1.0
        return _combine((_weigh(ranking, ranking.weight / total) for ranking in rankings), limit)


def _weigh(ranking: Ranking, weight: float) -> _WeightedRanking:
    """Return the hits with their scores scaled to 0..1, times ``weight``."""
    scores = [hit.score for hit in ranking.hits]
    low, span = min(scores, default=0.0), max(scores, default=0.0) - min(scores, default=0.0)
    values = [weight * ((score - low) / span if span > 0 else 1.0) for score in scores]
    return _WeightedRanking(ranking.retriever, ranking.hits, [weight] * len(values), values)


def _combine(retrievers: Iterable[_WeightedRanking], limit: int) -> Sequence[Hit]:
    """Add up each key's contributions, in the order of the retrievers' names; return the best with contributions."""
    ordered = sorted(retrievers, key=attrgetter("retriever"))
    scores: dict[int, float] = {}
    for weighted in ordered:
        keys = [hit.key for hit in weighted.hits]
        scores.update(zip(keys, map(add, map(scores.get, keys, repeat(0.0)), weighted.values), strict=True))
    best = sorted([(-score, key) for key, score in scores.items()])[:limit]
    parts: dict[int, list[Contribution]] = {key: [] for _, key in best}
    for weighted in ordered:
        places = dict(zip([hit.key for hit in weighted.hits], count(), strict=False))
        for key in parts.keys() & places.keys():
            place = places[key]
            held = weighted.hits[place].score, weighted.weights[place], weighted.values[place]
            parts[key].append(Contribution(weighted.retriever, place + 1, *held))
    return [Hit(key, -score, tuple(parts[key])) for score, key in best]
