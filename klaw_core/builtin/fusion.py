"""Two fusions: reciprocal rank fusion and a convex combination of normalised scores."""

import math
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from attrs import field, frozen, validators

from klaw_core.values import Contribution, Hit, Ranking

# What a contribution is made of.
_Part = tuple[str, int, float, float, float]
_VALUE: Final = 4


@frozen
class ReciprocalRankFusion:
    """Score a key by the sum of ``weight * confidence / (k + rank)`` over the legs that found it.

    Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009) with a weight a leg, and a confidence a hit.
    Ranks alone cannot tell a leg that knows the answer from one that guesses: a model that never learned the
    question's language still ranks fifty passages, but scores them all alike. So a hit counts by how far it stands
    above the end of its leg's pool, as a share of the leg's best score: 1 for a first hit that towers over the rest,
    ``min_confidence`` for what is no better than the fiftieth. ``min_confidence = 1`` is the plain formula.

    ``pool`` is how many hits of a leg make up this background; what comes after them has the least confidence. A
    leg that found fewer is measured from 0, the score of what it did not find.
    """

    k: int = field(default=60, validator=validators.ge(1))
    pool: int = field(default=50, validator=validators.ge(1))
    min_confidence: float = field(default=0.1, validator=validators.and_(validators.gt(0.0), validators.le(1.0)))

    def depth(self, limit: int, /) -> int:
        """Return the pool, or ``limit`` if more is wanted than the pool holds."""
        return max(limit, self.pool)

    def fuse(self, rankings: Sequence[Ranking], limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key. A contribution's weight includes the confidence."""
        sure = 1 - self.min_confidence
        return _combine(
            (
                (hit.key, (ranking.leg, rank, hit.score, weight, weight / (self.k + rank)))
                for ranking in sorted(rankings, key=_by_leg)
                for rank, (hit, standing) in enumerate(self._standings(ranking.hits), start=1)
                for weight in (ranking.weight * (self.min_confidence + sure * standing),)
            ),
            limit,
        )

    def _standings(self, hits: Sequence[Hit]) -> Iterable[tuple[Hit, float]]:
        """Pair each hit with how high it stands over its pool: 0 at its end, at most 1, the same at any scale."""
        if not hits:
            return ()
        best, last = hits[0].score, hits[: self.pool][-1].score
        floor = last if len(hits) >= self.pool else min(0.0, last)
        span = max(abs(best), best - floor)  # a cosine may be negative: then the distance itself is the scale
        return ((hit, max(hit.score - floor, 0.0) / span if span > 0 else 1.0) for hit in hits)


@frozen
class WeightedFusion:
    """Score a key by the weighted mean of its scores, each leg's scaled to 0..1 by its own range.

    Min-max convex combination (Bruch, Gai and Ingber, *An Analysis of Fusion Functions for Hybrid
    Retrieval*, TOIS 2023). The range of a leg is that of the hits it fetched, ``multiplier`` times the
    limit; the worst of them counts 0, a leg with one distinct score counts 1, and a key that a leg did not find gets
    nothing from it. Weights are divided by their sum, so a score lies in 0..1.
    """

    multiplier: int = field(default=4, validator=validators.ge(1))

    def depth(self, limit: int, /) -> int:
        """Return ``multiplier`` times ``limit``: the range should not hang on the last hit shown."""
        return self.multiplier * limit

    def fuse(self, rankings: Sequence[Ranking], limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key."""
        # fsum: the same total, whatever order the legs come in
        total = math.fsum(ranking.weight for ranking in rankings if ranking.hits) or 1.0
        return _combine(
            (
                (hit.key, (ranking.leg, rank, hit.score, weight, weight * scaled))
                for ranking in sorted(rankings, key=_by_leg)
                for weight in (ranking.weight / total,)
                for rank, (hit, scaled) in enumerate(_scaled(ranking.hits), start=1)
            ),
            limit,
        )


def _scaled(hits: Sequence[Hit]) -> Iterable[tuple[Hit, float]]:
    """Pair each hit with its score scaled to 0..1."""
    if not hits:
        return ()
    low, high = min(hit.score for hit in hits), max(hit.score for hit in hits)
    span = high - low
    return ((hit, (hit.score - low) / span if span > 0 else 1.0) for hit in hits)


def _combine(parts: Iterable[tuple[int, _Part]], limit: int) -> Sequence[Hit]:
    """Add up what each key has from the legs, which come in order of name; explain those that are returned."""
    found: dict[int, list[_Part]] = {}
    for key, part in parts:
        found.setdefault(key, []).append(part)
    # As most have one part, since legs seldom agree, it is added to nothing.
    scores = [(-sum([part[_VALUE] for part in own]) if own[1:] else -own[0][_VALUE], key) for key, own in found.items()]
    scores.sort()
    return [Hit(key, -score, tuple([Contribution(*part) for part in found[key]])) for score, key in scores[:limit]]


_by_leg = attrgetter("leg")
