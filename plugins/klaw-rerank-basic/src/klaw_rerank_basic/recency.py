"""The stage ``recency``: older chunks get a lower score."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from attrs import field, frozen

from klaw_core import Candidate, Query, RerankScore, StoredChunk
from klaw_rerank_basic.options import RecencyOptions
from klaw_rerank_basic.score_weights import is_marked, weigh

_SECONDS_A_DAY = 86_400.0


def _now() -> datetime:
    return datetime.now(UTC)


@frozen
class Recency:
    """Multiplies each score by ``floor + (1 - floor) * 0.5 ** (age / half_life)``; raw is the age in days.

    The exponential forgetting of Li and Croft, *Time-Based Language Models* (CIKM 2003), bounded below so that
    age modulates relevance and never replaces it. A date in the future counts as today.
    """

    options: RecencyOptions = field(factory=RecencyOptions)
    now: Callable[[], datetime] = _now

    needs_vectors = False

    def rerank(self, _query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore]:
        """Return at most ``limit`` scores, best first, ties in the order given."""
        now = self.now()
        ages = [self._age_days(candidate.stored, now) for candidate in candidates]
        return weigh(zip(candidates, map(self.factor, ages), ages, strict=True), limit)

    def factor(self, age_days: float) -> float:
        """Return the factor for a score: 1 for today, falling to ``floor``."""
        floor = self.options.floor
        return floor + (1.0 - floor) * math.exp2(-age_days / self.options.half_life_days)

    def _age_days(self, stored: StoredChunk, now: datetime) -> float:
        if any(is_marked(stored, mark) for mark in self.options.evergreen):
            return 0.0
        return max(0.0, (now - stored.created_at).total_seconds() / _SECONDS_A_DAY)
