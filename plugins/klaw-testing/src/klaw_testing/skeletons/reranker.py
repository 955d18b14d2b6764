"""A reranker: chunks whose heading has a word of the question come first."""

from collections.abc import Iterable, Sequence

from attrs import field, frozen, validators

from klaw_core import Candidate, Component, Query, Reranker, RerankScore, hookimpl


@frozen
class SkeletonReranker:
    """Its fields are the keys next to ``type = "skeleton"``. ``bonus`` is added for each word, as a share."""

    bonus: float = field(default=0.5, validator=validators.ge(0.0))
    needs_vectors = False

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        """Return the new scores, best first; candidates without a score come last, in their present order."""
        words = set(query.text.lower().split())
        scored = [
            RerankScore(candidate.key, candidate.hit.score * (1 + self.bonus * len(words & _heading(candidate))))
            for candidate in candidates
        ]
        return sorted(scored, key=lambda item: (-item.score, item.key))[:limit]


def _heading(candidate: Candidate) -> set[str]:
    return set(" ".join(candidate.stored.chunk.heading).lower().split())


@hookimpl
def klaw_rerankers() -> Iterable[Component[SkeletonReranker, Reranker]]:
    """Yield the reranker; its options are the reranker itself."""
    yield Component("skeleton", SkeletonReranker, lambda options, _context: options, api=2)
