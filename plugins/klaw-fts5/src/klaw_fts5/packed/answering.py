"""Answers from packed postings: the very scores of FTS5, at the price of the postings of the words that tell."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import log
from typing import cast

import apsw
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_fts5.exact import Exact, Weights, everyday_from
from klaw_fts5.packed.blocks import Block, Listed, read_own, read_postings
from klaw_fts5.packed.cache import K1, B, Cache, View
from klaw_fts5.packed.errors import DamagedError
from klaw_fts5.packed.postings import COLUMNS, Positions, unmix
from klaw_fts5.packed.sequences import read_sequences
from klaw_fts5.packed.spelling import Tokenizer, term_number
from klaw_fts5.packed.state import State
from klaw_fts5.query import Term, render
from klaw_fts5.sql import Statements

# FTS5's, for a term that stands in more than half of the rows.
_LEAST_IDF = 1e-6
# Phrases and open-ended words are FTS5's to find. Beyond so many rows it had better answer altogether.
_MOST_OTHERS = 20_000
# Of the rows that would hold two words if those were strewn at random, so many hold them side by side.
_SIDE_BY_SIDE = 0.1
# One row of so many is looked at to guess how high the best scores are.
_SAMPLE = 64


@frozen(eq=False)
class _Holders:
    """Who holds a term: postings in each block of the view, None where there are none; how many rows live."""

    lists: tuple[Listed | None, ...]
    living: int


@frozen(eq=False)
class Packed:
    """Asks the packed form, and FTS5 for what it does not know: phrases and the beginnings of words."""

    connection: apsw.Connection
    sql: Statements
    weights: Weights
    cache: Cache
    state: State
    view: View
    _tokenize: Tokenizer = field(init=False)
    _known: dict[int, _Holders] = field(init=False, factory=dict)
    _own: dict[int, dict[int, tuple[int, int]]] = field(init=False, factory=dict)
    _numbers: dict[str, int | None] = field(init=False, factory=dict)

    @_tokenize.default
    def _make_tokenizer(self) -> Tokenizer:
        return Tokenizer(self.connection)

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk holds a term."""
        if not term.prefix:
            numbers = [self._number(word) for word in term.words]
            if any(number is not None and not self._has(number) for number in numbers):
                return False
            if len(term.words) == 1 and numbers[0] is not None:
                return True
        return self._count(term, 1) > 0

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether half of the chunks hold a term: no phrase is, of which one word is not."""
        enough = everyday_from(self.view.rows)
        if enough > self.view.rows:
            return False
        if not term.prefix:
            numbers = [self._number(word) for word in term.words]
            if any(number is not None and not self._holds(number, enough) for number in numbers):
                return False
            if len(term.words) == 1 and numbers[0] is not None:
                return True
        return self._count(term, enough) >= enough

    def best(self, terms: Sequence[Term], depth: int, within: Keys | None) -> dict[int, float]:
        """Return the scores of the best chunks for any of the terms, as FTS5 computes them."""
        strings = {(term.words, term.prefix): self._word(term) for term in terms}
        words = [number for number in strings.values() if number is not None]
        others = [term for term in terms if strings[term.words, term.prefix] is None]
        if not words or not self.view.rows:
            return self._exact.best(terms, depth, within)
        found: dict[int, float] = {}
        if others:
            found = self._exact.best(others, _MOST_OTHERS, None)
            if len(found) == _MOST_OTHERS:
                return self._exact.best(terms, depth, within)
        scores = [self._scores(place, words) for place in range(len(self.view.blocks))]
        if found:
            self._add(scores, found)
        if within is not None:
            self._restrict(scores, within)
        return self._top(scores, depth)

    def pairs(self, pairs: Sequence[Term], found: Sequence[int]) -> dict[int, float]:
        """Return the scores of those of the found chunks that hold any of these phrases.

        They are BM25 but for the phrase's document frequency, which is estimated: counting it would cost more than
        everything else.
        """
        numbered = [[self._number(word) for word in pair.words] for pair in pairs]
        wanted = [[number for number in numbers if number is not None] for numbers in numbered if None not in numbers]
        read = self.connection.execute(self.sql.packed.sequences, (apsw.carray(array("q", found)),)).fetchall()
        rows = cast("list[tuple[int, bytes]]", read)
        if len(rows) != len(found):
            raise DamagedError("some rows have no sequence")
        sequences = read_sequences([data for _, data in rows])
        weights = np.array((self.weights.text, self.weights.heading, self.weights.context))
        norms = K1 * (1 - B + B * sequences.lengths / self.view.average)
        scores = np.zeros(len(rows))
        for numbers in wanted:
            cells = sequences.find(numbers)
            often = np.bincount(cells // COLUMNS, weights[cells % COLUMNS], len(rows))
            holding = int(np.count_nonzero(often))
            if holding:
                idf = _idf(self.view.rows, self._estimate(numbers, holding))
                scores += idf * (often * (K1 + 1) / (often + norms))
        return {key: score for (key, _), score in zip(rows, scores.tolist(), strict=True) if score}

    def _estimate(self, numbers: Sequence[int], found: int) -> float:
        """Return about how many rows hold a phrase of which ``found`` were seen: a tenth of those that hold both words.

        That is, if words were strewn at random. Of ways that look no further this one left the order most as it was.
        """
        rows, both = self.view.rows, 1.0
        for number in numbers:
            both *= (rows if self._holds(number, everyday_from(rows)) else self._holders(number).living) / rows
        return max(found, _SIDE_BY_SIDE * both * rows)

    @property
    def _exact(self) -> Exact:
        return Exact(self.connection, self.sql, self.weights, self.view.rows)

    def _count(self, term: Term, limit: int) -> int:
        return int(self.connection.execute(self.sql.matches, (render((term,)), limit)).get)

    def _word(self, term: Term) -> int | None:
        """Return the number of a term that is one whole word, None for any other."""
        return None if term.prefix or len(term.words) > 1 else self._number(term.words[0])

    def _number(self, word: str) -> int | None:
        """Return the number under which a word is held; None if the tokenizer does not make one word of it."""
        if word not in self._numbers:
            terms = self._tokenize(word.encode())
            self._numbers[word] = term_number(terms[0]) if len(terms) == 1 else None
        return self._numbers[word]

    def _has(self, number: int) -> bool:
        return self._holds(number, 1)

    def _holds(self, number: int, enough: int) -> bool:
        """Return whether so many living rows hold a term. Of frequent terms only the counts are read for it."""
        if number not in self._known and number not in self._own:
            self._own[number] = read_own(self.connection, self.sql.packed, self.view.blocks, number)
        if number in self._own and sum(count for _, count in self._own[number].values()) - self.view.dead >= enough:
            return True
        return self._holders(number).living >= enough

    def _holders(self, number: int) -> _Holders:
        """Return who holds a term, read once a query."""
        if number not in self._known:
            if number not in self._own:
                self._own[number] = read_own(self.connection, self.sql.packed, self.view.blocks, number)
            blocks = self.view.blocks
            lists = read_postings(self.connection, self.sql.packed, blocks, number, self._own[number])
            living = sum(_living(block, held) for block, held in zip(blocks, lists, strict=True) if held is not None)
            self._known[number] = _Holders(lists, living)
        return self._known[number]

    def _scores(self, place: int, words: Sequence[int]) -> NDArray[np.float64]:
        """Return BM25 of every row of a block, in the order of operations in which FTS5 computes it."""
        block = self.view.blocks[place]
        norms = self.cache.norms(self.connection, self.sql.packed, self.state, self.view, block)
        weights = self._weights_of_codes(block)
        scores = np.zeros(block.rows)
        upper = weights * (K1 + 1)
        for number in words:
            holders = self._holders(number)
            held = holders.lists[place]
            if held is not None:
                value, below = upper.take(held.codes), weights.take(held.codes)
                below += norms.take(held.positions)
                value /= below
                value *= _idf(self.view.rows, holders.living)
                scores[held.positions] += value
        scores[block.dead] = 0.0
        return scores

    def _weights_of_codes(self, block: Block) -> NDArray[np.float64]:
        """Return the weighted frequency for each code of a block; all 256, so that no code is out of range."""
        text, heading, context = unmix(self.cache.rows(self.connection, self.sql.packed, block).mixes)
        weights = np.zeros(256)
        weights[: len(text)] = (
            text * self.weights.text + heading * self.weights.heading + context * self.weights.context
        )
        return weights

    def _add(self, scores: Sequence[NDArray[np.float64]], found: dict[int, float]) -> None:
        """Add what FTS5 scored to what was scored here."""
        keys = np.fromiter(found, dtype=np.int64)
        values = np.fromiter(found.values(), dtype=np.float64)
        order = np.argsort(keys)
        keys, values = keys[order], values[order]
        for block, some in zip(self.view.blocks, scores, strict=True):
            places, chosen = self._places(block, keys)
            some[places] += values[chosen]
            some[block.dead] = 0.0

    def _restrict(self, scores: Sequence[NDArray[np.float64]], within: Keys) -> None:
        """Leave only the scores of keys that may be found."""
        for block, some in zip(self.view.blocks, scores, strict=True):
            places, _ = self._places(block, within)
            kept = some[places]
            some[:] = 0.0
            some[places] = kept

    def _places(self, block: Block, keys: Keys) -> tuple[Positions, NDArray[np.int64]]:
        """Return the rows of a block that have one of these keys, and which key each has."""
        low, high = np.searchsorted(keys, (block.first, block.last + 1))
        inside = keys[low:high]
        held = self.cache.rows(self.connection, self.sql.packed, block).keys
        places = np.searchsorted(held, inside) if block.last - block.first + 1 > block.rows else inside - block.first
        right = held[places] == inside
        return places[right], np.flatnonzero(right) + low

    def _top(self, scores: Sequence[NDArray[np.float64]], depth: int) -> dict[int, float]:
        """Return the best scores above nothing, by key."""
        above = _threshold(scores, depth)
        keys, values = [], []
        for block, some in zip(self.view.blocks, scores, strict=True):
            places = np.flatnonzero(some > above)
            if len(places):
                values.append(some[places])
                keys.append(self.cache.rows(self.connection, self.sql.packed, block).keys[places])
        if not keys:
            return {}
        found, value = np.concatenate(keys), np.concatenate(values)
        if len(value) > depth:
            enough = value >= np.partition(value, len(value) - depth)[len(value) - depth]
            found, value = found[enough], value[enough]
        order = np.lexsort((found, -value))[:depth]
        return dict(zip(found[order].tolist(), value[order].tolist(), strict=True))


def _idf(rows: int, holders: float) -> float:
    """Return FTS5's inverse document frequency (https://sqlite.org/fts5.html#the_bm25_function)."""
    idf = log((rows - holders + 0.5) / (holders + 0.5))
    return idf if idf > 0 else _LEAST_IDF


def _living(block: Block, held: Listed) -> int:
    return int(block.living()[held.positions][held.codes > 0].sum()) if len(block.dead) else held.count


def _threshold(scores: Sequence[NDArray[np.float64]], depth: int) -> float:
    """Return a score that at least ``depth`` rows exceed, or 0: guessed from a sample, then tried."""
    sample = np.concatenate([some[::_SAMPLE] for some in scores])
    rank = 3 * depth // (2 * _SAMPLE) + 8
    if len(sample) <= rank:
        return 0.0
    guess = float(np.partition(sample, len(sample) - rank)[len(sample) - rank])
    enough = guess > 0 and sum(int(np.count_nonzero(some > guess)) for some in scores) >= depth
    return guess if enough else 0.0
