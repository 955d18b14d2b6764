"""The stage ``importance``: weights results by source."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from klaw_core import Candidate, Query, RerankScore, StoredChunk
from klaw_rerank_basic.score_weights import is_marked, weigh

_MAX_FACTOR = 1000.0


def _usable(_instance: object, attribute: Any, factors: Mapping[str, float]) -> None:
    for mark, factor in factors.items():
        if not 0 <= factor <= _MAX_FACTOR:  # also true of NaN
            raise ValueError(f"{attribute.name}: expected a number from 0 to {_MAX_FACTOR:g} for {mark!r}")


@frozen
class ImportanceOptions:
    """Options of the stage ``importance``.

    ``factors`` maps a source label (``MEMORY.md``, ``manual``) or the beginning of a path (``notes/archive/``) to a
    factor for the score. A path takes precedence over a label, and a longer path over a shorter one. Other chunks
    have the factor 1.
    """

    factors: Mapping[str, float] = field(
        factory=lambda: {"MEMORY.md": 1.2, "memory.md": 1.2, "manual": 1.2}, validator=_usable
    )


@frozen
class Importance:
    """Multiplies each score by its chunk's factor; raw is the factor."""

    options: ImportanceOptions = ImportanceOptions()

    needs_vectors = False

    def rerank(self, _query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore]:
        """Return at most ``limit`` scores, best first, ties in the order given."""
        factors = [self._factor(candidate.stored) for candidate in candidates]
        return weigh(zip(candidates, factors, factors, strict=True), limit)

    def _factor(self, stored: StoredChunk) -> float:
        meant = [mark for mark in self.options.factors if is_marked(stored, mark)]
        return self.options.factors[max(meant, key=lambda mark: ("/" in mark, len(mark)))] if meant else 1.0
