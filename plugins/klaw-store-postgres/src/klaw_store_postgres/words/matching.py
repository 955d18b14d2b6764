"""Where words, phrases and beginnings of words stand in the segments of a collection, and how often."""

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
    """Where what is looked for begins in a segment: rows, ascending, and spots; shape (n,) each."""

    rows: NDArray[np.int32]
    spots: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """About how many bytes this takes."""
        return 300 + self.rows.nbytes + self.spots.nbytes

    def keys(self) -> NDArray[np.int64]:
        """Return row and spot in one number each."""
        keys = self.rows.astype(np.int64) << SPOT_BITS
        keys |= self.spots
        return keys

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> Matches:
        """Return what :meth:`keys` gave."""
        return cls((keys >> SPOT_BITS).astype(np.int32), (keys & _SPOT).astype(np.uint32))

    @cached_property
    def _columns(self) -> NDArray[Any] | None:
        """The column of each place; None if all are the first."""
        columns: NDArray[Any] = self.spots & _COLUMNS
        return columns if columns.any() else None

    def frequencies(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return each row once, and how often it matches, by the weights of the columns."""
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
        """Return how often each of these rows matches, -1 where it does not."""
        first, last = self.rows.searchsorted(rows), self.rows.searchsorted(rows, "right")
        often: NDArray[np.float64]
        if self._columns is None:
            often = (last - first) * weights[0]
        else:
            held = np.flatnonzero(last > first)
            pairs = np.stack((first[held], last[held]), axis=1).ravel()
            often = np.zeros(len(rows))
            if len(held):  # a last place of its own, because one behind the end is none
                often[held] = np.add.reduceat(np.append(weights[self._columns], 0.0), pairs)[::2]
        often[last == first] = -1.0
        return often


@frozen(eq=False)
class Held:
    """The rows of all segments that hold something, ascending, and how often, by the weights of the columns."""

    rows: NDArray[np.int32]
    frequencies: NDArray[np.float64]


@define(eq=False)
class Matcher:
    """Looks patterns up in the segments of one collection."""

    reader: SegmentReader
    #: Of the columns, as many as there can be.
    weights: NDArray[np.float64]
    _matches: dict[tuple[int, Pattern], Matches] = field(factory=dict, init=False)
    _held: dict[Pattern, Held] = field(factory=dict, init=False)
    _alternatives: dict[Pattern, Sequence[Sequence[bytes]]] = field(factory=dict, init=False)

    def expect(self, patterns: Iterable[Pattern]) -> None:
        """Find out at once which segments hold the words of these patterns."""
        self.reader.entries(word for pattern in patterns for word in _whole_words(pattern))

    def read(self, patterns: Iterable[Pattern]) -> None:
        """Read at once where the words of these patterns stand."""
        self.reader.read({word for pattern in patterns for word in _whole_words(pattern)})

    def about(self, pattern: Pattern) -> int:
        """Return about how many rows match: of a phrase, no more than hold its rarest word."""
        if not pattern.terms:
            return 0
        if pattern.prefix:
            return self.count(pattern)
        held = self.reader.entries(pattern.terms)
        return min(sum(entry.holders for entry in held[word].values()) for word in pattern.terms)

    def count(self, pattern: Pattern) -> int:
        """Return how many rows match."""
        if not pattern.terms or not (pattern.prefix or self.about(pattern)):
            return 0
        if len(pattern.terms) == 1 and not pattern.prefix and not any(len(head.dead) for head in self.reader.heads):
            return self.about(pattern)
        return len(self.held(pattern).rows)

    def held(self, pattern: Pattern) -> Held:
        """Return which rows match, and how often."""
        found = self._held.get(pattern)
        if found is None:
            found = self._held[pattern] = self._find(pattern)
        return found

    def frequencies_at(self, pattern: Pattern, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return how often each of these rows, which ascend and are alive, matches; -1 where it does not."""
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
        """Return where a segment matches a pattern, removed rows too; None if it does not."""
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
        # Of phrases it is kept: it takes long, and is little.
        name, kept = (head.id, pattern), self.reader.session.kept
        found: Matches | None = kept.get(name)
        if found is None:
            found = self._any_of(head, wanted[0])
            for number, alternatives in enumerate(wanted[1:], start=1):
                found = _followed(found, self._any_of(head, alternatives), number, head.rows)
            if self.reader.session.shared_lock is None:  # a writer sees no snapshot: a merge may have taken blocks away
                kept.put(name, found)
        return found

    def _find_alternatives(self, pattern: Pattern) -> Sequence[Sequence[bytes]]:
        """Return for each place of a pattern the terms that may stand there; none if no chunk can match."""
        *words, last = pattern.terms or (b"",)
        if not last:
            return ()
        wanted = [[word] for word in words]
        wanted.append(list(self.reader.beginning_with(last)) if pattern.prefix else [last])
        self.reader.read({word for alternatives in wanted for word in alternatives})
        return wanted

    def _any_of(self, head: SegmentHead, terms: Sequence[bytes]) -> Matches:
        """Return where any of these terms stands in a segment."""
        entries = (held.get(head.id) for held in self.reader.entries(terms).values())
        found = [Matches(entry.places.rows(), entry.places.spots) for entry in entries if entry and entry.places]
        if len(found) == 1:
            return found[0]
        none = np.empty(0, np.int64)
        return Matches.of(np.unique(np.concatenate([none, *(matches.keys() for matches in found)])))


def _whole_words(pattern: Pattern) -> Sequence[bytes]:
    """Return the terms that are looked for as they are: not the last one if others may begin with it."""
    return pattern.terms[:-1] if pattern.prefix else pattern.terms


def _followed(matched: Matches, places: Matches, number: int, rows: int) -> Matches:
    """Return the matches that stand so many words before one of these places, in the same column."""
    # Most rows hold only one of both.
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
