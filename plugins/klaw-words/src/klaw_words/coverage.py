"""The coverage of a question by a chunk: a relevance that is comparable between questions, unlike BM25.

Half of it is the share of the question's informative words that the chunk contains, weighted by their inverse document
frequency. The other half is the BM25 score, divided by the score of a chunk that is full of these words. The share of
the question's word pairs that the chunk contains side by side is added, and counts less if the chunk contains few of
the words. A word that no chunk contains has the largest weight, so a question about something that is not in the index
has a low coverage in every chunk. A guessed word, which only starts like the word in the question, counts half.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import log, sqrt
from typing import Protocol

from klaw_words.query import Term

# BM25's k1 + 1: the score of a chunk that contains only one term, in units of the term's inverse document frequency.
_FULL = 2.2
# The coverage that is added if the chunk contains all word pairs of the question.
_SIDE_BY_SIDE = 0.3
# A smaller index counts as one with this number of chunks: by its own frequencies, a word that is in none of two chunks
# would weigh ten times as much as one that is in both. Measured in memories of 1 to 50 chunks (docs/decisions/0031).
_FEWEST_ROWS = 30


class Plan(Protocol):
    """The terms of a question."""

    @property
    def informative(self) -> Mapping[Term, float]:
        """Return the informative terms in order, each with its certainty: 0 if no chunk contains it."""

    @property
    def pairs(self) -> tuple[Term, ...]:
        """Return the phrases of two adjacent words."""


class Holders(Protocol):
    """Answers which chunks contain which terms."""

    @property
    def rows(self) -> int:
        """Return the number of chunks."""

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterable[tuple[int, Collection[int]]]:
        """Return for each term the number of chunks that contain it, and those among the ascending ``keys``."""


def cover(plan: Plan, holders: Holders, scores: Mapping[int, float], /) -> dict[int, float]:
    """Return the coverage from 0 to 1 for each key of ``scores``, which are BM25 scores."""
    keys = sorted(scores)
    if not keys or not plan.informative:
        return {}
    certainties = list(plan.informative.values())
    held = [term for term, certainty in plan.informative.items() if certainty]
    counted = iter(holders.held_by([*held, *plan.pairs], keys))
    found = [next(counted) if certainty else (0, ()) for certainty in certainties]
    weights, chunks = _weigh(found, holders.rows)
    _join_grams(list(plan.informative), weights, chunks)
    asked = list(weights)
    for place, certainty in enumerate(certainties):
        if 0 < certainty < 1:  # a guessed word: the word in the question is in no chunk
            asked[place] = _weight(0, holders.rows)
            weights[place] *= certainty
    total = sum(asked)
    words = _shares(keys, weights, chunks, total)
    weights, chunks = _weigh(list(counted), holders.rows)
    pairs = _shares(keys, weights, chunks, sum(weights))
    full = _FULL * total
    covered: dict[int, float] = {}
    for key, share in words.items():  # without `min`, whose calls take a tenth of this function's time
        reached = scores[key] / full
        # The minimum, because without any informative word the BM25 score comes from uninformative words.
        best = share if share < reached else reached  # noqa: FURB136
        value = 0.5 * (share + best) + _SIDE_BY_SIDE * pairs[key] * sqrt(share)
        covered[key] = value if value < 1.0 else 1.0  # noqa: FURB136
    return covered


def _weigh(found: Sequence[tuple[int, Collection[int]]], rows: int) -> tuple[list[float], list[Collection[int]]]:
    """Return each term's inverse document frequency, which is above 0, and the keys that contain the term."""
    return [_weight(count, rows) for count, _ in found], [held for _, held in found]


def _weight(count: int, rows: int) -> float:
    return log(1 + (max(rows, _FEWEST_ROWS) - count + 0.5) / (count + 0.5))


def _shares(
    keys: Sequence[int], weights: Sequence[float], chunks: Sequence[Collection[int]], total: float
) -> dict[int, float]:
    """Return the sum of the weights of each chunk's terms, as a share of ``total``."""
    shares = dict.fromkeys(keys, 0.0)
    for weight, held in zip(weights, chunks, strict=True):
        share = weight / total
        for key in held:
            shares[key] += share
    return shares


def _join_grams(terms: Sequence[Term], weights: list[float], chunks: list[Collection[int]]) -> None:
    """Count a pair of characters across a word boundary as found if both of its neighbours are found.

    In scripts without spaces a term is any two adjacent characters. A pair across a word boundary is accidental and
    must not weigh more than the words.
    """
    joins = [
        first.literal and second.literal and first.words[1:] == second.words[:-1] != ()
        for first, second in pairwise(terms)
    ]
    for place in range(1, len(terms) - 1):
        if joins[place - 1] and joins[place]:
            both = set(chunks[place - 1]).intersection(chunks[place + 1])
            chunks[place] = both.union(chunks[place])
            weights[place] = min(weights[place], max(weights[place - 1], weights[place + 1]))
