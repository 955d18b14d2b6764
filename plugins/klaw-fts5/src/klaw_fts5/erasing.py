"""Remove the words of deleted rows from FTS5's pages by merging the segments that contain them.

FTS5 stores words in segments on levels. New segments are on the lowest level, and eight segments of a level are merged
into one of the next level. A deleted row is only marked in its segment (a tombstone); its words are removed when the
segment is merged. ``optimize`` merges all segments into one. ``merge`` with the setting ``deletemerge`` merges only the
levels with enough marked rows. So erasing a recently added row rewrites a few dozen rows, and erasing an older row
rewrites the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import apsw
from attrs import frozen

from klaw_fts5.sql import Statements

# The record of the segments starts with a number that changes with the settings, and with the marker FTS5_STRUCTURE_V2,
# which means that tombstones are counted (https://sqlite.org/src/file/ext/fts5/fts5_index.c).
_COOKIE_BYTES = 4
_V2 = b"\xff\x00\x00\x01"
# FTS5 merges a level if at least one percent of its rows is marked; it computes with integers.
_PER_CENT = 100


@frozen
class Level:
    """A level of FTS5: the numbers of its segments, their rows, marked rows, and pages."""

    segments: int
    rows: int
    marked: int
    pages: int
    is_merging: bool


def erase_words(connection: apsw.Connection, sql: Statements) -> None:
    """Erase the words of deleted rows from the pages, inside the caller's transaction."""
    connection.execute(sql.flush)  # write the rows that this transaction has added to a segment
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
    """Return whether FTS5 would merge every level with marked rows, and these are less than half of the table."""
    merged = [level for level in levels if level.marked or level.is_merging]
    if any(level.marked * _PER_CENT < level.rows for level in merged if level.marked):
        return False
    return 2 * sum(level.pages for level in merged) < sum(level.pages for level in levels)


def _levels(connection: apsw.Connection, sql: Statements) -> list[Level] | None:
    """Return the levels, lowest first, or None if the format of their record is unknown."""
    record = connection.execute(sql.structure).get
    start = _COOKIE_BYTES + len(_V2)
    if not isinstance(record, bytes) or record[_COOKIE_BYTES:start] != _V2:
        return None
    numbers = _varints(record[start:])
    try:
        level_count, segment_count, _writes = islice(numbers, 3)
        levels = [_level(numbers) for _ in range(level_count)]
    except ValueError:  # the record is too short
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
        marked += max(marks, pages_of_marks)  # a page of marks has at least one mark
        pages += last - first + 1
    return Level(segments, rows, marked, pages, merging > 0)


def _varints(data: bytes) -> Iterator[int]:
    """Yield variable-length integers: seven bits per byte, the highest first; the eighth bit means that more follow."""
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            yield value
            value = 0
