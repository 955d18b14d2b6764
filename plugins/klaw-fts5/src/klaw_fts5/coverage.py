"""How much of what a question asks for a chunk holds: a number that compares between questions, as BM25 does not.

Half of it is the share of the question's informative words that the chunk holds, each weighed by its inverse document
frequency; the other half is BM25, over what a chunk could reach that is full of all of them. To this comes the share
of the question's neighbouring words that the chunk holds side by side. A word that no chunk holds weighs the most: a
question about what the index never mentions finds little of itself in any chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import log
from typing import Protocol

from klaw_core.words.query import Term

# BM25's k1 + 1: what a term adds to a chunk that holds nothing else, in units of its inverse document frequency.
_FULL = 2.2
# What all of a question's neighbours count, in a chunk that holds them as they were asked.
_SIDE_BY_SIDE = 0.25


class Plan(Protocol):
    """What a question asks for."""

    @property
    def informative(self) -> Mapping[Term, bool]:
        """Return the terms that tell what is asked about, in order, and whether any chunk holds each."""

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
    held = [term for term, is_held in plan.informative.items() if is_held]
    counted = iter(holders.held_by([*held, *plan.pairs], keys))
    found = [next(counted) if is_held else (0, ()) for is_held in plan.informative.values()]
    weights, chunks = _weigh(found, holders.rows)
    _join_grams(list(plan.informative), weights, chunks)
    total = sum(weights)
    words = _shares(keys, weights, chunks)
    pairs = _shares(keys, *_weigh(list(counted), holders.rows))
    return {
        key: min(1.0, 0.5 * (words[key] + scores[key] / (_FULL * total)) + _SIDE_BY_SIDE * pairs[key]) for key in keys
    }


def _weigh(found: Sequence[tuple[int, Collection[int]]], rows: int) -> tuple[list[float], list[Collection[int]]]:
    """Return each term's inverse document frequency, above 0, and which of the keys hold it."""
    weights = [log(1 + (rows - count + 0.5) / (count + 0.5)) for count, _ in found]
    return weights, [held for _, held in found]


def _shares(keys: Sequence[int], weights: Sequence[float], chunks: Sequence[Collection[int]]) -> dict[int, float]:
    """Return which part of the weights each chunk holds."""
    shares = dict.fromkeys(keys, 0.0)
    total = sum(weights)
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
