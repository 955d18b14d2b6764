"""The stage ``importance``: weights results by source."""

from collections.abc import Sequence

from attrs import field, frozen

from klaw_core import Candidate, Query, RerankScore, StoredChunk
from klaw_rerank_basic.options import ImportanceOptions
from klaw_rerank_basic.score_weights import is_marked, weigh


@frozen
class Importance:
    """Multiplies each score by its chunk's factor; raw is the factor."""

    options: ImportanceOptions = field(factory=ImportanceOptions)

    needs_vectors = False

    def rerank(self, _query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore]:
        """Return at most ``limit`` scores, best first, ties in the order given."""
        factors = [self._factor(candidate.stored) for candidate in candidates]
        return weigh(zip(candidates, factors, factors, strict=True), limit)

    def _factor(self, stored: StoredChunk) -> float:
        meant = [mark for mark in self.options.factors if is_marked(stored, mark)]
        return self.options.factors[max(meant, key=lambda mark: ("/" in mark, len(mark)))] if meant else 1.0
