"""A fusion: a chunk gets the weight of each retriever that found it, divided by its rank there."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from attrs import field, frozen, validators

from klaw_core import Component, Contribution, Fusion, Hit, Ranking, hookimpl


@frozen
class SkeletonFusion:
    """Its fields are the keys next to ``type = "skeleton"``. ``pool`` is the number of hits of each retriever."""

    pool: int = field(default=50, validator=validators.ge(1))

    def depth(self, limit: int, /) -> int:
        """Return how many hits each retriever is asked for."""
        return max(limit, self.pool)

    def fuse(self, rankings: Sequence[Ranking], limit: int, /) -> Sequence[Hit]:
        """Return the best hits. The order of the retrievers does not matter, so they are sorted."""
        parts = defaultdict[int, list[Contribution]](list)
        for ranking in sorted(rankings, key=lambda ranking: ranking.retriever):
            for rank, hit in enumerate(ranking.hits, start=1):
                value = ranking.weight / rank
                parts[hit.key].append(Contribution(ranking.retriever, rank, hit.score, ranking.weight, value))
        hits = [Hit(key, sum(part.value for part in own), tuple(own)) for key, own in parts.items()]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[:limit]


@hookimpl
def klaw_fusions() -> Iterable[Component[SkeletonFusion, Fusion]]:
    """Yield the fusion; its options are the fusion itself."""
    yield Component("skeleton", SkeletonFusion, lambda options, _context: options, api=2)
