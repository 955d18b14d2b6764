"""Writing words: what is added becomes a segment, and small segments become larger ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import log
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from klaw_store_postgres.words.tokens import terms_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from klaw_store_postgres.session import Session

#: A place is a row, a column and a position in it, in one number.
POSITION_BITS, COLUMN_BITS = 20, 2
ROW_SHIFT = POSITION_BITS + COLUMN_BITS
_LAST_POSITION = (1 << POSITION_BITS) - 2

# So many segments of about one size become one; none becomes larger than this.
_MERGED_AT, _FACTOR, _MOST_ROWS = 8, 8, 150_000
# Rows of removed chunks that a segment may have before it is written anew, as a share.
_MOST_DEAD = 0.3

_IN = "tenant = %s AND generation = %s AND collection = %s"


@frozen(eq=False)
class SegmentHead:
    """A segment without its postings: ``dead`` are rows that were removed."""

    id: int
    rows: int
    tokens: int
    dead_tokens: int
    dead: NDArray[np.uint32]


def add(session: Session, collection: str, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Add rows with new keys: each has the treated texts of its columns."""
    if not rows:
        return
    rows = sorted(rows, key=itemgetter(0))
    width = len(rows[0][1])
    found = iter(terms_of([text for _, columns in rows for text in columns]))
    places: dict[bytes, list[int]] = defaultdict(list)
    lengths = []
    for row in range(len(rows)):
        length = 0
        for column in range(width):
            terms = next(found)
            length += len(terms)
            base = row << ROW_SHIFT | column << POSITION_BITS
            for position, term in enumerate(terms[: _LAST_POSITION + 1]):
                places[term].append(base | position)
        lengths.append(length)
    arrays = {term: np.array(held, np.int64) for term, held in places.items()}
    keys = np.array([key for key, _ in rows], np.int64)
    _write(session, collection, keys, np.array(lengths, np.uint32), arrays)
    _merge_full(session, collection)


def remove(session: Session, collection: str, keys: Sequence[int]) -> None:
    """Remove rows; unknown keys are ignored."""
    session.lock(_lock_of(collection))
    sql = f"DELETE FROM word_rows WHERE {_IN} AND key = ANY(%s) RETURNING segment, key"
    gone = sorted(session.rows(sql, (*session.scope, collection, [int(key) for key in keys])))
    for number, group in groupby(gone, key=itemgetter(0)):
        head, held, lengths = _read_segment(session, collection, number)
        rows = np.searchsorted(held, [key for _, key in group])
        dead = np.union1d(head.dead, rows).astype("<u4")
        if len(dead) == head.rows:
            _delete(session, collection, [number])
            continue
        session.run(
            f"UPDATE word_segments SET dead = %s, dead_tokens = %s WHERE {_IN} AND id = %s",
            (dead.tobytes(), int(lengths[dead].sum()), *session.scope, collection, number),
        )
        if len(dead) > _MOST_DEAD * head.rows:
            merge(session, collection, [number])


def erase(session: Session, collection: str) -> None:
    """Write every segment anew that has words of removed rows."""
    session.lock(_lock_of(collection))
    for head in heads(session, collection):
        if len(head.dead):
            merge(session, collection, [head.id])


def clear(session: Session, collection: str) -> None:
    """Remove every row of a collection."""
    session.lock(_lock_of(collection))
    for table in ("word_postings", "word_rows", "word_segments"):
        session.run(f"DELETE FROM {table} WHERE {_IN}", (*session.scope, collection))


def heads(session: Session, collection: str) -> list[SegmentHead]:
    """Return the segments of a collection, oldest first."""
    sql = f"SELECT id, rows, tokens, dead_tokens, dead FROM word_segments WHERE {_IN} ORDER BY id"
    rows = session.rows(sql, (*session.scope, collection))
    return [
        SegmentHead(number, count, tokens, gone, np.frombuffer(dead, "<u4"))
        for number, count, tokens, gone, dead in rows
    ]


def merge(session: Session, collection: str, numbers: Sequence[int]) -> None:
    """Make one segment of several, without what was removed."""
    parts = [_read_segment(session, collection, number) for number in numbers]
    kept = [np.setdiff1d(np.arange(head.rows), head.dead) for head, _, _ in parts]
    keys = np.concatenate([held[rows] for (_, held, _), rows in zip(parts, kept, strict=True)])
    lengths = np.concatenate([sizes[rows] for (_, _, sizes), rows in zip(parts, kept, strict=True)])
    order = np.argsort(keys)
    places = np.empty(len(keys), np.int64)
    places[order] = np.arange(len(keys))
    # The new row of each old one, by segment; -1 of what was removed.
    renumbered: dict[int, NDArray[np.int64]] = {}
    start = 0
    for (head, _, _), rows in zip(parts, kept, strict=True):
        table = np.full(head.rows, -1, np.int64)
        table[rows] = places[start : start + len(rows)]
        start += len(rows)
        renumbered[head.id] = table
    sql = f"SELECT term, segment, places FROM word_postings WHERE {_IN} AND segment = ANY(%s) ORDER BY term"
    read = session.rows(sql, (*session.scope, collection, list(numbers)))
    arrays = {}
    for term, group in groupby(read, key=itemgetter(0)):
        moved = _renumber(group, renumbered)
        if len(moved):
            arrays[bytes(term)] = moved
    _delete(session, collection, numbers)
    _write(session, collection, keys[order], lengths[order], arrays)


def _renumber(group: Iterable[Any], renumbered: Mapping[int, NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the places of one term in the new segment, ascending."""
    found = []
    for _, number, blob in group:
        held = np.frombuffer(blob, "<i8")
        rows = renumbered[number][held >> ROW_SHIFT]
        within = held & ((1 << ROW_SHIFT) - 1)
        found.append((rows << ROW_SHIFT | within)[rows >= 0])
    merged: NDArray[np.int64] = np.sort(np.concatenate(found))
    return merged


def _lock_of(collection: str) -> str:
    return f"words {collection}"


def _merge_full(session: Session, collection: str) -> None:
    """Merge segments of about one size once there are enough of them, and again what that makes.

    Who changes segments is alone. Others add theirs meanwhile, and leave it to the next one to merge them.
    """
    while (full := _full(session, collection)) is not None:
        if not session.try_lock(_lock_of(collection)):
            return
        # Whoever had the lock until now may have merged them.
        full = _full(session, collection)
        if full is not None:
            merge(session, collection, full)


def _full(session: Session, collection: str) -> list[int] | None:
    """Return segments of about one size that are enough to be merged, None if there are none."""
    tiers: dict[int, list[int]] = defaultdict(list)
    for head in heads(session, collection):
        if head.rows * _MERGED_AT <= _MOST_ROWS * _FACTOR:
            tiers[int(log(head.rows, _FACTOR) + 1e-9)].append(head.id)
    return next((numbers for numbers in tiers.values() if len(numbers) >= _MERGED_AT), None)


def _read_segment(
    session: Session, collection: str, number: int
) -> tuple[SegmentHead, NDArray[np.int64], NDArray[np.uint32]]:
    sql = f"SELECT id, rows, tokens, dead_tokens, dead, keys, lengths FROM word_segments WHERE {_IN} AND id = %s"
    row = session.row(sql, (*session.scope, collection, number))
    found, rows, tokens, gone, dead, keys, lengths = row
    head = SegmentHead(found, rows, tokens, gone, np.frombuffer(dead, "<u4"))
    return head, np.frombuffer(keys, "<i8"), np.frombuffer(lengths, "<u4")


def _write(
    session: Session,
    collection: str,
    keys: NDArray[np.int64],
    lengths: NDArray[np.uint32],
    places: Mapping[bytes, NDArray[np.int64]],
) -> None:
    terms = list(places)
    session.run(
        """WITH own AS (
               INSERT INTO word_segments (tenant, generation, collection, id, rows, tokens, keys, lengths)
               VALUES (%s, %s, %s, nextval('word_segment_ids'), %s, %s, %s, %s)
               RETURNING tenant, generation, collection, id
           ), listed AS (
               INSERT INTO word_rows (tenant, generation, collection, key, segment)
               SELECT own.tenant, own.generation, own.collection, new.key, own.id
               FROM own, unnest(%s::bigint[]) AS new (key)
               ON CONFLICT (tenant, generation, collection, key) DO UPDATE SET segment = excluded.segment
           )
           INSERT INTO word_postings (tenant, generation, collection, segment, term, holders, places)
           SELECT own.tenant, own.generation, own.collection, own.id, new.*
           FROM own, unnest(%s::bytea[], %s::integer[], %s::bytea[]) AS new""",
        (*session.scope, collection, len(keys), int(lengths.sum(dtype=np.int64)), keys.astype("<i8").tobytes(),
         lengths.astype("<u4").tobytes(), keys.tolist(), terms, [holders(places[term]) for term in terms],
         [places[term].astype("<i8").tobytes() for term in terms]),
    )  # fmt: skip


def holders(places: NDArray[np.int64]) -> int:
    """Return how many rows there are among ascending places."""
    rows = places >> ROW_SHIFT
    return int(np.count_nonzero(np.diff(rows))) + bool(len(rows))


def _delete(session: Session, collection: str, numbers: Sequence[int]) -> None:
    for table, column in (("word_postings", "segment"), ("word_segments", "id")):
        session.run(
            f"DELETE FROM {table} WHERE {_IN} AND {column} = ANY(%s)", (*session.scope, collection, list(numbers))
        )
