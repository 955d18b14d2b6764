"""Okapi BM25 as FTS5 computes it: find the best rows of a collection for a list of patterns.

A word that is in many rows adds little to a score. So words are added up from the rarest to the most frequent. Once
the remaining words cannot lift other rows above the best ones, only rows that can still be among the best are scored
(MaxScore: Turtle and Flood, Query evaluation: strategies and optimizations, 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.words.matching import Matcher
    from klaw_store_postgres.words.tokens import Pattern

# The constants of BM25 in FTS5, and its smallest IDF, for a term in half of the rows or more (SQLite's fts5_aux.c).
_K1, _B = 1.2, 0.75
_MIN_IDF = 1e-6
# Scoring single rows is faster than scoring all rows if they are less than one in _FEW.
_FEW = 16
# The number of rows from which the best scores are estimated.
_SAMPLE = 1 << 14
# The tolerance for rounding errors when sums are compared.
_TOLERANCE = 1 - 1e-9


@frozen(eq=False)
class Scored:
    """Ascending rows and their scores; shape (n,) each."""

    rows: NDArray[Any]
    scores: NDArray[np.float64]


@define(eq=False)
class Scorer:
    """Scores the rows of a matcher. ``count`` rows are not removed; ``mean_length`` is their mean number of terms."""

    matcher: Matcher
    count: int
    mean_length: float
    _norms: tuple[float, float] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._norms = _K1 * (1 - _B), _K1 * _B / self.mean_length

    def best(self, patterns: Sequence[Pattern], depth: int) -> Scored:
        """Return the best ``depth`` rows that match any pattern, and all rows with the score of the last of them."""
        weighed = sorted(((self._idf(pattern), place) for place, pattern in enumerate(patterns)), reverse=True)
        left = sum(idf for idf, _ in weighed) * (_K1 + 1)
        scores = np.zeros(len(self.matcher.reader.rows.keys))
        holds = np.zeros(len(scores), np.bool_)
        for done, (idf, place) in enumerate(weighed, start=1):
            held = self.matcher.held(patterns[place])
            left -= idf * (_K1 + 1)
            scores[held.rows] += self._added(idf, held.rows, held.frequencies)
            holds[held.rows] = True
            if done < len(weighed):
                least = (_nth_best(scores, held.rows, depth) - left) * _TOLERANCE
                rows = np.flatnonzero(scores >= least) if least > 0 else held.rows
                if len(rows) * _FEW < len(scores) and least > 0:
                    rest = [(idf, patterns[place]) for idf, place in weighed[done:]]
                    return _top(self._finish(rows, scores[rows], rest), depth)
        least = _nth_best(scores, np.flatnonzero(holds), depth)
        rows = np.flatnonzero((scores >= least) & holds)
        return _top(Scored(rows, scores[rows]), depth)

    def among(self, patterns: Sequence[Pattern], rows: NDArray[Any], depth: int) -> Scored:
        """Return the best of these ascending, not removed rows, as :meth:`best` does."""
        holds, scores = np.zeros(len(rows), np.bool_), np.zeros(len(rows))
        for pattern in patterns:
            often = self.matcher.frequencies_at(pattern, rows)
            held = often >= 0
            scores[held] += self._added(self._idf(pattern), rows[held], often[held])
            holds |= held
        return _top(Scored(rows[holds], scores[holds]), depth)

    def _finish(self, rows: NDArray[Any], scores: NDArray[np.float64], rest: Sequence[tuple[float, Pattern]]) -> Scored:
        """Add the scores of the remaining patterns to the scores of rows."""
        for idf, pattern in rest:
            often = self.matcher.frequencies_at(pattern, rows)
            held = often >= 0
            scores[held] += self._added(idf, rows[held], often[held])
        return Scored(rows, scores)

    def _added(self, idf: float, rows: NDArray[Any], frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the contribution of a pattern to the scores of rows, from their numbers of matches."""
        shortest, slope = self._norms
        norms = self.matcher.reader.rows.lengths[rows].astype(np.float64)
        norms *= slope
        norms += shortest
        norms += frequencies
        added: NDArray[np.float64] = np.divide(frequencies, norms, out=norms)
        added *= idf * (_K1 + 1)
        return added

    def _idf(self, pattern: Pattern) -> float:
        holding = self.matcher.count(pattern)
        idf = log((self.count - holding + 0.5) / (holding + 0.5))
        return idf if idf > 0 else _MIN_IDF


def _nth_best(scores: NDArray[np.float64], rows: NDArray[Any], number: int) -> float:
    """Return a score that at least ``number`` of these rows reach, from a sample; 0 if the sample is smaller."""
    some = scores[rows[:: len(rows) // _SAMPLE + 1]]
    return float(np.partition(some, len(some) - number)[len(some) - number]) if len(some) >= number else 0.0


def _top(found: Scored, depth: int) -> Scored:
    """Return the best ``depth`` rows and all rows with the score of the last one; the caller orders ties by key."""
    if len(found.rows) <= depth:
        return found
    good = found.scores >= np.partition(found.scores, len(found.rows) - depth)[len(found.rows) - depth]
    return Scored(found.rows[good], found.scores[good])
