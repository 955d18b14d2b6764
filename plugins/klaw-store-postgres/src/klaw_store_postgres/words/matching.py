"""Find words, phrases and prefixes in the segments of a collection, and count their occurrences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define

from klaw_store_postgres.words.blocks import COLUMN_BITS, SPOT_BITS
from klaw_store_postgres.words.tokens import Pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.words.reading import SegmentReader

_COLUMNS = (1 << COLUMN_BITS) - 1
_SPOT = (1 << SPOT_BITS) - 1


@define(eq=False)
class Matches:
    """The places in all segments at which a pattern begins: ascending rows, and spots; shape (n,) each."""

    rows: NDArray[Any]
    spots: NDArray[Any]

    def keys(self) -> NDArray[np.int64]:
        """Return each place as one number: the row, then the spot."""
        keys = self.rows.astype(np.int64) << SPOT_BITS
        keys |= self.spots
        return keys

    @classmethod
    def of(cls, keys: NDArray[np.int64]) -> Matches:
        """Return the matches of an array from :meth:`keys`."""
        return cls((keys >> SPOT_BITS).astype(np.int32), (keys & _SPOT).astype(np.uint32))

    def where(self, chosen: NDArray[np.bool_]) -> Matches:
        """Return the chosen places."""
        return Matches(self.rows[chosen], self.spots[chosen])

    def frequencies(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return each row once, and its number of matches, weighted by column; ``weights`` are of four columns."""
        begins = np.ones(len(self.rows), np.bool_)
        np.not_equal(self.rows[1:], self.rows[:-1], out=begins[1:])
        starts = np.flatnonzero(begins)
        columns = self.spots & _COLUMNS
        if columns.any():
            return self.rows[starts], np.add.reduceat(weights[columns], starts)
        return self.rows[starts], np.diff(starts, append=len(self.rows)) * weights[0]


def find(reader: SegmentReader, pattern: Pattern) -> Matches:
    """Return the places of a pattern in all segments, without removed rows."""
    *words, last = pattern.terms or (b"",)
    if not last:
        return _any_of(reader, ())
    wanted: list[Sequence[bytes]] = [[word] for word in words]
    wanted.append(reader.beginning_with(last) if pattern.prefix else [last])
    reader.read({word for alternatives in wanted for word in alternatives})
    found = _any_of(reader, wanted[0])
    for number, alternatives in enumerate(wanted[1:], start=1):
        found = _followed(found, _any_of(reader, alternatives), number, len(reader.view.keys))
    alive = reader.view.alive
    return found if alive is None else found.where(alive[found.rows])


def _any_of(reader: SegmentReader, terms: Iterable[bytes]) -> Matches:
    """Return the places of any of these terms."""
    starts = reader.starts
    found = [
        [(entry.places.rows() + np.int32(starts[number]), entry.places.spots) for number, entry in held if entry.places]
        for held in (sorted(held.items()) for held in reader.entries(terms).values())
    ]
    parts = [Matches(*map(np.concatenate, zip(*places, strict=True))) for places in found if places]
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    return Matches.of(np.unique(np.concatenate([none, *(matches.keys() for matches in parts)])))


def _followed(matched: Matches, places: Matches, number: int, rows: int) -> Matches:
    """Return the matches that are followed by one of these places, ``number`` words later in the same column."""
    # Most rows contain only one of both, so rows are filtered before the places are compared.
    holds = np.zeros(rows, np.bool_)
    holds[places.rows] = True
    first = matched.where(holds[matched.rows]).keys()
    holds[:] = False
    holds[matched.rows] = True
    second = places.where(holds[places.rows]).keys()
    step = number << COLUMN_BITS
    return Matches.of(np.intersect1d(first + step, second, assume_unique=True) - step)
