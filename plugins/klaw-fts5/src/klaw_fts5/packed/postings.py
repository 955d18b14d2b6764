"""Postings and how they are written: which terms stand in which rows of a block, and how often.

A block holds at most 65,536 rows, so that a position is two bytes. How often a term stands in a row's heading, text
and context is one *mix*, a number of 32 bits; a posting names its mix by a *code*, a place in the block's own list of
at most 256 of them. Code 0 is no occurrence at all. So scores are computed from the very counts that FTS5 has, with
whatever weights the configuration has today.

A term with :data:`OWN` postings or more has a blob of its own: gaps between positions in one byte each (a larger gap is
bridged by postings of code 0), then codes. The rarer ones share a *bucket*, by the first bits of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_fts5.packed.errors import DamagedError

#: Positions of at most 16 bits.
MAX_ROWS = 65_536
#: From so many postings on a term has a blob of its own: fewer would often need bridges in a full block.
OWN = 512
#: Terms are numbered by hashes of so many bits: never negative in SQLite.
TERM_BITS = 63

#: Text, heading, context.
COLUMNS = 3
#: A code is a byte.
MAX_CODES = 256

_GAP = 255
_SHORT = np.dtype("<u2")
# Text, heading, context: where each count stands in a mix, and the largest that fits.
_SHIFTS = np.array([0, 12, 22])
_LARGEST = np.array([4095, 1023, 1023])
# Where a block has more mixes than codes, counts are cut at these: 16 * 4 * 4 codes.
_COARSE = np.array([15, 3, 3])
# A table of so many is no larger than what it is used for.
_LOW_MIX = 1 << 16

Integers: TypeAlias = NDArray[np.int64]
Positions: TypeAlias = NDArray[np.intp]
Codes: TypeAlias = NDArray[np.uint8]
Mixes: TypeAlias = NDArray[np.uint32]


@frozen(eq=False)
class Postings:
    """Some terms of a block: ``terms`` ascending, and for each so many postings, in order of position.

    Shapes: ``terms`` and ``counts`` (t,), ``positions`` and ``codes`` (sum of ``counts``,).
    """

    terms: Integers
    counts: Integers
    positions: NDArray[np.uint16]
    codes: Codes

    def where(self, chosen: NDArray[np.bool_]) -> Postings:
        """Return the postings of the chosen terms."""
        kept = np.repeat(chosen, self.counts)
        return Postings(self.terms[chosen], self.counts[chosen], self.positions[kept], self.codes[kept])


def changes(values: NDArray[np.integer]) -> Integers:
    """Return the places at which something else stands than before."""
    changed = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return np.flatnonzero(changed)


def mix_runs(counts: Integers, columns: Integers, firsts: Integers) -> Mixes:
    """Return one mix for each term in each row, given how often it stands in each column, one row after the other.

    ``columns`` are 0 for the text, 1 for the heading, 2 for the context; ``firsts`` says where each row's begin. More
    than 4,095 in the text, or 1,023 elsewhere, count as so many.
    """
    mixed = np.minimum(counts, _LARGEST[columns]) << _SHIFTS[columns]
    return (np.add.reduceat(mixed, firsts) if len(firsts) else mixed).astype(np.uint32)


def unmix(mixes: Mixes) -> Mixes:
    """Return how often a term stands in the text, the heading and the context, shape (3, n)."""
    counts: Mixes = ((mixes[None, :] >> _SHIFTS[:, None]) & _LARGEST[:, None]).astype(np.uint32)
    return counts


def number_mixes(tables: Sequence[Mixes]) -> tuple[Mixes, list[Codes]]:
    """Return one list of mixes for several, and for each of them what its codes have become.

    A mix that finds no place, which takes more than 255 in one block, is counted coarsely: at most 15 in the text.
    """
    every = np.unique(np.concatenate([np.zeros(1, np.uint32), *tables]))
    if len(every) > MAX_CODES:
        coarse = (np.minimum(unmix(every), _COARSE[:, None]) << _SHIFTS[:, None]).sum(axis=0, dtype=np.uint32)
        merged, numbers = np.unique(coarse, return_inverse=True)
    else:
        merged, numbers = every, np.arange(len(every))
    codes = numbers.astype(np.uint8)
    return merged, [codes[np.searchsorted(every, table)] for table in tables]


def encode_mixes(mixed: Mixes) -> tuple[Mixes, Codes]:
    """Return the distinct ones of many mixes as a block lists them, and the code of each."""
    if len(mixed) and int(mixed.max()) >= _LOW_MIX:
        distinct = np.unique(mixed)
        mixes, (codes,) = number_mixes([distinct])
        return mixes, codes[np.searchsorted(distinct, mixed)]
    # Low ones, of words that the context lacks, are looked up instead of searched for.
    held = np.bincount(mixed, minlength=1)
    distinct = np.flatnonzero(held).astype(np.uint32)
    mixes, (codes,) = number_mixes([distinct])
    code_of = np.zeros(len(held), dtype=np.uint8)
    code_of[distinct] = codes
    return mixes, code_of[mixed]


def pack_own(postings: Postings) -> Iterator[bytes]:
    """Yield the blob of each term."""
    ends = np.cumsum(postings.counts)
    starts = ends - postings.counts
    gaps = np.diff(postings.positions.astype(np.int64), prepend=0)
    gaps[starts] = postings.positions[starts]
    bridges = np.maximum((gaps - 1) // _GAP, 0)
    places = np.cumsum(bridges + 1) - 1
    packed = np.full(int(places[-1]) + 1, _GAP, dtype=np.uint8)
    packed[places] = gaps - _GAP * bridges
    spaced = np.zeros(len(packed), dtype=np.uint8)
    spaced[places] = postings.codes
    steps, codes = packed.tobytes(), spaced.tobytes()
    for start, end in pairwise([0, *(places[ends - 1] + 1).tolist()]):
        yield steps[start:end] + codes[start:end]


def unpack_own(data: bytes, rows: int) -> tuple[Positions, Codes]:
    """Return positions and codes of a term's blob, bridges included. Raise DamagedError."""
    size, odd = divmod(len(data), 2)
    positions = np.cumsum(np.frombuffer(data, np.uint8, count=size), dtype=np.intp)
    if odd or not size or positions[-1] >= rows:
        raise DamagedError("a list of postings does not fit its block")
    return positions, np.frombuffer(data, np.uint8, offset=size)


def unpack_all_own(counts: Sequence[int], blobs: Sequence[bytes], rows: Sequence[int]) -> list[tuple[bytes, bytes]]:
    """Return positions and codes, in bytes as a bucket has them, of terms' own blobs, without bridges.

    Given are how many postings each has and how many rows its block has. Raise DamagedError.
    """
    if any(len(blob) % 2 or not blob for blob in blobs):
        raise DamagedError("a list of postings does not fit its block")
    sizes = [len(blob) // 2 for blob in blobs]
    codes = np.frombuffer(b"".join([blob[size:] for blob, size in zip(blobs, sizes, strict=True)]), np.uint8)
    steps = np.frombuffer(b"".join([blob[:size] for blob, size in zip(blobs, sizes, strict=True)]), np.uint8)
    positions = np.cumsum(steps, dtype=np.int64)
    starts = [0, *accumulate(sizes)]
    lasts = positions[[end - 1 for end in starts[1:]]]
    before = np.append(0, lasts[:-1])
    if (lasts - before >= rows).any():
        raise DamagedError("a list of postings does not fit its block")
    positions -= np.repeat(before, sizes)
    real = codes > 0
    if np.add.reduceat(real, starts[:-1], dtype=np.int64).tolist() != list(counts):
        raise DamagedError("a list of postings is not as long as it says")
    if len(codes) > sum(counts):
        positions, codes = positions[real], codes[real]
    listed, coded = positions.astype(_SHORT).tobytes(), codes.tobytes()
    return [(listed[2 * start : 2 * end], coded[start:end]) for start, end in pairwise([0, *accumulate(counts)])]


def pack_buckets(postings: Postings, edges: Sequence[int]) -> Iterator[bytes]:
    """Yield the blob of the terms between each two edges: their number, terms, counts, positions, codes; little-endian.

    ``edges`` are places in ``postings.terms``, ascending.
    """
    cuts = np.append(0, np.cumsum(postings.counts))[list(edges)].tolist()
    terms, counts = postings.terms.astype("<i8").tobytes(), postings.counts.astype("<u2").tobytes()
    positions, codes = postings.positions.astype("<u2").tobytes(), postings.codes.tobytes()
    for (low, high), (start, end) in zip(pairwise(edges), pairwise(cuts), strict=True):
        yield b"".join(
            (
                (high - low).to_bytes(4, "little"),
                terms[8 * low : 8 * high],
                counts[2 * low : 2 * high],
                positions[2 * start : 2 * end],
                codes[start:end],
            )
        )


def unpack_buckets(buckets: Sequence[bytes], rows: int) -> Postings:
    """Return what :func:`pack_buckets` wrote, of one bucket or several in order. Raise DamagedError."""
    terms, counts, positions, codes = [], [], [], []
    for data in buckets:
        size = int.from_bytes(data[:4], "little")
        start = 4 + 10 * size
        total, odd = divmod(len(data) - start, 3)
        if total < 0 or odd:
            raise DamagedError("a bucket of postings is not as long as it says")
        terms.append(np.frombuffer(data, "<i8", size, 4))
        counts.append(np.frombuffer(data, "<u2", size, 4 + 8 * size))
        positions.append(np.frombuffer(data, "<u2", total, start))
        codes.append(np.frombuffer(data, np.uint8, total, start + 2 * total))
    found = Postings(
        np.concatenate(terms), np.concatenate(counts).astype(np.int64), np.concatenate(positions), np.concatenate(codes)
    )
    if int(found.counts.sum()) != len(found.positions):
        raise DamagedError("a bucket of postings is not as long as it says")
    if len(found.positions) and int(found.positions.max()) >= rows:
        raise DamagedError("a bucket of postings does not fit its block")
    return found


def pick(data: bytes, wanted: bytes, rows: int) -> tuple[bytes, bytes]:
    """Return positions and codes, as a bucket's blob has them, of a term, given in 8 bytes; nothing if it is not there.

    ``rows`` is how many its block has. Raise DamagedError. A search picks some dozens: no array is made for each.
    """
    size = int.from_bytes(data[:4], "little")
    counts = 4 + 8 * size
    found = data.find(wanted, 4, counts)
    while found > 0 and (found - 4) % 8:
        found = data.find(wanted, found + 1, counts)
    start = counts + 2 * size
    if len(data) < start:
        raise DamagedError("a bucket of postings ends early")
    if found < 0:
        return b"", b""
    own = counts + (found - 4) // 4
    first = sum(data[counts:own:2]) + 256 * sum(data[counts + 1 : own : 2])
    end = first + data[own] + 256 * data[own + 1]
    total = (len(data) - start) // 3
    if not first < end <= total:
        raise DamagedError("a bucket of postings is not as long as it says")
    last = start + 2 * end
    if data[last - 2] + 256 * data[last - 1] >= rows:
        raise DamagedError("a bucket of postings does not fit its block")
    codes = start + 2 * total
    return data[start + 2 * first : last], data[codes + first : codes + end]


@frozen(eq=False)
class Piece:
    """Postings on their way into another block: with the positions and codes that they will have there.

    ``kept`` says which of them go there at all, None for all.
    """

    postings: Postings
    positions: NDArray[np.uint16]
    codes: Codes
    kept: NDArray[np.bool_] | None = None


def collect(pieces: Sequence[Piece]) -> Postings:
    """Return the postings of a new block, or of a part of it."""
    terms = np.concatenate([piece.postings.terms for piece in pieces])
    terms.sort(kind="stable")  # they are in order already, block by block, and so are the postings
    terms = terms[changes(terms)]
    packed = np.concatenate([_packed(piece, terms) for piece in pieces])
    packed.sort(kind="stable")
    return Postings(
        terms,
        np.bincount(packed >> 24, minlength=len(terms)),
        ((packed >> 8) & 0xFFFF).astype(np.uint16),
        (packed & 0xFF).astype(np.uint8),
    )


def _packed(piece: Piece, terms: Integers) -> Integers:
    """Return one number a posting, that sorts as it should: its term's place, its position, its code."""
    packed: Integers = np.repeat(np.searchsorted(terms, piece.postings.terms) << 24, piece.postings.counts)
    packed |= piece.positions.astype(np.int64) << 8
    packed |= piece.codes
    return packed if piece.kept is None else packed[piece.kept]
