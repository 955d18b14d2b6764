"""Okapi BM25 as FTS5 computes it, for indexes that store their postings in immutable parts.

An index implements the five calls of :class:`ScoredSearch`: it finds the rows of one term and their scores, in a format
of its own. The search adds these up, and counts, filters and orders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise
from math import log
from typing import Any, Self, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_words.query import Term
from klaw_words.searching import Preference, Weights, everyday_from

#: The parameters of BM25 in FTS5 (https://sqlite.org/fts5.html#the_bm25_function).
K1, B = 1.2, 0.75
# FTS5's inverse document frequency of a term in more than half of the rows.
_MIN_IDF = 1e-6
#: A part of an index: the ascending keys of its rows, their lengths in tokens, and its dead rows.
Part: TypeAlias = tuple[Keys, NDArray[Any], NDArray[Any]]
# One of 64 rows is in the sample from which a threshold for the best scores is estimated.
_SAMPLE = 64


def idf(rows: int, holders: float) -> float:
    """Return the inverse document frequency of a term that is in ``holders`` of ``rows`` rows."""
    found = log((rows - holders + 0.5) / (holders + 0.5))
    return found if found > 0 else _MIN_IDF


def merge_rows(parts: Sequence[Part]) -> tuple[Keys, NDArray[Any], list[NDArray[np.int64]]]:
    """Return the keys and lengths of all live rows, by key, and the new row of each part's old ones; -1 if dead."""
    living = [np.ones(len(keys), np.bool_) for keys, _, _ in parts]
    for alive, (_, _, dead) in zip(living, parts, strict=True):
        alive[dead] = False
    keys = np.concatenate([some[alive] for (some, _, _), alive in zip(parts, living, strict=True)])
    lengths = np.concatenate([some[alive] for (_, some, _), alive in zip(parts, living, strict=True)])
    order = np.argsort(keys, kind="stable")
    places = np.full(sum(map(len, living)), -1, np.int64)
    places[np.flatnonzero(np.concatenate(living))[order]] = np.arange(len(order))
    return keys[order], lengths[order], np.split(places, np.cumsum([len(alive) for alive in living])[:-1])


@frozen(eq=False)
class TermScores:
    """A term's live rows, ascending, and the term's score in each; both of shape (n,)."""

    rows: NDArray[np.int32]
    values: NDArray[np.float64]

    @property
    def nbytes(self) -> int:
        """Return the approximate size in bytes."""
        return 1024 + self.rows.nbytes + self.values.nbytes

    def find(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return for each of these rows its index in ``self.rows``, and whether it is there."""
        if not len(self.rows):
            return np.zeros(len(rows), np.intp), np.zeros(len(rows), np.bool_)
        places = self.rows.searchsorted(rows)
        return places, self.rows.take(places, mode="clip") == rows


@frozen(eq=False)
class View:
    """The rows of all parts of an index, one part after the other, in one of its states.

    ``starts`` has the first row of each part, and the number of all rows; the keys of a part ascend. ``rows`` is the
    number of live rows; ``alive`` says which are live, or is None if all are. ``keys`` and ``norms`` have shape (n,); a
    norm is the part of BM25's denominator that depends on the row's length.
    """

    starts: tuple[int, ...]
    rows: int
    alive: NDArray[np.bool_] | None
    keys: Keys
    norms: NDArray[np.float64]

    @classmethod
    def of(cls, parts: Sequence[Part], tokens: int, *more: object) -> Self:
        """Return the view of parts, whose live rows have ``tokens``."""
        starts = tuple(accumulate((len(keys) for keys, _, _ in parts), initial=0))
        alive = np.ones(starts[-1], dtype=np.bool_)
        for (start, end), (_, _, dead) in zip(pairwise(starts), parts, strict=True):
            alive[start:end][dead] = False
        rows = int(np.count_nonzero(alive))
        keys = np.concatenate([np.empty(0, np.int64), *(some for some, _, _ in parts)])
        lengths = np.concatenate([np.empty(0, np.uint16), *(some for _, some, _ in parts)])
        norms = np.asarray(K1 * (1 - B + B * lengths / max(tokens / max(rows, 1), 1e-9)), dtype=np.float64)
        return cls(starts, rows, None if rows == len(keys) else alive, keys, norms, *more)

    def find(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows, live or dead, with these ascending keys, and the index of each row's key in ``keys``."""
        rows, chosen = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for start, end in pairwise(self.starts):
            held = self.keys[start:end]
            low, high = np.searchsorted(keys, (held[0], held[-1] + 1))
            inside = keys[low:high]
            gaps = held[-1] - held[0] + 1 > len(held)
            places = np.searchsorted(held, inside) if gaps else inside - held[0]
            right = np.flatnonzero(held[places] == inside)
            rows.append(places[right] + start)
            chosen.append(right + low)
        return np.concatenate(rows), np.concatenate(chosen)


@frozen(eq=False)
class TopRows:
    """Rows of a view, ascending, with their keys and scores; all of shape (n,)."""

    rows: NDArray[np.intp]
    keys: Keys
    scores: NDArray[np.float64]

    def where(self, chosen: NDArray[Any]) -> TopRows:
        """Return some of the rows, by index or by mask."""
        return TopRows(self.rows[chosen], self.keys[chosen], self.scores[chosen])

    def best(self, depth: int, *, ties: bool = False) -> TopRows:
        """Return the best ``depth`` rows, ties by key; with ``ties`` also all rows with the score of the last one."""
        if len(self.rows) <= depth:
            return self
        least = np.partition(self.scores, len(self.rows) - depth)[len(self.rows) - depth]
        enough = np.flatnonzero(self.scores >= least)
        if len(enough) > depth and not ties:
            enough = np.sort(enough[np.lexsort((self.keys[enough], -self.scores[enough]))[:depth]])
        return self.where(enough)


@frozen(eq=False)
class ScoredSearch(ABC):
    """A search over the postings of one state of an index. Results are kept for the questions that follow in it."""

    _best_rows: dict[int, int] = field(init=False, factory=dict)

    @property
    @abstractmethod
    def view(self) -> View:
        """Return the rows."""

    @property
    @abstractmethod
    def weights(self) -> Weights:
        """Return the weights of the columns."""

    @abstractmethod
    def expect(self, terms: Sequence[Term], /) -> None:
        """Look up these terms in a few steps, before single ones are asked for."""

    @abstractmethod
    def read(self, terms: Sequence[Term], /) -> None:
        """Read the postings of these terms in one step, before their scores are asked for."""

    @abstractmethod
    def about(self, term: Term, /) -> int:
        """Return approximately how many chunks contain a term, enough to tell which are rare."""

    @abstractmethod
    def holds(self, term: Term, enough: int, /) -> bool:
        """Return whether at least ``enough`` chunks contain a term; 1 or more."""

    @abstractmethod
    def scored(self, term: Term, /) -> TermScores:
        """Return the live rows of a term and their scores."""

    @property
    def rows(self) -> int:
        """Return the number of chunks."""
        return self.view.rows

    def holders(self, terms: Sequence[Term], /) -> list[int]:
        """Return approximately how many chunks contain each term."""
        return [self.about(term) for term in terms]

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk contains a term."""
        return self.holds(term, 1)

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether at least half of the chunks contain a term."""
        enough = everyday_from(self.rows)
        return enough <= self.rows and self.holds(term, enough)

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterator[tuple[int, Collection[int]]]:
        """Yield for each term the number of chunks that contain it, and those among the ascending ``keys``."""
        wanted = np.array(keys, dtype=np.int64)
        if self._best_rows.keys() >= set(keys):  # the keys are results of the last call of `best`
            rows = np.array([self._best_rows[key] for key in keys], dtype=np.int32)
        else:
            places, chosen = self.view.find(wanted)
            rows, wanted = places.astype(np.int32), wanted[chosen]
        for scored in map(self.scored, terms):  # their postings were read for the search
            yield len(scored.rows), wanted[scored.find(rows)[1]].tolist()

    def best(
        self, terms: Sequence[Term], depth: int, within: Keys | None = None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best ``depth`` chunks with any of the terms, ties ordered by key.

        ``within`` are the ascending keys to which the search is limited. Chunks with a preferred phrase score higher.
        """
        best = self.top(terms, depth, within)
        if preferred is not None and preferred.weight and len(best.rows):
            self.read(preferred.phrases)
            rows = best.rows.astype(np.int32)
            for scored in map(self.scored, preferred.phrases):
                places, found = scored.find(rows)
                best.scores[found] += preferred.weight * scored.values[places[found]]
        keys = best.keys.tolist()
        self._best_rows.update(zip(keys, best.rows.tolist(), strict=True))
        return dict(zip(keys, best.scores.tolist(), strict=True))

    def top(self, terms: Sequence[Term], depth: int, within: Keys | None, *, ties: bool = False) -> TopRows:
        """Return the best rows with any of the terms; with ``ties`` also all rows with the score of the last one."""
        distinct = tuple({(term.words, term.prefix): term for term in terms}.values())  # as in an FTS5 query
        self.read(distinct)
        scores = np.zeros(len(self.view.keys))
        found = [self.scored(term) for term in distinct]
        for scored in found:
            np.add.at(scores, scored.rows.astype(np.intp), scored.values)  # int32 takes 1.5 times as long
        allowed = slice(None) if within is None else self.view.find(within)[0]
        if within is not None:
            kept = scores[allowed]
            scores[:] = 0.0
            scores[allowed] = kept
        rows = np.flatnonzero(scores > _threshold(scores, depth))
        if len(rows) < depth:
            rows = np.flatnonzero(scores > 0.0)
        if len(rows) < depth and not all((self.weights.text, self.weights.heading, self.weights.context)):
            holds = np.zeros(len(scores), np.bool_)  # a match with a weight of 0 has a score of 0
            for scored in found:
                holds[scored.rows] = True
            rows = np.arange(len(scores))[allowed]
            rows = np.sort(rows[holds[rows]])
        return TopRows(rows, self.view.keys[rows], scores[rows]).best(depth, ties=ties)


def _threshold(scores: NDArray[np.float64], depth: int) -> float:
    """Estimate from a sample a score that about 1.5 times ``depth`` rows exceed; 0 if there are few rows."""
    sample = scores[::_SAMPLE]
    rank = 3 * depth // (2 * _SAMPLE) + 8
    if len(sample) <= rank:
        return 0.0
    return float(np.partition(sample, len(sample) - rank)[len(sample) - rank])
