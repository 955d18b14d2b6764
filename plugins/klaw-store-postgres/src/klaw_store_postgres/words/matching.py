"""Find words, phrases and prefixes in the segments of a collection, and count their occurrences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from klaw_store_postgres.words.blocks import COLUMN_BITS, SPOT_BITS
from klaw_store_postgres.words.tokens import Pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.words.reading import SegmentReader
    from klaw_store_postgres.words.segments import SegmentHead

_COLUMNS = (1 << COLUMN_BITS) - 1
_SPOT = (1 << SPOT_BITS) - 1


@define(eq=False, slots=False)
class Matches:
    """The places in a segment at which a pattern begins: ascending rows, and spots; shape (n,) each."""

    rows: NDArray[np.int32]
    spots: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return 300 + self.rows.nbytes + self.spots.nbytes

    def keys(self) -> NDArray[np.int64]:
        """Return each place as one number: the row, then the spot."""
        keys = self.rows.astype(np.int64) << SPOT_BITS
        keys |= self.spots
        return keys

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> Matches:
        """Return the matches of an array from :meth:`keys`."""
        return cls((keys >> SPOT_BITS).astype(np.int32), (keys & _SPOT).astype(np.uint32))

    @cached_property
    def _columns(self) -> NDArray[Any] | None:
        """The column of each place; None if all places are in the first column."""
        columns: NDArray[Any] = self.spots & _COLUMNS
        return columns if columns.any() else None

    def frequencies(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return each row once, and its number of matches, weighted by column."""
        begins = np.ones(len(self.rows), np.bool_)
        np.not_equal(self.rows[1:], self.rows[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        if self._columns is not None:
            return self.rows[starts], np.add.reduceat(weights[self._columns], starts)
        often = np.empty(len(starts))
        np.subtract(starts[1:], starts[:-1], out=often[:-1])
        often[-1:] = len(self.rows) - starts[-1:]
        often *= weights[0]
        return self.rows[starts], often

    def frequencies_at(self, rows: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted number of matches of each of these rows; -1 for a row without a match."""
        first, last = self.rows.searchsorted(rows), self.rows.searchsorted(rows, "right")
        often: NDArray[np.float64]
        if self._columns is None:
            often = (last - first) * weights[0]
        else:
            held = np.flatnonzero(last > first)
            pairs = np.stack((first[held], last[held]), axis=1).ravel()
            often = np.zeros(len(rows))
            if len(held):  # reduceat does not accept the index after the end, so one element is appended
                often[held] = np.add.reduceat(np.append(weights[self._columns], 0.0), pairs)[::2]
        often[last == first] = -1.0
        return often


@frozen(eq=False)
class Held:
    """The ascending rows of all segments that match a pattern, and the weighted number of matches of each."""

    rows: NDArray[np.int32]
    frequencies: NDArray[np.float64]


@define(eq=False)
class Matcher:
    """Finds patterns in the segments of one collection."""

    reader: SegmentReader
    #: The weight of each possible column number; shape (4,).
    weights: NDArray[np.float64]
    _matches: dict[tuple[int, Pattern], Matches] = field(factory=dict, init=False)
    _held: dict[Pattern, Held] = field(factory=dict, init=False)
    _alternatives: dict[Pattern, Sequence[Sequence[bytes]]] = field(factory=dict, init=False)

    def expect(self, patterns: Iterable[Pattern]) -> None:
        """Look up the words of these patterns in all segments with one statement."""
        self.reader.entries(word for pattern in patterns for word in _whole_words(pattern))

    def read(self, patterns: Iterable[Pattern]) -> None:
        """Read the places of the words of these patterns with one statement."""
        self.reader.read({word for pattern in patterns for word in _whole_words(pattern)})

    def about(self, pattern: Pattern) -> int:
        """Return an upper bound of the number of matching rows: for a phrase, the rows with its rarest word."""
        if not pattern.terms:
            return 0
        if pattern.prefix:
            return self.count(pattern)
        held = self.reader.entries(pattern.terms)
        return min(sum(entry.holders for entry in held[word].values()) for word in pattern.terms)

    def count(self, pattern: Pattern) -> int:
        """Return the number of rows that match."""
        if not pattern.terms or not (pattern.prefix or self.about(pattern)):
            return 0
        if len(pattern.terms) == 1 and not pattern.prefix and not any(len(head.dead) for head in self.reader.heads):
            return self.about(pattern)
        return len(self.held(pattern).rows)

    def held(self, pattern: Pattern) -> Held:
        """Return the rows that match."""
        found = self._held.get(pattern)
        if found is None:
            found = self._held[pattern] = self._find(pattern)
        return found

    def frequencies_at(self, pattern: Pattern, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the weighted number of matches of each of these ascending, not removed rows; -1 without a match."""
        often = np.full(len(rows), -1.0)
        starts = self.reader.starts
        bounds = rows.searchsorted([*starts.values(), np.iinfo(np.int64).max]).tolist()
        for head, first, last in zip(self.reader.heads, bounds[:-1], bounds[1:], strict=True):
            matches = self._match(head, pattern) if first < last else None
            if matches is not None:
                local = (rows[first:last] - starts[head.id]).astype(np.int32)
                often[first:last] = matches.frequencies_at(local, self.weights)
        return often

    def _find(self, pattern: Pattern) -> Held:
        rows, frequencies = [np.empty(0, np.int32)], [np.empty(0)]
        for head in self.reader.heads:
            matches = self._match(head, pattern)
            if matches is None:
                continue
            held, often = matches.frequencies(self.weights)
            if len(head.dead):
                alive = np.ones(head.rows, np.bool_)
                alive[head.dead] = False
                held, often = held[alive[held]], often[alive[held]]
            rows.append(held + np.int32(self.reader.starts[head.id]))
            frequencies.append(often)
        return Held(np.concatenate(rows), np.concatenate(frequencies))

    def _match(self, head: SegmentHead, pattern: Pattern) -> Matches | None:
        """Return the matches of a pattern in a segment, including removed rows; None if there are none."""
        name = (head.id, pattern)
        matches = self._matches.get(name)
        if matches is None:
            matches = self._matches[name] = self._match_segment(head, pattern)
        return matches if len(matches.rows) else None

    def _match_segment(self, head: SegmentHead, pattern: Pattern) -> Matches:
        if pattern not in self._alternatives:
            self._alternatives[pattern] = self._find_alternatives(pattern)
        wanted = self._alternatives[pattern]
        if len(pattern.terms) <= 1:
            return self._any_of(head, wanted[0] if wanted else ())
        # The matches of phrases are cached, because they are slow to find and small.
        name, kept = (head.id, pattern), self.reader.session.kept
        found: Matches | None = kept.get(name)
        if found is None:
            found = self._any_of(head, wanted[0])
            for number, alternatives in enumerate(wanted[1:], start=1):
                found = _followed(found, self._any_of(head, alternatives), number, head.rows)
            if self.reader.session.shared_lock is None:  # a writer has no snapshot: a merge may have removed blocks
                kept.put(name, found)
        return found

    def _find_alternatives(self, pattern: Pattern) -> Sequence[Sequence[bytes]]:
        """Return the terms that are possible at each position of a pattern; empty if no chunk can match."""
        *words, last = pattern.terms or (b"",)
        if not last:
            return ()
        wanted = [[word] for word in words]
        wanted.append(list(self.reader.beginning_with(last)) if pattern.prefix else [last])
        self.reader.read({word for alternatives in wanted for word in alternatives})
        return wanted

    def _any_of(self, head: SegmentHead, terms: Sequence[bytes]) -> Matches:
        """Return the places of any of these terms in a segment."""
        entries = (held.get(head.id) for held in self.reader.entries(terms).values())
        found = [Matches(entry.places.rows(), entry.places.spots) for entry in entries if entry and entry.places]
        if len(found) == 1:
            return found[0]
        none = np.empty(0, np.int64)
        return Matches.of(np.unique(np.concatenate([none, *(matches.keys() for matches in found)])))


def _whole_words(pattern: Pattern) -> Sequence[bytes]:
    """Return the terms of a pattern that are complete words: all, except the last one of a prefix pattern."""
    return pattern.terms[:-1] if pattern.prefix else pattern.terms


def _followed(matched: Matches, places: Matches, number: int, rows: int) -> Matches:
    """Return the matches that are followed by one of these places, ``number`` words later in the same column."""
    # Most rows contain only one of both, so rows are filtered before the places are compared.
    holds = np.zeros(rows, np.bool_)
    holds[places.rows] = True
    kept = holds[matched.rows]
    first = Matches(matched.rows[kept], matched.spots[kept]).keys()
    holds[:] = False
    holds[matched.rows] = True
    kept = holds[places.rows]
    second = Matches(places.rows[kept], places.spots[kept]).keys()
    step = number << COLUMN_BITS
    return Matches.of(np.intersect1d(first + step, second, assume_unique=True) - step)
