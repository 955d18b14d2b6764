"""The encoding of postings: the rows of a block that contain each term, and the term's frequency in each row.

A block has at most 65,536 rows, so a position takes two bytes. The frequencies of a term in a row's text, heading and
context are combined in one *mix*, a number of 32 bits. A posting has a *code*, which is the index of its mix in the
block's list of at most 256 mixes. Code 0 means no occurrence. Scores are therefore computed from the same counts as
FTS5's, with the currently configured weights.

A term with at least :data:`OWN` postings has a blob of its own: the gaps between positions with one byte each (larger
gaps are bridged by postings with code 0), then the codes. Rarer terms share a *bucket*, selected by the first bits of
their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_fts5.errors import DamagedError

#: Rows per block, so that positions have at most 16 bits.
MAX_ROWS = 65_536
#: Postings from which a term has a blob of its own. With fewer, a full block would often need bridges.
OWN = 512
#: Bits of a term's number, which is a hash that is never negative in SQLite.
TERM_BITS = 63

#: The columns text, heading and context.
COLUMNS = 3
#: The number of codes; a code is one byte.
MAX_CODES = 256

_GAP = 255
_SHORT = np.dtype("<u2")
# For text, heading and context: the position of each count in a mix in bits, and the largest count.
_SHIFTS = np.array([0, 12, 22])
_MAX_COUNTS = np.array([4095, 1023, 1023])
# The largest counts if a block has more mixes than codes; they give 16 * 4 * 4 codes.
_COARSE = np.array([15, 3, 3])
# Mixes below this limit are counted with a table.
_LOW_MIX = 1 << 16

Integers: TypeAlias = NDArray[np.int64]
Positions: TypeAlias = NDArray[np.intp]
Codes: TypeAlias = NDArray[np.uint8]
Mixes: TypeAlias = NDArray[np.uint32]
_Number = TypeVar("_Number", bound=np.integer)


@frozen(eq=False)
class Postings:
    """The postings of some terms of a block: ascending ``terms``, each with ``counts`` postings sorted by position.

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
    """Return the indices at which a value differs from the previous one."""
    changed = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return np.flatnonzero(changed)


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the distinct values, ascending. ``np.unique`` does the same, but first imports ``numpy.ma``."""
    ordered = np.sort(values)
    return ordered[changes(ordered)]


def mix_runs(counts: Integers, columns: Integers, firsts: Integers) -> Mixes:
    """Return one mix for each term in each row, given the term's count in each column.

    ``columns`` are 0 for the text, 1 for the heading and 2 for the context; ``firsts`` are the indices at which a row
    starts. Counts are limited to 4,095 in the text and to 1,023 in the other columns.
    """
    mixed = np.minimum(counts, _MAX_COUNTS[columns]) << _SHIFTS[columns]
    return (np.add.reduceat(mixed, firsts) if len(firsts) else mixed).astype(np.uint32)


def unmix(mixes: Mixes) -> Mixes:
    """Return the counts in the text, the heading and the context, shape (3, n)."""
    counts: Mixes = ((mixes[None, :] >> _SHIFTS[:, None]) & _MAX_COUNTS[:, None]).astype(np.uint32)
    return counts


def number_mixes(tables: Sequence[Mixes]) -> tuple[Mixes, list[Codes]]:
    """Combine several lists of mixes; return the combined list, and the new codes for each of the lists.

    If there are more than 255 mixes, counts are limited more strictly, for example to 15 in the text.
    """
    every = distinct(np.concatenate([np.zeros(1, np.uint32), *tables]))
    if len(every) > MAX_CODES:
        coarse = (np.minimum(unmix(every), _COARSE[:, None]) << _SHIFTS[:, None]).sum(axis=0, dtype=np.uint32)
        merged, numbers = np.unique(coarse, return_inverse=True)
    else:
        merged, numbers = every, np.arange(len(every))
    codes = numbers.astype(np.uint8)
    return merged, [codes[np.searchsorted(every, table)] for table in tables]


def encode_mixes(mixed: Mixes) -> tuple[Mixes, Codes]:
    """Return the distinct mixes as a block's list, and the code of each mix."""
    if len(mixed) and int(mixed.max()) >= _LOW_MIX:
        found = distinct(mixed)
        mixes, (codes,) = number_mixes([found])
        return mixes, codes[np.searchsorted(found, mixed)]
    # Low mixes, of words that are not in the context, are looked up in a table instead of searched.
    held = np.bincount(mixed, minlength=1)
    found = np.flatnonzero(held).astype(np.uint32)
    mixes, (codes,) = number_mixes([found])
    code_of = np.zeros(len(held), dtype=np.uint8)
    code_of[found] = codes
    return mixes, code_of[mixed]


def pack_own(postings: Postings) -> Iterator[bytes]:
    """Yield the own blob of each term."""
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
    """Return the positions and codes of a term's own blob, with bridges. Raise DamagedError."""
    size, odd = divmod(len(data), 2)
    positions = np.cumsum(np.frombuffer(data, np.uint8, count=size), dtype=np.intp)
    if odd or not size or positions[-1] >= rows:
        raise DamagedError("a list of postings does not fit its block")
    return positions, np.frombuffer(data, np.uint8, offset=size)


def unpack_all_own(counts: Sequence[int], blobs: Sequence[bytes], rows: Sequence[int]) -> list[tuple[bytes, bytes]]:
    """Return the positions and codes of several own blobs, without bridges, in the bytes of a bucket's format.

    ``counts`` are the numbers of postings of the blobs, and ``rows`` those of rows of their blocks. Raise DamagedError.
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
    """Yield the bucket of the terms between each two edges: number of terms, terms, counts, positions and codes.

    Numbers are little-endian. ``edges`` are ascending indices in ``postings.terms``.
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
    """Return the postings of one or several buckets in order. Raise DamagedError."""
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
    """Return the bytes of the positions and codes of one term of a bucket; empty if the bucket does not have the term.

    ``wanted`` is the term's number in 8 bytes; ``rows`` is the number of rows of the block. Raise DamagedError. No
    arrays are created, because a search picks dozens of terms.
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
    """Postings to copy to another block, with their new positions and codes.

    ``kept`` selects the postings to copy; None means all.
    """

    postings: Postings
    positions: NDArray[np.uint16]
    codes: Codes
    kept: NDArray[np.bool_] | None = None

    @property
    def kept_counts(self) -> Integers:
        """Return the number of kept postings of each term, shape (t,)."""
        counts = self.postings.counts
        if self.kept is None:
            return counts
        until = np.append(0, np.cumsum(self.kept))
        ends = np.cumsum(counts)
        kept: Integers = until[ends] - until[ends - counts]
        return kept


def collect(pieces: Sequence[Piece], *, in_order: bool) -> Postings:
    """Merge pieces into the postings of a new block, or of a part of it.

    ``in_order``: no position of a term is larger than one in a later piece. Then nothing is sorted, which takes a third
    of the time.
    """
    terms = np.concatenate([piece.postings.terms for piece in pieces])
    terms.sort(kind="stable")  # the terms of each piece are sorted already, and so are the postings
    terms = terms[changes(terms)]
    if in_order:
        return _appended(pieces, terms)
    packed = np.concatenate([_packed(piece, terms) for piece in pieces])
    packed.sort(kind="stable")
    return Postings(
        terms,
        np.bincount(packed >> 24, minlength=len(terms)),
        ((packed >> 8) & 0xFFFF).astype(np.uint16),
        (packed & 0xFF).astype(np.uint8),
    )


def _appended(pieces: Sequence[Piece], terms: Integers) -> Postings:
    """Append the postings of each piece to those of the same terms in the pieces before it."""
    ranks = [np.searchsorted(terms, piece.postings.terms) for piece in pieces]
    kept = [piece.kept_counts for piece in pieces]
    counts = np.zeros(len(terms), dtype=np.int64)
    for rank, held in zip(ranks, kept, strict=True):
        counts[rank] += held  # a piece has each term once
    free = np.cumsum(counts) - counts
    positions = np.empty(int(counts.sum()), dtype=np.uint16)
    codes = np.empty(len(positions), dtype=np.uint8)
    for piece, rank, held in zip(pieces, ranks, kept, strict=True):
        places = np.repeat(free[rank] - (np.cumsum(held) - held), held)
        places += np.arange(len(places))
        everything = slice(None) if piece.kept is None else piece.kept
        positions[places], codes[places] = piece.positions[everything], piece.codes[everything]
        free[rank] += held
    return Postings(terms, counts, positions, codes)


def _packed(piece: Piece, terms: Integers) -> Integers:
    """Return one number per posting that sorts by term, position and code."""
    packed: Integers = np.repeat(np.searchsorted(terms, piece.postings.terms) << 24, piece.postings.counts)
    packed |= piece.positions.astype(np.int64) << 8
    packed |= piece.codes
    return packed if piece.kept is None else packed[piece.kept]
