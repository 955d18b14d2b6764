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
from klaw_fts5.knowledge import WordKnowledge
from klaw_fts5.packed.blocks import Own, PostingLists, read_own, read_postings
from klaw_fts5.packed.cache import Cache, TermBounds
from klaw_fts5.packed.numbers import spelled
from klaw_fts5.packed.pairs import pair_number
from klaw_fts5.packed.postings import OWN
from klaw_fts5.packed.state import PackedState
from klaw_fts5.packed.view import BlockView
from klaw_fts5.sql import Statements
from klaw_words.plan import asks, joins
from klaw_words.query import Term, render
from klaw_words.scoring import K1, ScoredSearch, TermScores, idf
from klaw_words.searching import Preference, Weights, everyday_from

# Rows. FTS5 finds prefixes and some phrases. If it finds more rows than this, it answers the whole query.
_MAX_OTHER_ROWS = 20_000
# Rows. FTS5 finds a phrase in at most 2 ms if its rarest word is in at most this many rows.
_FEW_HOLDERS = 10_000


@frozen(eq=False)
class PackedSearch(ScoredSearch):
    """Searches with the packed form, and with FTS5 for quoted phrases and prefixes.

    ``known`` is the cache for this state of the collection.
    """

    connection: apsw.Connection
    sql: Statements
    weights: Weights
    cache: Cache
    state: PackedState
    view: BlockView
    known: WordKnowledge = field(factory=WordKnowledge)
    _held: dict[int, TermBounds] = field(init=False, factory=dict)
    _numbers_of_pairs: dict[tuple[str, ...], tuple[int, ...] | None] = field(init=False, factory=dict)
    _compounds: dict[Term, TermScores] = field(init=False, factory=dict)
    _others: dict[Term, TermScores] = field(init=False, factory=dict)

    def expect(self, terms: Sequence[Term]) -> None:
        """Read the counts of these terms, and the postings of those that may be informative, in a few queries."""
        plain = [term.words for term in terms if not (term.prefix or term.literal)]
        rows = [words for words in plain if len(words) > 1]
        rows += [first + second for first, second in pairwise([words for words in plain if len(words) == 1])]
        pairs = {pair for words in rows for pair in self._pairs(words) or ()}
        words = {word for term in terms if not term.prefix for word in term.words}
        self._look_up([*pairs, *(number for word in words if (number := self._number(word)) is not None)])
        enough = everyday_from(self.view.rows)
        told = (term for term in terms if not (term.prefix or asks(term) or joins(term)))
        asked = (self._number(word) for term in told for word in term.words)
        telling = {number for number in asked if number is not None and self._held[number].least < enough}
        self._read(pairs | telling)

    def read(self, terms: Sequence[Term], /) -> None:
        """Read the missing postings of words, and of the pairs of phrases, in one query."""
        kept = [term for term in terms if self._is_kept(term)]
        pairs = [pair for term in kept if term not in self._compounds for pair in self._pairs(term.words) or ()]
        self._read_all([*map(self._number_of, terms), *pairs])

    def holders(self, terms: Sequence[Term], /) -> list[int]:
        """Return the approximate number of chunks that contain each term; the number is exact for rare terms."""
        known = [number for number in map(self._number_of, terms) if number is not None]
        self._look_up(known)
        self._read([number for number in known if not self._held[number].least])
        return super().holders(terms)

    def about(self, term: Term, /) -> int:
        """Return the approximate number of chunks that contain a term."""
        number = self._number_of(term)
        return self._exact.holders((term,))[0] if number is None else self._held[number].most

    def holds(self, term: Term, enough: int, /) -> bool:
        """Return whether this many chunks contain a term; assumed for a phrase of frequent words without postings."""
        number = self._number_of(term)
        if number is not None:
            return not self._is_nowhere(term.words[0]) and self._holds(number, enough)
        if term.prefix:
            found = self._count(term, enough) >= enough
            if not found and enough == 1:  # read the shorter words that are asked for next
                shorter = islice(Term(term.words).readings(widen=True), 2, None)
                words = (reading.words[0] for reading in shorter)
                self._read_all(self._number(word) for word in words if not self._is_nowhere(word))
            return found
        numbers = [self._number(word) for word in term.words]
        if any(number is not None and not self._holds(number, enough) for number in numbers):
            return False
        if self._is_kept(term):
            return len(self._compound(term).rows) >= enough
        if self._is_frequent(term):
            return True
        return (len(self._found(term).rows) if enough == 1 else self._count(term, enough)) >= enough

    def scored(self, term: Term, /) -> TermScores:
        """Return the rows of a term and their scores; FTS5 finds quoted phrases, prefixes and some other phrases."""
        number = self._number_of(term)
        if number is not None:
            return self._scored(number)
        return self._compound(term) if self._is_kept(term) else self._found(term)

    def best(
        self, terms: Sequence[Term], depth: int, within: Keys | None = None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best chunks for any of the terms, equal to FTS5's."""
        words = {term.words[0]: number for term in terms if (number := self._number_of(term)) is not None}
        packed, rest = list[Term](), list[Term]()
        for term in terms:
            (packed if self._number_of(term) is not None or self._is_kept(term) else rest).append(term)
        known = bool(packed) and self.view.rows > 0
        others = [term for term in rest if known and not self._is_left_out(term, words)]
        if not known or any(len(self._found(term).rows) == _MAX_OTHER_ROWS for term in others):
            return self._exact.best(terms, depth, within, preferred)
        if preferred is not None:
            preferred = Preference(tuple(filter(self._is_kept, preferred.phrases)), preferred.weight)
        return super().best([*packed, *others], depth, within, preferred)

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
        if term.prefix or term.literal or len(term.words) == 1:
            return False
        pairs = self._pairs(term.words) or ()
        return len(pairs) == 1 or (len(pairs) > 1 and self._is_frequent(term))

    def _pairs(self, words: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return the numbers of all pairs of adjacent words, or None if a word forms no pairs."""
        if words not in self._numbers_of_pairs:
            known = [number for number, pairing, _ in map(spelled, words) if pairing and number is not None]
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

    @property
    def _exact(self) -> ExactSearch:
        return ExactSearch(self.connection, self.sql, self.weights, self.view.rows)

    def _count(self, term: Term, limit: int) -> int:
        return int(self.connection.execute(self.sql.matches, (render((term,)), limit)).get)

    def _found(self, term: Term) -> TermScores:
        """Return FTS5's results for a term, up to the limit."""
        if term not in self._others:
            found = self._exact.best((term,), _MAX_OTHER_ROWS, None)
            keys = np.array(sorted(found), dtype=np.int64)
            rows, chosen = self.view.find(keys)
            if self.view.alive is not None:  # a key may also be that of a dead row
                living = self.view.alive[rows]
                rows, chosen = rows[living], chosen[living]
            order = np.argsort(rows)
            values = np.fromiter(map(found.__getitem__, keys[chosen[order]].tolist()), dtype=np.float64)
            self._others[term] = TermScores(rows[order].astype(np.int32), values)
        return self._others[term]

    def _is_nowhere(self, word: str) -> bool:
        """Return whether the cached terms show that no chunk contains a word."""
        terms = self.known.terms
        return terms is not None and bool(term := spelled(word)[2]) and term not in terms

    def _number_of(self, term: Term) -> int | None:
        """Return the number of a term that is one word."""
        return None if term.prefix or len(term.words) > 1 else spelled(term.words[0])[0]

    def _number(self, word: str) -> int | None:
        """Return the number of a word, or None if the tokenizer does not make one term of it."""
        return spelled(word)[0]

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
