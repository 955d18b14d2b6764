"""Search with packed postings: the same scores as FTS5's, but only the postings of informative words are read."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise, starmap

import apsw
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_fts5.exact import ExactSearch
from klaw_fts5.knowledge import WordKnowledge, term_text
from klaw_fts5.packed.blocks import Own, PostingLists, read_own, read_postings
from klaw_fts5.packed.cache import Cache, Spelled, TermBounds, TermScores
from klaw_fts5.packed.numbers import term_number
from klaw_fts5.packed.pairs import pair_number
from klaw_fts5.packed.postings import OWN
from klaw_fts5.packed.state import PackedState
from klaw_fts5.packed.view import K1, View, idf
from klaw_fts5.sql import Statements
from klaw_words.plan import asks
from klaw_words.query import Term, render
from klaw_words.searching import Preference, Weights, everyday_from
from klaw_words.tokenizer import makes_pairs, tokenizer

# Rows. FTS5 finds prefixes and some phrases. If it finds more rows than this, it answers the whole query.
_MAX_OTHER_ROWS = 20_000
# Rows. FTS5 finds a phrase in at most 2 ms if its rarest word is in at most this many rows.
_FEW_HOLDERS = 10_000
# One of 64 rows is in the sample from which a threshold for the best scores is estimated.
_SAMPLE = 64


@frozen(eq=False)
class _TermGroups:
    """Terms by how they are found: ``words`` and ``compounds`` with packed postings, ``others`` with FTS5."""

    words: tuple[int, ...]
    compounds: tuple[Term, ...]
    others: tuple[Term, ...]


@frozen(eq=False)
class _TopRows:
    """The best rows of a view, ascending, with their keys and scores; all of shape (n,)."""

    rows: NDArray[np.intp]
    keys: NDArray[np.int64]
    scores: NDArray[np.float64]


@frozen(eq=False)
class PackedSearch:
    """Searches with the packed form, and with FTS5 for quoted phrases and prefixes.

    ``known`` is the cache for this state of the collection.
    """

    connection: apsw.Connection
    sql: Statements
    weights: Weights
    cache: Cache
    state: PackedState
    view: View
    known: WordKnowledge = field(factory=WordKnowledge)
    _held: dict[int, TermBounds] = field(init=False, factory=dict)
    _numbers_of_pairs: dict[tuple[str, ...], tuple[int, ...] | None] = field(init=False, factory=dict)
    _compounds: dict[Term, TermScores] = field(init=False, factory=dict)
    _phrases: dict[Term, dict[int, float]] = field(init=False, factory=dict)
    _best_rows: dict[int, int] = field(init=False, factory=dict)

    def expect(self, terms: Sequence[Term]) -> None:
        """Read the counts of these terms, and the postings of those that may be informative, in a few queries."""
        plain = [term.words for term in terms if not (term.prefix or term.literal)]
        rows = [words for words in plain if len(words) > 1]
        rows += [first + second for first, second in pairwise([words for words in plain if len(words) == 1])]
        pairs = {pair for words in rows for pair in self._pairs(words) or ()}
        words = {word for term in terms if not term.prefix for word in term.words}
        self._look_up([*pairs, *(number for word in words if (number := self._number(word)) is not None)])
        enough = everyday_from(self.view.rows)
        asked = (self._number(word) for term in terms if not term.prefix and not asks(term) for word in term.words)
        telling = {number for number in asked if number is not None and self._held[number].least < enough}
        self._read(pairs | telling)

    def holders(self, terms: Sequence[Term], /) -> list[int]:
        """Return the approximate number of chunks that contain each term; the number is exact for rare terms."""
        asked = [None if term.prefix or len(term.words) > 1 else self._number(term.words[0]) for term in terms]
        known = [number for number in asked if number is not None]
        self._look_up(known)
        self._read([number for number in known if not self._held[number].least])
        return [
            self._exact.holders((term,))[0] if number is None else self._held[number].most
            for term, number in zip(terms, asked, strict=True)
        ]

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk contains a term; assumed for a phrase of frequent words without postings."""
        if term.prefix:
            found = self._count(term, 1) > 0
            if not found:  # read the shorter words that are asked for next
                shorter = islice(Term(term.words).readings(widen=True), 2, None)
                words = (reading.words[0] for reading in shorter)
                self._read_all(self._number(word) for word in words if not self._is_nowhere(word))
            return found
        if len(term.words) == 1 and (number := self._number(term.words[0])) is not None:
            return not self._is_nowhere(term.words[0]) and self._holds(number, 1)
        numbers = [self._number(word) for word in term.words]
        if any(number is not None and not self._holds(number, 1) for number in numbers):
            return False
        if self._is_kept(term):
            return len(self._compound(term).rows) > 0
        return self._is_frequent(term) or len(self._found(term)) > 0

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether at least half of the chunks contain a term; assumed for a phrase of such words."""
        enough = everyday_from(self.view.rows)
        if enough > self.view.rows:
            return False
        if len(term.words) == 1 and not term.prefix and (number := self._number(term.words[0])) is not None:
            return self._holds(number, enough)
        if self._is_kept(term):
            return len(self._compound(term).rows) >= enough
        if not term.prefix:
            numbers = [self._number(word) for word in term.words]
            if any(number is not None and not self._holds(number, enough) for number in numbers):
                return False
            if None not in numbers and self._is_frequent(term):
                return True
        return self._count(term, enough) >= enough

    @property
    def rows(self) -> int:
        """Return the number of chunks."""
        return self.view.rows

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield for each term the number of chunks that contain it, and those among the ascending ``keys``."""
        if self._best_rows.keys() >= set(keys):  # the keys are results of the last call of `best`
            wanted = np.array(keys, dtype=np.int64)
            rows = np.array([self._best_rows[key] for key in keys], dtype=np.int32)
        else:
            wanted = np.array(keys, dtype=np.int64)
            places, chosen = self.view.find(wanted)
            rows, wanted = places.astype(np.int32), wanted[chosen]
        for term in terms:
            number = None if term.prefix or len(term.words) > 1 else self._number(term.words[0])
            if number is None and not self._is_kept(term):
                found = self._found(term)
                yield len(found), [key for key in keys if key in found]
            else:
                scored = self._compound(term) if number is None else self._scored(number)
                yield len(scored.rows), wanted[scored.find(rows)[1]].tolist()

    def makes_pairs(self, word: str, /) -> bool:
        """Return whether a word is one term that forms pairs with adjacent words."""
        return self._spelled(word)[1]

    def best(
        self, terms: Sequence[Term], depth: int, within: Keys | None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best chunks for any of the terms, equal to FTS5's."""
        asked = self._group_terms(terms)
        known = bool(asked.words or asked.compounds) and self.view.rows > 0
        found = [self._found(term) for term in asked.others] if known else []
        if not known or any(len(scores) == _MAX_OTHER_ROWS for scores in found):
            return self._exact.best(terms, depth, within, preferred)
        best = self._top(self._add_up(asked, found, within), depth)
        if preferred is not None and preferred.weight:
            phrases = list(filter(self._is_kept, preferred.phrases))
            self._read_all(number for term in phrases for number in self._pairs(term.words) or ())
            for term in phrases:
                _raise(best, self._compound(term), preferred.weight)
        keys = best.keys.tolist()
        self._best_rows.update(zip(keys, best.rows.tolist(), strict=True))
        return dict(zip(keys, best.scores.tolist(), strict=True))

    def _group_terms(self, terms: Sequence[Term]) -> _TermGroups:
        distinct = {(term.words, term.prefix): term for term in terms}.values()  # as in an FTS5 query
        numbers = {
            term: None if term.prefix or len(term.words) > 1 else self._number(term.words[0]) for term in distinct
        }
        # Two words may have the same number, if the tokenizer makes one term of both. FTS5 then counts it twice.
        words = {term.words[0]: number for term, number in numbers.items() if number is not None}
        rest = [term for term, number in numbers.items() if number is None]
        compounds = tuple(filter(self._is_kept, rest))
        others = (term for term in rest if not self._is_kept(term) and not self._is_left_out(term, words))
        return _TermGroups(tuple(words.values()), compounds, tuple(others))

    def _is_left_out(self, term: Term, words: Mapping[str, int]) -> bool:
        """Return whether a phrase is skipped: FTS5 would be slow, and an informative word of it is a term itself."""
        enough = everyday_from(self.view.rows)
        return self._is_frequent(term) and any(
            word in words and not self._holds(words[word], enough) for word in term.words
        )

    def _is_frequent(self, term: Term) -> bool:
        """Return whether all words of an unquoted phrase are so frequent that FTS5 would be slow."""
        if term.prefix or term.literal or len(term.words) == 1:
            return False
        numbers = [self._number(word) for word in term.words]
        return all(number is not None and self._holds(number, _FEW_HOLDERS) for number in numbers)

    def _is_kept(self, term: Term) -> bool:
        """Return whether a phrase can be found with the postings of pairs. FTS5 finds quoted phrases exactly.

        FTS5 also finds phrases of three or more words if it is fast, because the postings only have pairs.
        """
        pairs = () if term.prefix or term.literal or len(term.words) == 1 else self._pairs(term.words) or ()
        return len(pairs) == 1 or (len(pairs) > 1 and self._is_frequent(term))

    def _pairs(self, words: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return the numbers of all pairs of adjacent words, or None if a word forms no pairs."""
        if words not in self._numbers_of_pairs:
            known = [number for number, pairing, _ in map(self._spelled, words) if pairing and number is not None]
            pairs = tuple(starmap(pair_number, pairwise(known))) if len(known) == len(words) else None
            self._numbers_of_pairs[words] = pairs
        return self._numbers_of_pairs[words]

    def _compound(self, term: Term) -> TermScores:
        """Return the rows of a phrase and their scores, computed as FTS5 does.

        A phrase of three or more words counts as found if all of its pairs are found. Rows that lack a word of the
        phrase belong to other pairs with the same number. The rows of common words are read only if there are no
        others.
        """
        if term not in self._compounds:
            pairs = [self._scored(number) for number in self._pairs(term.words) or ()]
            rarest = min(pairs, key=lambda scored: len(scored.rows))
            enough = everyday_from(self.view.rows)
            numbers = [number for word in term.words if (number := self._number(word)) is not None]
            telling = [number for number in numbers if not self._holds(number, enough)]
            words = [self._scored(number) for number in telling or numbers]
            kept = np.ones(len(rarest.rows), dtype=np.bool_)
            for other in (*pairs, *words):
                if other is not rarest:
                    kept &= other.find(rarest.rows)[1]
            rows, values = rarest.rows[kept], rarest.values[kept]
            if len(rows) < len(kept):
                values *= idf(self.view.rows, len(rows)) / idf(self.view.rows, len(kept))
            self._compounds[term] = TermScores(rows, values)
        return self._compounds[term]

    def _add_up(
        self, asked: _TermGroups, found: Sequence[Mapping[int, float]], within: Keys | None
    ) -> NDArray[np.float64]:
        """Return the score of every row: the sum for words, compounds and FTS5's results."""
        self._read(asked.words)
        scores = np.zeros(len(self.view.keys))
        for scored in (*map(self._scored, asked.words), *map(self._compound, asked.compounds)):
            np.add.at(scores, scored.rows.astype(np.intp), scored.values)  # int32 takes 1.5 times as long
        for some in filter(None, found):
            self._add(scores, some)
        if within is not None:
            rows, _ = self.view.find(within)
            kept = scores[rows]
            scores[:] = 0.0
            scores[rows] = kept
        return scores

    @property
    def _exact(self) -> ExactSearch:
        return ExactSearch(self.connection, self.sql, self.weights, self.view.rows)

    def _count(self, term: Term, limit: int) -> int:
        return int(self.connection.execute(self.sql.matches, (render((term,)), limit)).get)

    def _found(self, term: Term) -> dict[int, float]:
        """Return FTS5's results for a term, up to the limit."""
        if term not in self._phrases:
            self._phrases[term] = self._exact.best((term,), _MAX_OTHER_ROWS, None)
        return self._phrases[term]

    def _is_nowhere(self, word: str) -> bool:
        """Return whether the cached terms show that no chunk contains a word."""
        terms = self.known.terms
        return terms is not None and bool(term := self._spelled(word)[2]) and term not in terms

    def _number(self, word: str) -> int | None:
        """Return the number of a word, or None if the tokenizer does not make one term of it."""
        return self._spelled(word)[0]

    def _spelled(self, word: str) -> Spelled:
        """Return a word's number, whether it forms pairs with adjacent words, and its term."""
        spelled = self.cache.spelled(word)
        if spelled is None:
            terms = tokenizer()(word.encode())
            spelled = (None, False, "")
            if len(terms) == 1:
                spelled = term_number(terms[0]), makes_pairs(terms[0]), term_text(terms[0])
            self.cache.keep_spelled(word, spelled)
        return spelled

    def _holds(self, number: int, enough: int) -> bool:
        """Return whether at least ``enough`` live rows contain a term. For frequent terms only the counts are read."""
        if number not in self._held:
            self._look_up((number,))
        held = self._held[number]
        if held.least < enough <= held.most:
            return len(self._scored(number).rows) >= enough
        return held.least >= enough

    @cached_property
    def _scope(self) -> Hashable:
        """The key of cached scores: everything that they depend on, as a tuple for speed."""
        return (self.state.stamp, self.weights.heading, self.weights.text, self.weights.context)

    def _look_up(self, numbers: Collection[int]) -> None:
        """Read the bounds of the number of rows of these terms, without reading their postings."""
        unknown = [number for number in numbers if number not in self._held]
        if not unknown:
            return
        self._held.update(self.cache.words(self._scope, unknown))
        unknown = [number for number in unknown if number not in self._held]
        if unknown:
            own = read_own(self.connection, self.sql.packed, self.view.blocks, unknown)
            self._keep({number: self._counted(held) for number, held in own.items()})

    def _counted(self, own: Own) -> TermBounds:
        listed = sum([count for _, count in own.values()])
        rare = self.view.rare_rows - sum([min(OWN, self.view.blocks[place].rows) for place in own])
        return TermBounds(max(listed - self.view.dead, 0), listed + rare, own)

    def _read_all(self, numbers: Iterable[int | None]) -> None:
        """Read the missing postings of these terms in one query."""
        known = [number for number in numbers if number is not None]
        self._look_up(known)
        self._read(known)

    def _read(self, numbers: Iterable[int]) -> None:
        """Read the missing postings of these terms, whose bounds must be known."""
        own = {number: self._held[number].own for number in numbers if self._held[number].scored is None}
        if own:
            lists = read_postings(self.connection, self.sql.packed, self.view.blocks, own)
            self._keep(dict(zip(own, self._score(lists), strict=True)))

    def _keep(self, words: Mapping[int, TermBounds]) -> None:
        self._held.update(words)
        self.cache.keep_words(self._scope, words)

    def _scored(self, number: int) -> TermScores:
        """Return the rows of a term and its score in each."""
        held = self._held.get(number)
        if held is None or held.scored is None:
            self._look_up((number,))
            self._read((number,))
            held = self._held[number]
        assert held.scored is not None
        return held.scored

    def _score(self, lists: PostingLists) -> Iterator[TermBounds]:
        """Yield the BM25 scores of the rows of each term, computed in the same order of operations as FTS5."""
        rows, codes, counts = self.view.join(lists)
        often = self._weights_of_codes().take(codes)
        values = often * (K1 + 1)
        often += self.view.norms.take(rows)
        values /= often
        values *= np.repeat([idf(self.view.rows, count) for count in counts], counts)
        for start, end in pairwise(accumulate(counts, initial=0)):
            scored = TermScores(rows[start:end].copy(), values[start:end].copy())  # slices would keep the array
            yield TermBounds(end - start, end - start, {}, scored)

    def _weights_of_codes(self) -> NDArray[np.float64]:
        """Return the weighted frequency for all 256 codes of each block, so that no code is out of range."""
        text, heading, context = self.view.counts
        return np.asarray(text * self.weights.text + heading * self.weights.heading + context * self.weights.context)

    def _add(self, scores: NDArray[np.float64], found: Mapping[int, float]) -> None:
        """Add FTS5's scores."""
        keys = np.fromiter(found, dtype=np.int64)
        order = np.argsort(keys)
        rows, chosen = self.view.find(keys[order])
        scores[rows] += np.fromiter(found.values(), dtype=np.float64)[order][chosen]
        if self.view.alive is not None:
            scores[~self.view.alive] = 0.0

    def _top(self, scores: NDArray[np.float64], depth: int) -> _TopRows:
        """Return the rows with the best positive scores, ties by key."""
        rows = np.flatnonzero(scores > _threshold(scores, depth))
        if len(rows) < depth:
            rows = np.flatnonzero(scores > 0.0)
        keys, values = self.view.keys[rows], scores[rows]
        if len(rows) > depth:
            enough = np.flatnonzero(values >= np.partition(values, len(values) - depth)[len(values) - depth])
            if len(enough) > depth:
                enough = np.sort(enough[np.lexsort((keys[enough], -values[enough]))[:depth]])
            rows, keys, values = rows[enough], keys[enough], values[enough]
        return _TopRows(rows, keys, values)


def _raise(best: _TopRows, scored: TermScores, weight: float) -> None:
    """Add the scores of a phrase to the best scores."""
    places, found = scored.find(best.rows.astype(np.int32))
    best.scores[found] += weight * scored.values[places[found]]


def _threshold(scores: NDArray[np.float64], depth: int) -> float:
    """Estimate from a sample a score that about 1.5 times ``depth`` rows exceed; 0 if there are few rows."""
    sample = scores[::_SAMPLE]
    rank = 3 * depth // (2 * _SAMPLE) + 8
    if len(sample) <= rank:
        return 0.0
    return float(np.partition(sample, len(sample) - rank)[len(sample) - rank])
