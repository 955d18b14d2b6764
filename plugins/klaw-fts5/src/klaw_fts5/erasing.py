"""Removing the words of deleted rows from FTS5's pages, at the price of the segments that hold them.

FTS5 keeps its words in segments, on levels: what was added last is on the lowest, and eight segments of a level become
one of the next. A deleted row is marked in its segment (a tombstone), and its words go when that is merged.
``optimize`` merges all segments into one; ``merge`` with the setting ``deletemerge`` only the levels in which enough
rows are marked. So a row that was added lately goes with some dozens of others, and any other with the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import apsw
from attrs import frozen

from klaw_fts5.sql import Statements

# What the record of the segments begins with (FTS5_STRUCTURE_V2): a number that changes with the settings, and the sign
# that it counts tombstones (https://sqlite.org/src/file/ext/fts5/fts5_index.c).
_COOKIE_BYTES = 4
_V2 = b"\xff\x00\x00\x01"
# FTS5 chooses a level of which one per cent is marked: it computes in whole numbers.
_PER_CENT = 100


@frozen
class Level:
    """A level of FTS5's segments: how many, their rows, how many of these are marked, and their pages."""

    segments: int
    rows: int
    marked: int
    pages: int
    is_merging: bool


def erase_words(connection: apsw.Connection, sql: Statements) -> None:
    """Let the words of deleted rows leave the pages, inside the caller's transaction."""
    connection.execute(sql.flush)  # what this transaction has added is in no segment yet
    levels = _levels(connection, sql)
    if _is_clean(levels):
        return
    if levels is not None and _is_cheap(levels):
        connection.execute(sql.merge_marked)
        if _is_clean(_levels(connection, sql)):
            return
    connection.execute(sql.optimize)


def _is_clean(levels: Sequence[Level] | None) -> bool:
    return levels is not None and not any(level.marked for level in levels)


def _is_cheap(levels: Sequence[Level]) -> bool:
    """Return whether FTS5 would choose every level with marked rows, and these are less than half of the table."""
    merged = [level for level in levels if level.marked or level.is_merging]
    if any(level.marked * _PER_CENT < level.rows for level in merged if level.marked):
        return False
    return 2 * sum(level.pages for level in merged) < sum(level.pages for level in levels)


def _levels(connection: apsw.Connection, sql: Statements) -> list[Level] | None:
    """Return the levels, lowest first; None if their record is not as this module knows it."""
    record = connection.execute(sql.structure).get
    start = _COOKIE_BYTES + len(_V2)
    if not isinstance(record, bytes) or record[_COOKIE_BYTES:start] != _V2:
        return None
    numbers = _varints(record[start:])
    try:
        level_count, segment_count, _writes = islice(numbers, 3)
        levels = [_level(numbers) for _ in range(level_count)]
    except ValueError:  # too few numbers
        return None
    is_whole = next(numbers, None) is None and sum(level.segments for level in levels) == segment_count
    return levels if is_whole else None


def _level(numbers: Iterator[int]) -> Level:
    """Read a level. Raise ValueError if there are too few numbers."""
    merging, segments = islice(numbers, 2)
    rows = marked = pages = 0
    for _ in range(segments):
        _segment, first, last, _oldest, _newest, pages_of_marks, marks, entries = islice(numbers, 8)
        rows += entries
        marked += max(marks, pages_of_marks)  # a page of marks has one at least
        pages += last - first + 1
    return Level(segments, rows, marked, pages, merging > 0)


def _varints(data: bytes) -> Iterator[int]:
    """Yield variable-length integers: seven bits a byte, the highest first; all but the last byte have the eighth."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            yield value
            value = 0
