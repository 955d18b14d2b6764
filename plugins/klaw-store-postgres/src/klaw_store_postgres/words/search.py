"""Answers from postings: Okapi BM25 as FTS5 computes it, with its columns, phrases and prefixes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import Factory, define, field, frozen

from klaw_core.words.query import Term, render
from klaw_fts5.exact import Preference, everyday_from
from klaw_fts5.tokenizer import makes_pairs
from klaw_store_postgres.words.blocks import COLUMN_BITS, SPOT_BITS
from klaw_store_postgres.words.reading import SegmentReader
from klaw_store_postgres.words.tokens import Pattern, pattern_of, shortened, tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.session import Session
    from klaw_store_postgres.words.segments import SegmentHead

# BM25's constants, those of FTS5, and what it gives a term that half of the rows hold (sqlite.org/src: fts5_aux.c).
_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6
_COLUMNS = (1 << COLUMN_BITS) - 1


@frozen
class ColumnWeights:
    """How much a word counts in each column: text, heading, context."""

    weights: tuple[float, ...]


@frozen(eq=False)
class _Matches:
    """Where what is looked for begins in a segment: rows, ascending, and spots; shape (n,) each."""

    rows: NDArray[np.int32]
    spots: NDArray[Any]

    @property
    def nbytes(self) -> int:
        return 300 + self.rows.nbytes + self.spots.nbytes

    def keys(self) -> NDArray[np.int64]:
        """Return row and spot in one number each."""
        keys = self.rows.astype(np.int64) << SPOT_BITS
        keys |= self.spots
        return keys

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> _Matches:
        """Return what :meth:`keys` gave."""
        return cls((keys >> SPOT_BITS).astype(np.int32), (keys & ((1 << SPOT_BITS) - 1)).astype(np.uint32))


@frozen(eq=False)
class _Held:
    """The rows of all segments that hold something, ascending, and how often, by the weights of the columns."""

    rows: NDArray[np.int32]
    frequencies: NDArray[np.float64]


@define(eq=False)
class PostingsSearch:
    """One collection in one session: counts terms for the plan of a question, then scores chunks."""

    session: Session
    collection: str
    columns: ColumnWeights
    _reader: SegmentReader = field(
        init=False, default=Factory(lambda self: SegmentReader(self.session, self.collection), takes_self=True)
    )
    _patterns: dict[Term, Pattern] = field(factory=dict, init=False)
    _found: dict[Pattern, _Held] = field(factory=dict, init=False)

    @cached_property
    def rows(self) -> int:
        """How many chunks there are."""
        return sum(head.rows - len(head.dead) for head in self._reader.heads)

    def expect(self, terms: Sequence[Term]) -> None:
        """Be told which terms are going to be asked about: what is known of them is read at once."""
        self._reader.entries(word for term in terms for word in _whole_words(self._pattern(term)))

    def known_among(self, terms: Iterable[bytes]) -> Sequence[bytes]:
        """Return which of these terms the index has."""
        return [term for term, held in self._reader.entries(terms).items() if held]

    def holders(self, terms: Sequence[Term], /) -> Sequence[int]:
        """Return about how many chunks hold each of many terms."""
        self.expect(terms)
        return [self._about(self._pattern(term)) for term in terms]

    def count(self, term: Term, most: int) -> int:
        """Return about how many chunks hold a term, counted no further than ``most``."""
        return min(self.holders([term])[0], most)

    def has(self, term: Term, /) -> bool:
        """Return whether any chunk holds a term."""
        return self._count(self._pattern(term)) > 0

    def is_everyday(self, term: Term, /) -> bool:
        """Return whether so many chunks hold a term that it tells nothing."""
        enough = everyday_from(self.rows)
        return enough <= self.rows and self._about(self._pattern(term)) >= enough and (
            self._count(self._pattern(term)) >= enough
        )  # fmt: skip

    def makes_pairs(self, word: str, /) -> bool:
        """Return whether it tells something that a word stands next to another."""
        terms = tokenizer()(word.encode())
        return len(terms) == 1 and makes_pairs(shortened(terms[0]))

    def held_by(self, terms: Sequence[Term], keys: Sequence[int], /) -> Iterator[tuple[int, Collection[int]]]:
        """Yield for each term how many chunks hold it, and which of these do."""
        wanted, places = self._rows_of_keys(keys)
        self._read_all(terms)
        for term in terms:
            rows = self._held(self._pattern(term)).rows
            at = np.searchsorted(rows, places)
            held = wanted[rows[np.minimum(at, len(rows) - 1)] == places] if len(rows) else wanted[:0]
            yield len(rows), held.tolist()

    def best(
        self, terms: Sequence[Term], depth: int, within: NDArray[np.int64] | None, preferred: Preference | None = None
    ) -> dict[int, float]:
        """Return the scores of the best ``depth`` chunks that hold any of the terms, equal ones by key."""
        scores = self._best(terms, depth, within)
        if scores and preferred is not None and preferred.phrases and preferred.weight:
            among = np.array(sorted(scores), np.int64)
            for key, score in self._best(preferred.phrases, len(scores), among).items():
                scores[key] += preferred.weight * score
        return scores

    def _best(self, terms: Sequence[Term], depth: int, within: NDArray[np.int64] | None) -> dict[int, float]:
        distinct = {render([term]): term for term in terms}
        self._read_all(distinct.values())
        parts = [held for term in distinct.values() if len((held := self._held(self._pattern(term))).rows)]
        if not parts or depth < 1:
            return {}
        # Of every row: that is faster than to find the union of the rows.
        keys, lengths = self._reader.rows.keys, self._reader.rows.lengths
        scores, holds = np.zeros(len(keys)), np.zeros(len(keys), np.bool_)
        for held in parts:
            norms = _K1 * (1 - _B) + _K1 * _B / self._mean_length * lengths[held.rows]
            scores[held.rows] += _idf(self.rows, len(held.rows)) * (_K1 + 1) * held.frequencies / (
                held.frequencies + norms
            )  # fmt: skip
            holds[held.rows] = True
        rows = np.flatnonzero(holds)
        if within is not None:
            rows = rows[np.isin(keys[rows], within)]
        totals = scores[rows]
        if len(rows) > depth:  # all that are as good as the last one: keys decide among those
            good = totals >= np.partition(totals, len(rows) - depth)[len(rows) - depth]
            rows, totals = rows[good], totals[good]
        order = np.lexsort((keys[rows], -totals))[:depth]
        return dict(zip(keys[rows][order].tolist(), totals[order].tolist(), strict=True))

    def _read_all(self, terms: Iterable[Term]) -> None:
        """Read at once where the words of these terms stand."""
        new = [pattern for pattern in map(self._pattern, terms) if pattern not in self._found]
        self._reader.read({word for pattern in new for word in _whole_words(pattern)})

    def _held(self, pattern: Pattern) -> _Held:
        """Return which rows hold what is looked for, and how often."""
        found = self._found.get(pattern)
        if found is None:
            found = self._found[pattern] = self._find(pattern)
        return found

    def _find(self, pattern: Pattern) -> _Held:
        rows, frequencies = [np.empty(0, np.int32)], [np.empty(0)]
        wanted = self._alternatives(pattern)
        weights = np.array((*self.columns.weights, 0.0, 0.0, 0.0)[: _COLUMNS + 1])
        for head in self._reader.heads if wanted else ():
            matches = self._match(head, pattern, wanted)
            if matches is None or not len(matches.rows):
                continue
            begins = np.ones(len(matches.rows), np.bool_)
            np.not_equal(matches.rows[1:], matches.rows[:-1], out=begins[1:])
            starts = np.flatnonzero(begins)
            held = matches.rows[starts]
            if (matches.spots & _COLUMNS).any():
                often = np.add.reduceat(weights[matches.spots & _COLUMNS], starts)
            else:
                often = weights[0] * np.diff(starts, append=len(matches.rows))
            if len(head.dead):
                alive = np.ones(head.rows, np.bool_)
                alive[head.dead] = False
                held, often = held[alive[held]], often[alive[held]]
            rows.append(held + np.int32(self._reader.starts[head.id]))
            frequencies.append(often)
        return _Held(np.concatenate(rows), np.concatenate(frequencies))

    def _alternatives(self, pattern: Pattern) -> Sequence[Sequence[bytes]]:
        """Return for each place of a pattern the terms that may stand there; none if no chunk can match."""
        *words, last = pattern.terms or (b"",)
        if not last:
            return ()
        wanted = [[word] for word in words]
        wanted.append(list(self._reader.beginning_with(last)) if pattern.prefix else [last])
        self._reader.read({word for alternatives in wanted for word in alternatives})
        return wanted

    def _match(self, head: SegmentHead, pattern: Pattern, wanted: Sequence[Sequence[bytes]]) -> _Matches | None:
        """Return where a segment matches a pattern. Of phrases that is kept: it takes long, and is little."""
        if len(wanted) == 1:
            return self._any_of(head, wanted[0])
        name = (head.id, pattern)
        kept: _Matches | None = self.session.kept.get(name)
        if kept is not None:
            return kept
        matched: _Matches | None = None
        for number, alternatives in enumerate(wanted):
            places = self._any_of(head, alternatives)
            if places is None:
                matched = None
                break
            matched = places if matched is None else _followed(matched, places, number, head.rows)
        if matched is None:
            matched = _Matches(np.empty(0, np.int32), np.empty(0, np.uint32))
        return self.session.kept.put(name, matched)

    def _any_of(self, head: SegmentHead, terms: Sequence[bytes]) -> _Matches | None:
        """Return where any of these terms stands in a segment; None if none does."""
        entries = (held.get(head.id) for held in self._reader.entries(terms).values())
        found = [_Matches(entry.places.rows(), entry.places.spots) for entry in entries if entry and entry.places]
        if not found:
            return None
        return (
            found[0]
            if len(found) == 1
            else _Matches.of(np.unique(np.concatenate([matches.keys() for matches in found])))
        )

    def _pattern(self, term: Term) -> Pattern:
        found = self._patterns.get(term)
        if found is None:
            found = self._patterns[term] = pattern_of(term)
        return found

    def _about(self, pattern: Pattern) -> int:
        """Return about how many rows match: of a phrase, no more than hold its rarest word."""
        if not pattern.terms:
            return 0
        if pattern.prefix:
            return self._count(pattern)
        held = self._reader.entries(pattern.terms)
        return min(sum(entry.holders for entry in held[word].values()) for word in pattern.terms)

    def _count(self, pattern: Pattern) -> int:
        if not pattern.terms:
            return 0
        if not pattern.prefix and not self._about(pattern):
            return 0
        if len(pattern.terms) == 1 and not pattern.prefix and not any(len(head.dead) for head in self._reader.heads):
            return self._about(pattern)
        return len(self._held(pattern).rows)

    def _rows_of_keys(self, keys: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return those of these keys that there are, and their rows. Keys ascend in each segment."""
        wanted = np.array(keys, np.int64)
        rows = np.full(len(wanted), -1, np.int64)
        for head in self._reader.heads:
            start = self._reader.starts[head.id]
            held = self._reader.rows.keys[start : start + head.rows]
            at = np.minimum(np.searchsorted(held, wanted), head.rows - 1)
            found = (held[at] == wanted) & ~np.isin(at, head.dead)
            rows[found] = start + at[found]
        return wanted[rows >= 0], rows[rows >= 0]

    @cached_property
    def _mean_length(self) -> float:
        tokens = sum(head.tokens - head.dead_tokens for head in self._reader.heads)
        return max(tokens / max(self.rows, 1), 1e-9)


def _whole_words(pattern: Pattern) -> Sequence[bytes]:
    """Return the terms that are looked for as they are: not the last one if others may begin with it."""
    return pattern.terms[:-1] if pattern.prefix else pattern.terms


def _followed(matched: _Matches, places: _Matches, number: int, rows: int) -> _Matches:
    """Return the matches that stand so many words before one of these places, in the same column."""
    # Most rows hold only one of both.
    holds = np.zeros(rows, np.bool_)
    holds[places.rows] = True
    first = matched.keys()[holds[matched.rows]]
    holds[:] = False
    holds[matched.rows] = True
    second = places.keys()[holds[places.rows]]
    step = number << COLUMN_BITS
    return _Matches.of(np.intersect1d(first + step, second, assume_unique=True) - step)


def _idf(rows: int, holding: int) -> float:
    idf = log((rows - holding + 0.5) / (holding + 0.5))
    return idf if idf > 0 else _LEAST_IDF
