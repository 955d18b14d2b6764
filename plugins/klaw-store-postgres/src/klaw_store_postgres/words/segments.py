"""Write segments: chunks that are added together become a segment, and small segments are merged into larger ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, compress, groupby
from math import log
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from attrs import frozen

from klaw_store_postgres.words.blocks import COLUMN_BITS, LAST_POSITION, SPOT_BITS, Block, Postings, blocks
from klaw_store_postgres.words.tokens import terms_of
from klaw_words.scoring import merge_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.session import Session

# For sorting, a place is one 64-bit number: the number of its term, its row, and its spot.
_ROW_BITS = 18
_MAX_ROWS = 1 << _ROW_BITS
_TERM_SHIFT = _ROW_BITS + SPOT_BITS

# The number of segments of about the same size that are merged, and the largest segments that are still merged.
# Merging needs 30 bytes of memory per token.
_FACTOR = 8
_MAX_MERGED_ROWS, _MAX_MERGED_TOKENS = _MAX_ROWS // _FACTOR, (1 << 24) // _FACTOR
# A segment is rewritten if a larger share of its rows was removed.
_MAX_DEAD_SHARE = 0.3

_IN = "tenant = %s AND generation = %s AND collection = %s"


@frozen(eq=False)
class SegmentHead:
    """A segment without its postings. ``dead`` are the removed rows."""

    id: int
    rows: int
    tokens: int
    dead_tokens: int
    dead: NDArray[np.uint32]


# The id of a segment, and its numbers of rows and tokens.
_Size: TypeAlias = tuple[int, int, int]
# The head of a segment, the keys of its rows, and their numbers of tokens.
_Segment: TypeAlias = "tuple[SegmentHead, NDArray[np.int64], NDArray[np.uint32]]"


def add(session: Session, collection: str, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Add rows: a new key, and the normalized text of each column."""
    rows = sorted(rows, key=itemgetter(0))
    for start in range(0, len(rows), _MAX_ROWS):
        _add_segment(session, collection, rows[start : start + _MAX_ROWS])


def _add_segment(session: Session, collection: str, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    width = len(rows[0][1])
    found = terms_of([text for _, columns in rows for text in columns])
    sizes = np.fromiter(map(len, found), np.int64, len(found))
    terms, numbers = _ordered(set(chain.from_iterable(found)))
    places = np.fromiter(map(numbers.__getitem__, chain.from_iterable(found)), np.int64, int(sizes.sum()))
    cells = np.repeat(np.arange(len(found)), sizes)
    positions = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places <<= _TERM_SHIFT
    places |= cells // width << SPOT_BITS | positions << COLUMN_BITS | cells % width
    keys = np.array([key for key, _ in rows], np.int64)
    lengths = sizes.reshape(-1, width).sum(axis=1).astype(np.uint32)
    there = _write(session, collection, keys, lengths, _postings(terms, places[positions <= LAST_POSITION]))
    _merge_full(session, collection, there)


def _ordered(terms: Iterable[bytes]) -> tuple[list[bytes], dict[bytes, int]]:
    ordered = sorted(terms)
    return ordered, {term: number for number, term in enumerate(ordered)}


def _postings(terms: Sequence[bytes], places: NDArray[np.int64]) -> Postings:
    """Return the postings of places, each a number made of term, row and spot. ``places`` is sorted in place."""
    places.sort()
    rows = (places >> SPOT_BITS).astype(np.int32)
    rows &= _MAX_ROWS - 1
    spots = places.astype(np.uint32)
    spots &= (1 << SPOT_BITS) - 1
    return _counted(terms, places >> _TERM_SHIFT, rows, spots)


def _counted(
    terms: Sequence[bytes], numbers: NDArray[np.int64], rows: NDArray[np.int32], spots: NDArray[np.uint32]
) -> Postings:
    """Return the postings of sorted places; ``numbers`` are the numbers of their terms."""
    counts = np.bincount(numbers, minlength=len(terms))
    return Postings(list(compress(terms, counts.tolist())), counts[counts > 0], rows, spots)


def remove(session: Session, collection: str, keys: Sequence[int]) -> None:
    """Remove rows; unknown keys are ignored."""
    session.lock(_lock_of(collection))
    sql = f"DELETE FROM word_rows WHERE {_IN} AND key = ANY(%s) RETURNING segment, key"
    gone = sorted(session.rows(sql, (*session.scope, collection, [int(key) for key in keys])))
    read = _read_segments(session, collection, sorted({number for number, _ in gone}))
    for number, group in groupby(gone, key=itemgetter(0)):
        head, held, lengths = read[number]
        rows = np.searchsorted(held, [key for _, key in group])
        dead = np.union1d(head.dead, rows).astype("<u4")
        if len(dead) == head.rows:
            _delete(session, collection, [number])
            continue
        session.run(
            f"UPDATE word_segments SET dead = %s, dead_tokens = %s WHERE {_IN} AND id = %s",
            (dead.tobytes(), int(lengths[dead].sum()), *session.scope, collection, number),
        )
        if len(dead) > _MAX_DEAD_SHARE * head.rows:
            merge(session, collection, [number])


def erase(session: Session, collection: str) -> None:
    """Rewrite every segment that contains words of removed rows."""
    session.lock(_lock_of(collection))
    for head in heads(session, collection):
        if len(head.dead):
            merge(session, collection, [head.id])


def clear(session: Session, collection: str) -> None:
    """Remove every row of a collection."""
    session.lock(_lock_of(collection))
    for table in ("word_blocks", "word_rows", "word_segments"):
        session.run(f"DELETE FROM {table} WHERE {_IN}", (*session.scope, collection))


def heads(session: Session, collection: str) -> list[SegmentHead]:
    """Return the segments of a collection, oldest first."""
    sql = f"SELECT id, rows, tokens, dead_tokens, dead FROM word_segments WHERE {_IN} ORDER BY id"
    rows = session.rows(sql, (*session.scope, collection))
    return [
        SegmentHead(number, count, tokens, gone, np.frombuffer(dead, "<u4"))
        for number, count, tokens, gone, dead in rows
    ]


def merge(session: Session, collection: str, numbers: Sequence[int]) -> Sequence[_Size]:
    """Merge segments into one without their removed rows; return the sizes of all segments afterwards."""
    parts = list(_read_segments(session, collection, numbers).values())
    keys, lengths, moved = merge_rows([(held, sizes, head.dead) for head, held, sizes in parts])
    renumbered = {head.id: rows for (head, _, _), rows in zip(parts, moved, strict=True)}
    postings = _renumbered(session, collection, renumbered)
    _delete(session, collection, numbers)
    return _write(session, collection, keys, lengths, postings)


def _renumbered(session: Session, collection: str, renumbered: dict[int, NDArray[np.int64]]) -> Postings:
    """Return the merged postings of segments; ``renumbered`` has the new row of each old row."""
    sql = f"SELECT segment, body FROM word_blocks WHERE {_IN} AND segment = ANY(%s)"
    read = session.rows(sql, (*session.scope, collection, list(renumbered)))
    parts = [(renumbered[number], Block.read(blob)) for number, blob in read]
    terms, numbers = _ordered({term for _, block in parts for term in block.terms})
    if sum(map(len, renumbered.values())) > _MAX_ROWS:  # earlier versions had no limit
        return _sorted_apart(terms, numbers, parts)
    places = [np.empty(0, np.int64)]
    for table, block in parts:
        rows = table[block.rows()]
        whole = np.repeat([numbers[term] << _TERM_SHIFT for term in block.terms], block.counts)
        whole |= rows << SPOT_BITS
        whole |= block.spots
        places.append(whole[rows >= 0])
    return _postings(terms, np.concatenate(places))


def _sorted_apart(
    terms: Sequence[bytes], numbers: dict[bytes, int], parts: Sequence[tuple[NDArray[np.int64], Block]]
) -> Postings:
    """Return the postings of any number of rows. This is slower: terms, rows and spots are sorted as three arrays."""
    held = [np.repeat([numbers[term] for term in block.terms], block.counts) for _, block in parts]
    found = np.concatenate(held)
    rows = np.concatenate([table[block.rows()] for table, block in parts])
    spots = np.concatenate([block.spots for _, block in parts])
    order = np.lexsort((spots, rows, found))
    order = order[rows[order] >= 0]
    return _counted(terms, found[order], rows[order].astype(np.int32), spots[order].astype(np.uint32))


def _lock_of(collection: str) -> str:
    return f"words {collection}"


def _merge_full(session: Session, collection: str, there: Sequence[_Size]) -> None:
    """Merge segments of about the same size if there are enough of them; repeat with the resulting segments.

    Only one transaction at a time changes segments. Others add theirs meanwhile, and a later one merges them.
    """
    while _full(there) is not None:
        if not session.try_lock(_lock_of(collection)):
            return
        # The transaction that had the lock before may have merged them.
        there = [(head.id, head.rows, head.tokens) for head in heads(session, collection)]
        full = _full(there)
        if full is not None:
            there = merge(session, collection, full)


def _full(there: Sequence[_Size]) -> list[int] | None:
    """Return segments of about the same size that are to be merged; None if there are too few."""
    tiers: dict[int, list[int]] = defaultdict(list)
    for number, rows, tokens in there:
        if rows <= _MAX_MERGED_ROWS and tokens <= _MAX_MERGED_TOKENS:
            tiers[int(log(rows, _FACTOR) + 1e-9)].append(number)
    return next((numbers[:_FACTOR] for numbers in tiers.values() if len(numbers) >= _FACTOR), None)


def _read_segments(session: Session, collection: str, numbers: Sequence[int]) -> dict[int, _Segment]:
    """Return segments, oldest first, without their blocks."""
    sql = f"""SELECT id, rows, tokens, dead_tokens, dead, keys, lengths FROM word_segments
              WHERE {_IN} AND id = ANY(%s) ORDER BY id"""
    read = session.rows(sql, (*session.scope, collection, list(numbers)))
    return {
        number: (SegmentHead(number, rows, tokens, gone, np.frombuffer(dead, "<u4")),
                 np.frombuffer(keys, "<i8"), np.frombuffer(lengths, "<u4"))
        for number, rows, tokens, gone, dead, keys, lengths in read
    }  # fmt: skip


def _write(
    session: Session, collection: str, keys: NDArray[np.int64], lengths: NDArray[np.uint32], postings: Postings
) -> Sequence[_Size]:
    """Write a segment; return the sizes of all segments afterwards."""
    return session.rows(
        f"""WITH own AS (
               INSERT INTO word_segments (tenant, generation, collection, id, rows, tokens, keys, lengths)
               VALUES (%s, %s, %s, nextval('word_segment_ids'), %s, %s, %s, %s)
               RETURNING tenant, generation, collection, id, rows, tokens
           ), listed AS (
               INSERT INTO word_rows (tenant, generation, collection, key, segment)
               SELECT own.tenant, own.generation, own.collection, new.key, own.id
               FROM own, unnest(%s::bigint[]) AS new (key)
               ON CONFLICT (tenant, generation, collection, key) DO UPDATE SET segment = excluded.segment
           ), written AS (
               INSERT INTO word_blocks (tenant, generation, collection, segment, first, holders, body)
               SELECT own.tenant, own.generation, own.collection, own.id, new.*
               FROM own, unnest(%s::bytea[], %s::integer[], %s::bytea[]) AS new RETURNING tenant
           )
           SELECT id, rows, tokens FROM word_segments WHERE {_IN} UNION ALL SELECT id, rows, tokens FROM own""",
        (*session.scope, collection, len(keys), int(lengths.sum(dtype=np.int64)), keys.astype("<i8").tobytes(),
         lengths.astype("<u4").tobytes(), keys.tolist(), *_columns(postings), *session.scope, collection),
    )  # fmt: skip


def write_blocks(session: Session, segment: Sequence[object], postings: Postings) -> None:
    """Write the blocks of a segment: its tenant, generation, collection and id."""
    session.run(
        """INSERT INTO word_blocks (tenant, generation, collection, segment, first, holders, body)
           SELECT %s, %s, %s, %s, new.* FROM unnest(%s::bytea[], %s::integer[], %s::bytea[]) AS new""",
        (*segment, *_columns(postings)),
    )


def _columns(postings: Postings) -> tuple[list[bytes], list[int | None], list[bytes]]:
    firsts, held, bodies = zip(*blocks(postings), strict=True) if len(postings.terms) else ((), (), ())
    return list(firsts), list(held), list(bodies)


def _delete(session: Session, collection: str, numbers: Sequence[int]) -> None:
    for table, column in (("word_blocks", "segment"), ("word_segments", "id")):
        session.run(
            f"DELETE FROM {table} WHERE {_IN} AND {column} = ANY(%s)", (*session.scope, collection, list(numbers))
        )
