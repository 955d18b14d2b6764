"""How much of what a question asks for a chunk holds: a number that compares between questions, as BM25 does not.

Half of it is the share of the question's informative words that the chunk holds, each weighed by its inverse document
frequency; the other half is BM25, over what a chunk could reach that is full of all of them. To this comes the share
of the question's neighbouring words that the chunk holds side by side; less where it holds few of its words. A word
that no chunk holds weighs the most: a question about what the index never mentions finds little of itself in any chunk.
What was only guessed (another word that begins like the one that was asked) counts half.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import log, sqrt
from typing import Protocol

from klaw_core.words.query import Term

# BM25's k1 + 1: what a term adds to a chunk that holds nothing else, in units of its inverse document frequency.
_FULL = 2.2
# What all of a question's neighbours count, in a chunk that holds them as they were asked.
_SIDE_BY_SIDE = 0.3


class Plan(Protocol):
    """What a question asks for."""

    @property
    def informative(self) -> Mapping[Term, float]:
        """Return the terms that tell what is asked about, in order, and how sure each is: 0 if no chunk holds it."""

    @property
    def pairs(self) -> tuple[Term, ...]:
        """Return the phrases of two neighbouring words."""


class Holders(Protocol):
    """What is asked about the chunks."""

    @property
    def rows(self) -> int:
        """Return how many chunks there are."""

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterable[tuple[int, Collection[int]]]:
        """Return for each term how many chunks hold it, and which of these do. ``keys`` ascend."""


def cover(plan: Plan, holders: Holders, scores: Mapping[int, float], /) -> dict[int, float]:
    """Return for each key of ``scores``, which are BM25's, how much of the question its chunk holds: from 0 to 1."""
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
        if 0 < certainty < 1:  # what was asked for is in no chunk
            asked[place] = _weight(0, holders.rows)
            weights[place] *= certainty
    total = sum(asked)
    words = _shares(keys, weights, chunks, total)
    weights, chunks = _weigh(list(counted), holders.rows)
    pairs = _shares(keys, weights, chunks, sum(weights))
    full = _FULL * total
    covered: dict[int, float] = {}
    for key, share in words.items():  # without calls of min: they are a tenth of what a search spends on coverage
        reached = scores[key] / full
        # Where no chunk holds a telling word, BM25 is that of words which tell nothing.
        best = share if share < reached else reached  # noqa: FURB136
        value = 0.5 * (share + best) + _SIDE_BY_SIDE * pairs[key] * sqrt(share)
        covered[key] = value if value < 1.0 else 1.0  # noqa: FURB136
    return covered


def _weigh(found: Sequence[tuple[int, Collection[int]]], rows: int) -> tuple[list[float], list[Collection[int]]]:
    """Return each term's inverse document frequency, above 0, and which of the keys hold it."""
    return [_weight(count, rows) for count, _ in found], [held for _, held in found]


def _weight(count: int, rows: int) -> float:
    return log(1 + (rows - count + 0.5) / (count + 0.5))


def _shares(
    keys: Sequence[int], weights: Sequence[float], chunks: Sequence[Collection[int]], total: float
) -> dict[int, float]:
    """Return which part of ``total`` each chunk holds."""
    shares = dict.fromkeys(keys, 0.0)
    for weight, held in zip(weights, chunks, strict=True):
        share = weight / total
        for key in held:
            shares[key] += share
    return shares


def _join_grams(terms: Sequence[Term], weights: list[float], chunks: list[Collection[int]]) -> None:
    """Take two characters that no word joins for found where those before and those after are.

    In scripts without spaces a term is any two neighbours, and where one word ends and the next begins they stand
    together by chance: they say no more than the words do.
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
