"""Read blocks of rows, and their postings, from the collection's tables."""

from __future__ import annotations

from array import array
from bisect import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, TypeAlias
from zlib import crc32

import apsw
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_fts5.errors import DamagedError
from klaw_fts5.packed.postings import (
    MAX_ROWS,
    TERM_BITS,
    Codes,
    Mixes,
    Positions,
    Postings,
    pick,
    unpack_all_own,
    unpack_buckets,
    unpack_own,
)
from klaw_fts5.sql import PackedStatements

_NO_POSITIONS = np.empty(0, np.uint16)
# The types of the dead rows' tokens and positions; None if no row is dead.
_TYPES_OF_DEAD = ((NoneType, NoneType), (int, bytes))
#: The maximum number of buckets of a block; this number is always a power of two.
MAX_BUCKETS = 1 << 14
#: Used instead of a term in the checksum of a bucket.
NO_TERM = -1

#: The blobs of one term: its row in the table and its count, by the index of each block with such a blob.
Own: TypeAlias = Mapping[int, tuple[int, int]]


@frozen(eq=False)
class Block:
    """The row of a block. ``dead`` are the positions of removed rows, ascending.

    The block's rows in the table of postings are consecutive. From ``own_at`` on they are blobs of single terms, sorted
    by term; from ``buckets_at`` on they are its ``buckets``, whose number is a power of two.
    """

    id: int
    first: int
    last: int
    rows: int
    tokens: int
    postings: int
    own_at: int
    buckets_at: int
    buckets: int
    dead: NDArray[np.uint16] = field(default=_NO_POSITIONS)
    dead_tokens: int = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the values that never change; the checksum covers them and the rows."""
        sizes = (self.first, self.last, self.rows, self.tokens, self.postings)
        return (self.id, *sizes, self.own_at, self.buckets_at, self.buckets)

    @property
    def alive(self) -> int:
        """Return the number of live rows."""
        return self.rows - len(self.dead)

    @property
    def last_id(self) -> int:
        """Return the id of the block's last row in the table of postings."""
        return self.buckets_at + self.buckets - 1

    def bucket_of(self, term: int) -> int:
        """Return the id of the bucket of a term that has no blob of its own."""
        return self.buckets_at + (term * self.buckets >> TERM_BITS)

    def living(self) -> NDArray[np.bool_]:
        """Return which rows are live, shape (rows,)."""
        living = np.ones(self.rows, dtype=np.bool_)
        living[self.dead] = False
        return living


@frozen(eq=False)
class Rows:
    """A block's rows: ascending ``keys`` and ``lengths`` in tokens, shape (rows,), and the ``mixes`` of its codes.

    ``numbers`` are the numbers of the block for which they were read.
    """

    keys: Keys
    lengths: NDArray[np.integer]
    mixes: Mixes
    numbers: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Return the approximate size in bytes."""
        return 1024 + self.keys.nbytes + self.lengths.nbytes + self.mixes.nbytes


def read_blocks(connection: apsw.Connection, sql: PackedStatements) -> tuple[Block, ...]:
    """Return all blocks, the largest first. Raise DamagedError."""
    blocks = []
    for row in connection.execute(sql.blocks):
        id_, first, last, rows, tokens, postings, own_at, buckets_at, buckets, dead_tokens, positions = row
        plain = (id_, first, last, rows, tokens, postings, own_at, buckets_at, buckets)
        # SQLite does not enforce column types.
        if set(map(type, plain)) != {int} or (type(dead_tokens), type(positions)) not in _TYPES_OF_DEAD:
            raise DamagedError(f"block {id_} is not as it was written")
        size, odd = divmod(len(positions or b""), 2)
        block = Block(*plain, np.frombuffer(positions or b"", "<u2", size), dead_tokens or 0)
        if odd or not 0 < block.rows <= MAX_ROWS or not 0 < block.buckets <= MAX_BUCKETS:
            raise DamagedError(f"block {block.id} is not as it was written")
        if size and (int(block.dead[-1]) >= block.rows or (block.dead[1:] <= block.dead[:-1]).any()):
            raise DamagedError(f"block {block.id} lost rows that it never had")
        blocks.append(block)
    return tuple(blocks)


def read_rows(connection: apsw.Connection, sql: PackedStatements, block: Block) -> Rows:
    """Return keys, lengths and mixes of a block. Raise DamagedError."""
    row = connection.execute(sql.block, (block.id,)).fetchone()
    if row is None or tuple(map(type, row[1:])) != (bytes, bytes, bytes):
        raise DamagedError(f"the rows of block {block.id} are not as they were written")
    check_sum, mixes, keys, lengths = row
    _require_sound(block.numbers, check_sum, mixes + keys + lengths)
    # Keys without a gap are not stored.
    if not keys and block.last - block.first + 1 != block.rows:
        raise DamagedError(f"block {block.id} has not the keys that it says")
    listed = np.frombuffer(keys, "<i8") if keys else np.arange(block.first, block.last + 1)
    measured = np.frombuffer(lengths, "<u2" if len(lengths) == 2 * block.rows else "<u4")
    found = Rows(listed, measured, np.frombuffer(mixes, "<u4"), block.numbers)
    require_agreement(block, found)
    return found


def require_agreement(block: Block, rows: Rows) -> None:
    """Check that a block and its dead rows match its rows. Raise DamagedError."""
    if rows.numbers != block.numbers:
        raise DamagedError(f"block {block.id} is not as it was written")
    if len(rows.keys) != block.rows or len(rows.lengths) != block.rows:
        raise DamagedError(f"block {block.id} has not as many rows as it says")
    if (rows.keys[0], rows.keys[-1]) != (block.first, block.last):
        raise DamagedError(f"block {block.id} has not the keys that it says")
    if (rows.lengths.sum(), rows.lengths[block.dead].sum()) != (block.tokens, block.dead_tokens):
        raise DamagedError(f"block {block.id} has not as many words as it says")


@frozen(eq=False)
class PostingLists:
    """The postings of terms in blocks, with dead rows: for each term, those of one block after the other.

    ``sizes`` are the numbers of postings per term and block; ``positions`` and ``codes`` have one entry per posting.
    """

    sizes: tuple[int, ...]
    positions: NDArray[np.uint16]
    codes: Codes


def read_own(
    connection: apsw.Connection, sql: PackedStatements, blocks: Sequence[Block], terms: Collection[int]
) -> dict[int, Own]:
    """Return for each of these terms the blocks in which it has a blob of its own. Raise DamagedError."""
    found: dict[int, dict[int, tuple[int, int]]] = {term: {} for term in terms}
    starts = sorted((block.own_at, place) for place, block in enumerate(blocks))
    for term, row, count in connection.execute(sql.own, (apsw.carray(array("q", terms)),)):
        place = starts[bisect(starts, (row, len(blocks))) - 1][1] if starts else 0
        if not starts or not blocks[place].own_at <= row < blocks[place].buckets_at or not isinstance(count, int):
            raise DamagedError("postings of a block that is not there")
        found[term][place] = (row, count)
    return dict(found)


def read_postings(
    connection: apsw.Connection, sql: PackedStatements, blocks: Sequence[Block], own: Mapping[int, Own]
) -> PostingLists:
    """Return the postings of terms in each block, given the result of :func:`read_own`. Raise DamagedError."""
    ids = [
        held[place][0] if place in held else block.bucket_of(term)
        for term, held in own.items()
        for place, block in enumerate(blocks)
    ]
    data = _read_sound(connection, sql, array("q", sorted(set(ids))))
    found: list[tuple[bytes, bytes]] = []
    alone: list[tuple[int, int, bytes, int]] = []
    rows = iter(ids)
    for term, held in own.items():
        wanted = term.to_bytes(8, "little")
        for place, (block, row) in enumerate(zip(blocks, rows, strict=False)):
            count, blob = data[row]
            if place in held:
                alone.append((len(found), count, blob, block.rows))
                found.append((b"", b""))
            else:
                found.append(pick(blob, wanted, block.rows))
    if alone:
        numbers, *described = zip(*alone, strict=True)
        for number, some in zip(numbers, unpack_all_own(*described), strict=True):
            found[number] = some
    positions, codes = zip(*found, strict=True)
    return PostingLists(
        tuple(map(len, codes)), np.frombuffer(b"".join(positions), "<u2"), np.frombuffer(b"".join(codes), np.uint8)
    )


def _read_sound(connection: apsw.Connection, sql: PackedStatements, wanted: array[int]) -> dict[int, tuple[int, bytes]]:
    """Return count and blob of these rows of the table of postings. Raise DamagedError."""
    data: dict[int, tuple[int, bytes]] = {}
    for row, term, count, check_sum, blob in connection.execute(sql.postings, (apsw.carray(wanted),)):
        _require_sound((row, NO_TERM if term is None else term, count), check_sum, blob)
        data[row] = (count, blob)
    if len(data) != len(wanted):
        raise DamagedError("some postings are not there")
    return data


def _unpack(blob: bytes, count: int, block: Block) -> tuple[Positions, Codes]:
    """Return the positions and codes of a term's own blob, without bridges. Raise DamagedError."""
    positions, codes = unpack_own(blob, block.rows)
    if len(codes) > count:
        real = codes > 0
        positions, codes = positions[real], codes[real]
    if len(codes) != count or not codes.all():
        raise DamagedError("a list of postings is not as long as it says")
    return positions, codes


def read_part(
    connection: apsw.Connection, sql: PackedStatements, block: Block, part: int, parts: int
) -> Iterator[Postings]:
    """Yield a block's postings of terms in the ``part``-th of equal ``parts`` of all numbers. Raise DamagedError.

    ``parts`` is a power of two. First come the terms with a blob of their own, then the others.
    """
    low, high = (part << TERM_BITS) // parts, ((part + 1) << TERM_BITS) // parts - 1
    own = (block.own_at, block.buckets_at, low, high)
    often = [_read_own(block, row) for row in connection.execute(sql.own_span, own)]
    if often:
        yield Postings(*map(np.concatenate, zip(*often, strict=True)))
    first, last = block.bucket_of(low), block.bucket_of(high)
    found = []
    for row, count, check_sum, data in connection.execute(sql.bucket_span, (first, last)):
        _require_sound((row, NO_TERM, count), check_sum, data)
        found.append(data)
    if len(found) != last - first + 1:
        raise DamagedError("some postings are not there")
    buckets = unpack_buckets(found, block.rows)
    yield buckets if parts <= block.buckets else buckets.where((buckets.terms >= low) & (buckets.terms <= high))


def _read_own(block: Block, row: tuple[int, int, int, int, bytes]) -> tuple[NDArray[Any], ...]:
    id_, term, count, check_sum, data = row
    _require_sound((id_, term, count), check_sum, data)
    positions, codes = _unpack(data, count, block)
    return np.array([term]), np.array([count]), positions.astype(np.uint16), codes


def sum_up(numbers: Sequence[int], data: bytes) -> int:
    """Return the checksum of a row: of its numbers (:data:`NO_TERM` for a missing term) and its joined blobs."""
    return crc32(data, crc32(array("q", numbers)))


def _require_sound(numbers: Sequence[int], check_sum: int, data: bytes) -> None:
    try:
        sound = sum_up(numbers, data) == check_sum
    except TypeError:  # SQLite does not enforce column types
        sound = False
    if not sound:
        raise DamagedError("a row is not as it was written")
