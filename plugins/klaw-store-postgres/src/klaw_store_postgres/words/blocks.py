"""Encode and decode blocks. A block is a blob with consecutive terms of a segment and their postings.

A *place* is one occurrence of a term: a row of the segment and a *spot* in that row. A spot is the position of the word
in its column, with the number of the column in the lowest two bits. Rows are stored as differences. All differences of
a block have the same width (1, 2 or 4 bytes), and so have all spots. A block of a new segment contains hundreds of
terms; a frequent term of a large segment has its own block.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from struct import Struct
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

#: The number of bits of a spot, and of the column in its lowest bits.
SPOT_BITS, COLUMN_BITS = 22, 2
#: The last position that is indexed. Positions after it are left free for the words of a phrase.
LAST_POSITION = (1 << SPOT_BITS - COLUMN_BITS) - 1_000

# The number of terms, the bytes per difference, and the bytes per spot.
_HEAD = Struct("<IBB")
_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}
# A term with at least _MANY_PLACES places has its own block; other blocks have about _BYTES bytes.
_MANY_PLACES, _BYTES = 512, 4_096


@frozen(eq=False)
class Places:
    """The places of a term in a segment: the first row, the differences of the rows, the spots; shape (n,) each."""

    first: int
    steps: NDArray[Any]
    spots: NDArray[Any]

    def rows(self) -> NDArray[np.int32]:
        """Return the row of each place, ascending; shape (n,)."""
        rows = np.cumsum(self.steps, dtype=np.int32)
        rows += self.first
        return rows

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return 300 + self.steps.nbytes + self.spots.nbytes


@frozen(eq=False)
class Postings:
    """Sorted terms, the number of places of each, and the rows and spots of all places, sorted by term and row."""

    terms: Sequence[bytes]
    counts: NDArray[np.int64]
    rows: NDArray[np.int32]
    spots: NDArray[np.uint32]


def blocks(postings: Postings) -> Iterator[tuple[bytes, int | None, bytes]]:
    """Yield the first term of each block, the number of rows that contain it if it has its own block, and the blob."""
    ends = np.cumsum(postings.counts)
    for first, last in _cut(postings):
        begin, end = (int(ends[first - 1]) if first else 0), int(ends[last - 1])
        counts, rows = postings.counts[first:last], postings.rows[begin:end]
        alone = last - first == 1 and len(rows) >= _MANY_PLACES
        blob = _encode(postings.terms[first:last], counts, rows, postings.spots[begin:end])
        yield postings.terms[first], holders(rows) if alone else None, blob


def holders(rows: NDArray[Any]) -> int:
    """Return the number of distinct values in an ascending array of rows."""
    return int(np.count_nonzero(rows[1:] != rows[:-1])) + bool(len(rows))


def _cut(postings: Postings) -> Iterator[tuple[int, int]]:
    """Yield the range of terms of each block: the first one, and the one after the last."""
    lengths = np.fromiter(map(len, postings.terms), np.int64, len(postings.terms))
    alone = postings.counts >= _MANY_PLACES
    sizes = np.where(alone, 0, lengths + 10 + 6 * postings.counts)
    # A block begins at a term that has its own block, after such a term, and when the previous block is full.
    parts = np.cumsum(sizes) // _BYTES
    begins = np.ones(len(alone), np.bool_)
    begins[1:] = alone[1:] | alone[:-1] | (parts[1:] != parts[:-1])
    yield from pairwise([*np.flatnonzero(begins).tolist(), len(alone)])


def _encode(terms: Sequence[bytes], counts: NDArray[Any], rows: NDArray[Any], spots: NDArray[Any]) -> bytes:
    starts = np.cumsum(counts) - counts
    steps = np.zeros(len(rows), np.int64)
    steps[1:] = np.diff(rows)
    steps[starts] = 0
    steps, spots = _narrowed(steps), _narrowed(spots)
    return b"".join((
        _HEAD.pack(len(terms), steps.itemsize, spots.itemsize),
        np.fromiter(map(len, terms), "<u2", len(terms)).tobytes(),
        counts.astype("<u4").tobytes(),
        rows[starts].astype("<u4").tobytes(),
        *terms,
        steps.tobytes(),
        spots.tobytes(),
    ))  # fmt: skip


def _narrowed(numbers: NDArray[Any]) -> NDArray[Any]:
    most = int(numbers.max(initial=0))
    return numbers.astype(_TYPES[1 if most < 1 << 8 else 2 if most < 1 << 16 else 4])


@frozen(eq=False)
class Block:
    """A decoded block."""

    terms: Sequence[bytes]
    counts: NDArray[Any]
    firsts: NDArray[Any]
    steps: NDArray[Any]
    spots: NDArray[Any]

    @classmethod
    def read(cls, blob: bytes) -> Block:
        """Decode a blob."""
        number, step_bytes, spot_bytes = _HEAD.unpack_from(blob)
        at = _HEAD.size
        lengths = np.frombuffer(blob, "<u2", number, at).tolist()
        counts = np.frombuffer(blob, "<u4", number, at + 2 * number)
        firsts = np.frombuffer(blob, "<u4", number, at + 6 * number)
        ends = list(accumulate(lengths, initial=at + 10 * number))
        terms = [blob[begin:end] for begin, end in pairwise(ends)]
        total, at = int(counts.sum()), ends[-1]
        steps = np.frombuffer(blob, _TYPES[step_bytes], total, at)
        spots = np.frombuffer(blob, _TYPES[spot_bytes], total, at + step_bytes * total)
        return cls(terms, counts, firsts, steps, spots)

    def find(self, term: bytes) -> Places | None:
        """Return the places of a term, None if it is not in the block. They do not keep the block in memory."""
        at = bisect_left(self.terms, term)
        if at == len(self.terms) or self.terms[at] != term:
            return None
        if len(self.terms) == 1:
            return Places(int(self.firsts[0]), self.steps, self.spots)
        begin = int(self.counts[:at].sum())
        some = slice(begin, begin + int(self.counts[at]))
        return Places(int(self.firsts[at]), self.steps[some].copy(), self.spots[some].copy())

    def rows(self) -> NDArray[np.int64]:
        """Return the rows of all places, sorted by term."""
        sums = np.cumsum(self.steps, dtype=np.int64)
        starts = np.cumsum(self.counts) - self.counts
        rows: NDArray[np.int64] = sums + np.repeat(self.firsts - sums[starts], self.counts)
        return rows
