"""Answers from packed postings: the very scores of FTS5, at the price of the postings of the words that tell."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import cast

import apsw
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_fts5.exact import Exact, Weights, everyday_from
from klaw_fts5.packed.blocks import Listed, Own, read_own, read_postings
from klaw_fts5.packed.cache import Cache, Held, Scored
from klaw_fts5.packed.errors import DamagedError
from klaw_fts5.packed.postings import COLUMNS, OWN
from klaw_fts5.packed.sequences import read_sequences
from klaw_fts5.packed.spelling import Tokenizer, term_number
from klaw_fts5.packed.state import State
from klaw_fts5.packed.view import K1, B, View
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
class Packed:
    """Asks the packed form, and FTS5 for what it does not know: phrases and the beginnings of words."""

    connection: apsw.Connection
    sql: Statements
    weights: Weights
    cache: Cache
    state: State
    view: View
    _tokenize: Tokenizer = field(init=False)
    _held: dict[int, Held] = field(init=False, factory=dict)
    _numbers: dict[str, int | None] = field(init=False, factory=dict)

    @_tokenize.default
    def _make_tokenizer(self) -> Tokenizer:
        return Tokenizer(self.connection)

    def expect(self, terms: Sequence[Term]) -> None:
        """Read at once what is going to be asked about these terms."""
        words = {word for term in terms if not term.prefix for word in term.words}
        numbers = [number for number in map(self._number, words) if number is not None]
        self._look_up(numbers)
        # Of a rare term nothing is known before its postings are.
        self._read([number for number in numbers if not self._held[number].least])

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk holds a term."""
        if not term.prefix:
            numbers = [self._number(word) for word in term.words]
            if any(number is not None and not self._holds(number, 1) for number in numbers):
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
        self._read(words)
        scores = np.zeros(len(self.view.keys))
        for number in words:  # one after the other, as FTS5 adds them up
            scored = self._scored(number)
            np.add.at(scores, scored.rows, scored.values)
        if found:
            self._add(scores, found)
        if within is not None:
            rows, _ = self.view.find(within)
            kept = scores[rows]
            scores[:] = 0.0
            scores[rows] = kept
        return self._top(scores, depth)

    def pairs(self, pairs: Sequence[Term], found: Sequence[int]) -> dict[int, float]:
        """Return the scores of those of the found chunks that hold any of these phrases.

        They are BM25 but for the phrase's document frequency, which is estimated: counting it would cost more than
        everything else.
        """
        numbered = [[self._number(word) for word in pair.words] for pair in pairs]
        wanted = [[number for number in numbers if number is not None] for numbers in numbered if None not in numbers]
        keys = apsw.carray(array("q", sorted(found)))
        read = self.connection.execute(self.sql.packed.sequences, (keys,)).fetchall()
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
            both *= (rows if self._holds(number, everyday_from(rows)) else len(self._scored(number).rows)) / rows
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

    def _holds(self, number: int, enough: int) -> bool:
        """Return whether so many living rows hold a term. Of frequent terms only the counts are read for it."""
        self._look_up((number,))
        held = self._held[number]
        if held.least < enough <= held.most:
            return len(self._scored(number).rows) >= enough
        return held.least >= enough

    @property
    def _scope(self) -> tuple[bytes, Weights]:
        return (self.state.stamp, self.weights)

    def _look_up(self, numbers: Collection[int]) -> None:
        """Learn how many rows hold each of these terms, as far as it can be said without their postings."""
        unknown = [number for number in numbers if number not in self._held]
        if not unknown:
            return
        self._held.update(self.cache.words(self._scope, unknown))
        unknown = [number for number in unknown if number not in self._held]
        if unknown:
            own = read_own(self.connection, self.sql.packed, self.view.blocks, unknown)
            self._keep({number: self._counted(held) for number, held in own.items()})

    def _counted(self, own: Own) -> Held:
        listed = sum(count for _, count in own.values())
        rare = sum(min(OWN, block.rows) for place, block in enumerate(self.view.blocks) if place not in own)
        return Held(max(listed - self.view.dead, 0), listed + rare, own)

    def _read(self, numbers: Iterable[int]) -> None:
        """Read the postings of those of these terms, which were looked up, that are not known yet."""
        own = {number: self._held[number].own for number in numbers if self._held[number].scored is None}
        if own:
            lists = read_postings(self.connection, self.sql.packed, self.view.blocks, own)
            weights = self._weights_of_codes()
            self._keep({number: self._score(held, weights) for number, held in lists.items()})

    def _keep(self, words: Mapping[int, Held]) -> None:
        self._held.update(words)
        self.cache.keep_words(self._scope, words)

    def _scored(self, number: int) -> Scored:
        """Return where a term stands, and what it adds there."""
        self._look_up((number,))
        self._read((number,))
        scored = self._held[number].scored
        assert scored is not None
        return scored

    def _score(self, lists: Sequence[Listed | None], weights: NDArray[np.float64]) -> Held:
        """Return BM25 of every row that holds a term, in the order of operations in which FTS5 computes it."""
        rows, codes = self.view.join(lists)
        often = weights.take(codes)
        values = often * (K1 + 1)
        often += self.view.norms.take(rows)
        values /= often
        values *= _idf(self.view.rows, len(rows))
        return Held(len(rows), len(rows), {}, Scored(rows.astype(np.int32), values))

    def _weights_of_codes(self) -> NDArray[np.float64]:
        """Return the weighted frequency for each code of each block; all 256, so that no code is out of range."""
        text, heading, context = self.view.counts
        return np.asarray(text * self.weights.text + heading * self.weights.heading + context * self.weights.context)

    def _add(self, scores: NDArray[np.float64], found: dict[int, float]) -> None:
        """Add what FTS5 scored to what was scored here."""
        keys = np.fromiter(found, dtype=np.int64)
        order = np.argsort(keys)
        rows, chosen = self.view.find(keys[order])
        scores[rows] += np.fromiter(found.values(), dtype=np.float64)[order][chosen]
        if self.view.alive is not None:
            scores[~self.view.alive] = 0.0

    def _top(self, scores: NDArray[np.float64], depth: int) -> dict[int, float]:
        """Return the best scores above nothing, by key."""
        rows = np.flatnonzero(scores > _threshold(scores, depth))
        if len(rows) < depth:
            rows = np.flatnonzero(scores > 0.0)
        keys, values = self.view.keys[rows], scores[rows]
        if len(values) > depth:
            enough = values >= np.partition(values, len(values) - depth)[len(values) - depth]
            keys, values = keys[enough], values[enough]
        order = np.lexsort((keys, -values))[:depth]
        return dict(zip(keys[order].tolist(), values[order].tolist(), strict=True))


def _idf(rows: int, holders: float) -> float:
    """Return FTS5's inverse document frequency (https://sqlite.org/fts5.html#the_bm25_function)."""
    idf = log((rows - holders + 0.5) / (holders + 0.5))
    return idf if idf > 0 else _LEAST_IDF


def _threshold(scores: NDArray[np.float64], depth: int) -> float:
    """Return a score that about one and a half times ``depth`` rows exceed, guessed from a sample; 0 if few rows do."""
    sample = scores[::_SAMPLE]
    rank = 3 * depth // (2 * _SAMPLE) + 8
    if len(sample) <= rank:
        return 0.0
    return float(np.partition(sample, len(sample) - rank)[len(sample) - rank])
