"""Answers from postings: Okapi BM25 as FTS5 computes it, with its columns, phrases and prefixes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from klaw_core.words.query import Term, render
from klaw_fts5.exact import Preference, everyday_from
from klaw_fts5.tokenizer import makes_pairs
from klaw_store_postgres.words import segments
from klaw_store_postgres.words.segments import COLUMN_BITS, POSITION_BITS, ROW_SHIFT
from klaw_store_postgres.words.tokens import Pattern, pattern_of, shortened, tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.session import Session

# BM25's constants, those of FTS5, and what it gives a term that half of the rows hold (sqlite.org/src: fts5_aux.c).
_K1, _B = 1.2, 0.75
_LEAST_IDF = 1e-6
# Of what was read of segments so much is kept in memory, in bytes.
_KEPT_BYTES = 64 << 20

_IN = "tenant = %s AND generation = %s AND collection = %s"


@define(eq=False)
class SegmentCache:
    """What was read of segments, which never change: the least recently used leaves first. Safe for threads."""

    _held: OrderedDict[Any, tuple[NDArray[Any], ...]] = field(factory=OrderedDict, init=False)
    _bytes: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def get(self, key: Any) -> tuple[NDArray[Any], ...] | None:
        """Return what is kept under a key."""
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: Any, arrays: tuple[NDArray[Any], ...]) -> None:
        """Keep arrays."""
        with self._lock:
            if key in self._held:
                return
            self._held[key] = arrays
            self._bytes += sum(array.nbytes for array in arrays)
            while self._bytes > _KEPT_BYTES:
                _, gone = self._held.popitem(last=False)
                self._bytes -= sum(array.nbytes for array in gone)


@frozen
class ColumnWeights:
    """How much a word counts in each column: text, heading, context."""

    weights: tuple[float, ...]


@define(eq=False)
class PostingsSearch:
    """One collection in one session: counts terms for the plan of a question, then scores chunks."""

    session: Session
    collection: str
    columns: ColumnWeights
    cache: SegmentCache
    _patterns: dict[Term, Pattern] = field(factory=dict, init=False)
    _listed: dict[bytes, list[tuple[int, int]]] = field(factory=dict, init=False)
    _places: dict[bytes, NDArray[np.int64]] = field(factory=dict, init=False)
    _found: dict[Pattern, NDArray[np.int64]] = field(factory=dict, init=False)

    @cached_property
    def _heads(self) -> list[segments.SegmentHead]:
        return segments.heads(self.session, self.collection)

    @cached_property
    def rows(self) -> int:
        """How many chunks there are."""
        return sum(head.rows - len(head.dead) for head in self._heads)

    def expect(self, terms: Sequence[Term]) -> None:
        """Be told which terms are going to be asked about: what is known of them is read at once."""
        wanted = {word for term in terms for word in self._pattern(term).terms}
        self._list([word for word in wanted if word not in self._listed])

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
        for term in terms:
            rows = _rows_of(self._matches(self._pattern(term)))
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
        self.expect(list(distinct.values()))
        parts = [self._matches(self._pattern(term)) for term in distinct.values()]
        parts = [places for places in parts if len(places)]
        if not parts or depth < 1:
            return {}
        # Of every row: that is faster than to find the union of the rows.
        scores, holds = np.zeros(len(self._keys)), np.zeros(len(self._keys), np.bool_)
        for places in parts:
            held, frequencies = self._frequencies(places)
            norms = _K1 * (1 - _B + _B * self._lengths[held] / self._mean_length)
            scores[held] += _idf(self.rows, len(held)) * frequencies * (_K1 + 1) / (frequencies + norms)
            holds[held] = True
        rows = np.flatnonzero(holds)
        if within is not None:
            rows = rows[np.isin(self._keys[rows], within)]
        if len(rows) > depth:  # all that are as good as the last one: keys decide among those
            totals = scores[rows]
            rows = rows[totals >= np.partition(totals, len(rows) - depth)[len(rows) - depth]]
        keys, totals = self._keys[rows], scores[rows]
        order = np.lexsort((keys, -totals))[:depth]
        return dict(zip(keys[order].tolist(), totals[order].tolist(), strict=True))

    def _frequencies(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the rows among ascending places, and how often each is, by the weights of the columns."""
        rows = places >> ROW_SHIFT
        columns = (places >> POSITION_BITS) & ((1 << COLUMN_BITS) - 1)
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        weights = np.array((*self.columns.weights, 0.0, 0.0, 0.0)[: 1 << COLUMN_BITS])
        return rows[starts], np.add.reduceat(weights[columns], starts)

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
        self._list([word for word in pattern.terms if word not in self._listed])
        return min(sum(count for _, count in self._listed[word]) for word in pattern.terms)

    def _count(self, pattern: Pattern) -> int:
        if not pattern.terms:
            return 0
        if not pattern.prefix and not self._about(pattern):
            return 0
        if len(pattern.terms) == 1 and not pattern.prefix and not any(len(head.dead) for head in self._heads):
            return self._about(pattern)
        return segments.holders(self._matches(pattern))

    def _matches(self, pattern: Pattern) -> NDArray[np.int64]:
        """Return where what is looked for begins, ascending."""
        found = self._found.get(pattern)
        if found is None:
            found = self._found[pattern] = self._match(pattern)
        return found

    def _match(self, pattern: Pattern) -> NDArray[np.int64]:
        *words, last = pattern.terms or (b"",)
        if not last:
            return np.empty(0, np.int64)
        wanted = [[word] for word in words]
        wanted.append(self._beginning_with(last) if pattern.prefix else [last])
        self._read({word for alternatives in wanted for word in alternatives})
        matched: NDArray[np.int64] | None = None
        for number, alternatives in enumerate(wanted):
            parts = [self._places[word] for word in alternatives]
            places = parts[0] if len(parts) == 1 else np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
            matched = places if matched is None else np.intersect1d(matched, places - number, assume_unique=True)
        assert matched is not None
        return matched

    def _beginning_with(self, prefix: bytes) -> list[bytes]:
        last = prefix.rstrip(b"\xff")
        end = last[:-1] + bytes([last[-1] + 1])
        sql = f"SELECT term, segment, holders FROM word_postings WHERE {_IN} AND term >= %s AND term < %s"
        rows = self.session.rows(sql, (*self.session.scope, self.collection, prefix, end))
        return self._note(rows)

    def _list(self, words: Sequence[bytes]) -> None:
        """Find out which segments hold these terms."""
        if not words:
            return
        self._listed.update({word: [] for word in words})
        sql = f"SELECT term, segment, holders FROM word_postings WHERE {_IN} AND term = ANY(%s)"
        self._note(self.session.rows(sql, (*self.session.scope, self.collection, list(words))))

    def _note(self, rows: Sequence[Any]) -> list[bytes]:
        listed: dict[bytes, list[tuple[int, int]]] = {}
        for term, segment, count in rows:
            listed.setdefault(bytes(term), []).append((segment, count))
        self._listed.update(listed)
        return sorted(listed)

    def _read(self, words: Collection[bytes]) -> None:
        """Read the places of these terms in all segments, without rows that were removed."""
        new = [word for word in words if word not in self._places]
        self._list([word for word in new if word not in self._listed])
        lacking = [
            (word, segment)
            for word in new
            for segment, _ in self._listed[word]
            if self.cache.get((segment, word)) is None
        ]
        read: dict[tuple[int, bytes], tuple[NDArray[Any], ...]] = {}
        if lacking:
            sql = f"""SELECT term, segment, places FROM word_postings
                      WHERE {_IN} AND term = ANY(%s) AND segment = ANY(%s)"""
            wanted = ([word for word, _ in lacking], sorted({segment for _, segment in lacking}))
            for term, segment, blob in self.session.rows(sql, (*self.session.scope, self.collection, *wanted)):
                arrays = (np.frombuffer(blob, "<i8"),)
                read[segment, bytes(term)] = arrays
                self.cache.put((segment, bytes(term)), arrays)
        starts = self._starts
        for word in new:
            parts = []
            for segment, _ in self._listed[word]:
                held = read.get((segment, word)) or self.cache.get((segment, word))
                if held is None:  # it was forgotten in this moment
                    held = self._read_one(segment, word)
                parts.append(held[0] + (starts[segment] << ROW_SHIFT))
            places = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int64)
            self._places[word] = places[self._alive[places >> ROW_SHIFT]] if len(places) else places

    def _read_one(self, segment: int, word: bytes) -> tuple[NDArray[Any], ...]:
        sql = f"SELECT places FROM word_postings WHERE {_IN} AND term = %s AND segment = %s"
        blob = self.session.value(sql, (*self.session.scope, self.collection, word, segment))
        return (np.frombuffer(blob, "<i8"),)

    @cached_property
    def _starts(self) -> dict[int, int]:
        """The number of each segment's first row among all."""
        numbers = np.cumsum([0, *(head.rows for head in self._heads)]).tolist()
        return {head.id: start for head, start in zip(self._heads, numbers, strict=False)}

    def _rows_of_keys(self, keys: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return those of these keys that there are, and their rows. Keys ascend in each segment."""
        wanted = np.array(keys, np.int64)
        rows = np.full(len(wanted), -1, np.int64)
        for head in self._heads:
            start = self._starts[head.id]
            held = self._keys[start : start + head.rows]
            at = start + np.minimum(np.searchsorted(held, wanted), head.rows - 1)
            found = (self._keys[at] == wanted) & self._alive[at]
            rows[found] = at[found]
        return wanted[rows >= 0], rows[rows >= 0]

    @cached_property
    def _alive(self) -> NDArray[np.bool_]:
        alive = np.ones(sum(head.rows for head in self._heads), np.bool_)
        for head in self._heads:
            alive[self._starts[head.id] + head.dead.astype(np.int64)] = False
        return alive

    @cached_property
    def _keys_and_lengths(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        lacking = [head.id for head in self._heads if self.cache.get((head.id, None)) is None]
        read: dict[int, tuple[NDArray[Any], ...]] = {}
        if lacking:
            sql = f"SELECT id, keys, lengths FROM word_segments WHERE {_IN} AND id = ANY(%s)"
            for number, keys, lengths in self.session.rows(sql, (*self.session.scope, self.collection, lacking)):
                read[number] = np.frombuffer(keys, "<i8"), np.frombuffer(lengths, "<u4")
                self.cache.put((number, None), read[number])
        parts = [read.get(head.id) or self.cache.get((head.id, None)) for head in self._heads]
        if any(part is None for part in parts):  # forgotten in this moment
            del lacking, read
            sql = f"SELECT id, keys, lengths FROM word_segments WHERE {_IN} ORDER BY id"
            rows = self.session.rows(sql, (*self.session.scope, self.collection))
            parts = [(np.frombuffer(keys, "<i8"), np.frombuffer(lengths, "<u4")) for _, keys, lengths in rows]
        whole = [part for part in parts if part is not None]
        return np.concatenate([part[0] for part in whole]), np.concatenate([part[1] for part in whole]).astype(float)

    @property
    def _keys(self) -> NDArray[np.int64]:
        return self._keys_and_lengths[0]

    @property
    def _lengths(self) -> NDArray[np.float64]:
        return self._keys_and_lengths[1]

    @cached_property
    def _mean_length(self) -> float:
        tokens = sum(head.tokens - head.dead_tokens for head in self._heads)
        return max(tokens / max(self.rows, 1), 1e-9)


def _rows_of(places: NDArray[np.int64]) -> NDArray[np.int64]:
    rows = places >> ROW_SHIFT
    found: NDArray[np.int64] = rows[np.flatnonzero(np.diff(rows, prepend=-1))]
    return found


def _idf(rows: int, holding: int) -> float:
    idf = log((rows - holding + 0.5) / (holding + 0.5))
    return idf if idf > 0 else _LEAST_IDF
