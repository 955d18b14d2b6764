"""Write blocks: from a batch of chunks, or by merging several blocks without their removed rows."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise

import apsw
import numpy as np

from klaw_fts5.packed.blocks import MAX_BUCKETS, NO_TERM, Block, Rows, read_part, read_rows, sum_up
from klaw_fts5.packed.counting import ChunkBatch
from klaw_fts5.packed.postings import (
    OWN,
    TERM_BITS,
    Codes,
    Piece,
    Postings,
    collect,
    number_mixes,
    pack_buckets,
    pack_own,
)
from klaw_fts5.sql import PackedStatements
from klaw_words.scoring import merge_rows

# Bytes. Reading a bucket of this size takes about as long as finding it.
_BUCKET_BYTES = 4096
# Postings per part of a merge, which takes about 50 bytes of memory per posting.
_PART = 1 << 20
_NARROW = 1 << 16


def write_batch(connection: apsw.Connection, sql: PackedStatements, keys: Sequence[int], counted: ChunkBatch) -> None:
    """Write a batch of chunks, counted in ascending order of keys, as one block."""
    rows = Rows(np.array(keys, dtype=np.int64), counted.lengths, counted.mixes)
    _write(connection, sql, rows, (counted.postings,), _next_id(connection, sql))


def merge(connection: apsw.Connection, sql: PackedStatements, blocks: Sequence[Block]) -> None:
    """Merge blocks into one without dead rows; write none if all rows are dead. Raise DamagedError.

    The new block is written into the pages of the old ones, so that the file hardly grows. Until then it is in memory:
    some 50 MB for the largest.
    """
    blocks = sorted(blocks, key=lambda block: block.first)
    held = [read_rows(connection, sql, block) for block in blocks]
    described = [(rows.keys, rows.lengths, block.dead) for rows, block in zip(held, blocks, strict=True)]
    keys, lengths, places = merge_rows(described)
    mixes, codes = number_mixes([rows.mixes for rows in held])
    moved = [rows.astype(np.uint16) for rows in places]
    parts = list(_parts(connection, sql, blocks, moved, codes)) if len(keys) else []
    next_id = _next_id(connection, sql)
    for block in blocks:
        connection.execute(sql.delete_block, {"block": block.id, "first": block.own_at, "last": block.last_id})
    if parts:
        _write(connection, sql, Rows(keys, lengths, mixes), parts, next_id)


def _parts(
    connection: apsw.Connection,
    sql: PackedStatements,
    blocks: Sequence[Block],
    moved: Sequence[np.ndarray],
    codes: Sequence[Codes],
) -> Iterator[Postings]:
    """Yield the merged postings of blocks, which are sorted by ``first``, one range of terms at a time."""
    living = [block.living() if len(block.dead) else None for block in blocks]
    in_order = all(block.last < following.first for block, following in pairwise(blocks))
    parts = 1 << (sum(block.postings for block in blocks) // _PART).bit_length()
    for part in range(parts):
        pieces = [
            Piece(
                postings,
                to[postings.positions],
                recoded[postings.codes],
                None if alive is None else alive[postings.positions],
            )
            for block, alive, to, recoded in zip(blocks, living, moved, codes, strict=True)
            for postings in read_part(connection, sql, block, part, parts)
        ]
        collected = collect(pieces, in_order=in_order)
        yield collected.where(collected.counts > 0) if any(alive is not None for alive in living) else collected


def _next_id(connection: apsw.Connection, sql: PackedStatements) -> int:
    return int(connection.execute(sql.next_id).get)


def _write(
    connection: apsw.Connection, sql: PackedStatements, rows: Rows, parts: Iterable[Postings], next_id: int
) -> None:
    """Write a block from parts of its postings, terms ascending, into rows from ``next_id`` on."""
    own_at = next_id
    total, rare = 0, []
    for part in parts:
        total += len(part.positions)
        often = part.counts >= OWN
        if often.any():
            own = part.where(often)
            connection.executemany(sql.insert_postings, _own_rows(next_id, own))
            next_id += len(own.terms)
        rare.append(part.where(~often) if often.any() else part)
    buckets = _joined(rare)
    number = _bucket_number(buckets)
    connection.executemany(sql.insert_postings, _bucket_rows(next_id, buckets, number))
    mixes, keys, lengths = _row_blobs(rows)
    sizes = (len(rows.keys), int(rows.lengths.sum()), total, own_at, next_id, number)
    numbers = (secrets.randbits(TERM_BITS), int(rows.keys[0]), int(rows.keys[-1]), *sizes)
    check_sum = sum_up(numbers, mixes + keys + lengths)
    connection.execute(sql.insert_block, (*numbers, check_sum, mixes, keys, lengths))


def _row_blobs(rows: Rows) -> tuple[bytes, bytes, bytes]:
    """Return the blobs of mixes, keys and lengths. Keys are stored only if they have gaps, lengths in 2 or 4 bytes."""
    keys = rows.keys
    without_gap = keys[-1] - keys[0] + 1 == len(keys)
    narrow = int(rows.lengths.max()) < _NARROW
    return (
        rows.mixes.astype("<u4").tobytes(),
        b"" if without_gap else keys.astype("<i8").tobytes(),
        rows.lengths.astype("<u2" if narrow else "<u4").tobytes(),
    )


def _own_rows(first: int, own: Postings) -> Iterator[tuple[int, int, int, int, bytes]]:
    described = zip(count(first), own.terms.tolist(), own.counts.tolist(), pack_own(own), strict=False)
    return ((id_, term, many, sum_up((id_, term, many), data), data) for id_, term, many, data in described)


def _bucket_number(postings: Postings) -> int:
    size = 10 * len(postings.terms) + 3 * len(postings.positions)
    return min(1 << (size // _BUCKET_BYTES).bit_length(), MAX_BUCKETS)


def _bucket_rows(first: int, postings: Postings, number: int) -> Iterator[tuple[int, None, int, int, bytes]]:
    shift = TERM_BITS + 1 - number.bit_length()
    edges = np.searchsorted(postings.terms >> shift, np.arange(number + 1)).tolist()
    for id_, (low, high), data in zip(count(first), pairwise(edges), pack_buckets(postings, edges), strict=False):
        yield id_, None, high - low, sum_up((id_, NO_TERM, high - low), data), data


def _joined(parts: Sequence[Postings]) -> Postings:
    return Postings(
        np.concatenate([part.terms for part in parts] or [np.empty(0, np.int64)]),
        np.concatenate([part.counts for part in parts] or [np.empty(0, np.int64)]),
        np.concatenate([part.positions for part in parts] or [np.empty(0, np.uint16)]),
        np.concatenate([part.codes for part in parts] or [np.empty(0, np.uint8)]),
    )
