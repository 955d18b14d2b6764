"""The cache of segments in RAM.

A segment's stamp changes whenever its content does, in the same transaction. So codes that were read under a stamp are
valid for every snapshot with this stamp, even after another process's write, a rollback, or a replaced file. Rows of a
segment are appended to the cached ones if the new state is a later state of the segment with the same codes, because a
place is written only once. Content that a transaction may still roll back is not cached.
"""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

import apsw
import numpy as np
from attrs import define, evolve, field

from klaw_core import ThreadLock
from klaw_store_sqlitevec.quantized.codes import row_bytes, words
from klaw_store_sqlitevec.quantized.tables import (
    CAPACITY,
    Quantization,
    Segment,
    parse_segments,
    read_range,
    read_segment_rows,
)
from klaw_store_sqlitevec.quantized.view import NO_ROWS, LoadedSegment, View, read_blob

_KEY_BYTES = 8
_WORD_BYTES = 8


@define
class SegmentCache:
    """Caches at most ``most_bytes``; other segments are read for each search. Thread-safe.

    Cached segments are not evicted for others, because every query needs every segment. Rows are cached only if those
    of the whole collection fit. They are read from the second search on, one segment per search: a program that
    searches once needs few rows, and no search waits for all.
    """

    most_bytes: int
    _held: dict[str, dict[int, LoadedSegment]] = field(factory=dict, init=False)
    _complete: dict[str, tuple[list[Any], View]] = field(factory=dict, init=False)
    _lock: ThreadLock = field(factory=partial(ThreadLock, "the cache of vectors"), init=False)

    def load(self, connection: apsw.Connection, collection: str, quantization: Quantization) -> View:
        """Return the segments of a collection with their codes. Raise RetrievalError if they are damaged."""
        stored = read_segment_rows(connection, collection)
        known = self._complete.get(collection)
        if known is not None and known[0] == stored:  # including the stamps
            return known[1]
        segments = [segment for segment in parse_segments(collection, stored) if segment.used]
        with self._lock.hold():
            before = self._held.get(collection, {})
            others = [held for name, some in self._held.items() if name != collection for held in some.values()]
        now = {segment.id: _update(connection, quantization, segment, before.get(segment.id)) for segment in segments}
        if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return View(list(now.values()))
        room = max(0, self.most_bytes - sum(map(_bytes, others)))
        code_bytes = _code_bytes(words(quantization.dimension))
        wants_rows = len(now) * (code_bytes + CAPACITY * row_bytes(quantization.dimension)) <= room
        if wants_rows:
            _read_more_rows(connection, collection, quantization, [held for key, held in now.items() if key in before])
        else:
            now = {key: evolve(held, rows=NO_ROWS, filled=0) for key, held in now.items()}
        view = View(list(now.values()))
        with self._lock.hold():
            self._held[collection] = dict(islice(now.items(), room // code_bytes))
            self._complete.pop(collection, None)
            if len(self._held[collection]) == len(now) and (view.is_whole or not wants_rows):
                self._complete[collection] = (stored, view)  # everything is cached
        return view


def _bytes(held: LoadedSegment) -> int:
    """Return the size of a segment with its keys, in bytes."""
    return _code_bytes(len(held.planes)) + held.rows.nbytes


def _code_bytes(width: int) -> int:
    return CAPACITY * (width * _WORD_BYTES + _KEY_BYTES)


def _update(
    connection: apsw.Connection, quantization: Quantization, segment: Segment, held: LoadedSegment | None
) -> LoadedSegment:
    """Return a segment with its codes, and with the cached rows of its earlier state."""
    if held is not None and held.segment.stamp == segment.stamp:
        return held
    planes = np.empty((words(quantization.dimension), CAPACITY), np.uint64)
    read_blob(connection, segment, "codes", planes)
    fresh = LoadedSegment(segment, planes[:, : segment.used])
    if held is not None and segment.follows(held.segment) and _continues(fresh, held):
        fresh.filled, fresh.rows = held.filled, held.rows
    return fresh


def _continues(fresh: LoadedSegment, held: LoadedSegment) -> bool:
    """Return whether the live places of the new state have the cached codes.

    A file that was restored to an earlier state and changed since looks like a later state, but has other vectors.
    """
    end = held.segment.used
    differ = (fresh.planes[:, :end] != held.planes).any(axis=0)
    dead = fresh.segment.dead
    differ[dead[dead < end]] = False
    return not differ.any()


def _read_more_rows(
    connection: apsw.Connection, collection: str, quantization: Quantization, segments: Sequence[LoadedSegment]
) -> None:
    """Read the rows of one more segment, and the rows that were added to segments whose rows are cached."""
    first = next((held for held in segments if not len(held.rows)), None)
    for held in segments:
        base, used = held.segment.first, held.segment.used
        filled, buffer = held.filled, held.rows
        if filled >= used or not (len(buffer) or held is first):
            continue
        if not len(buffer):
            buffer = np.zeros((CAPACITY, row_bytes(quantization.dimension)), np.uint8)
        places, rows = read_range(connection, collection, base + filled, base + used, quantization.dimension)
        buffer[places - base] = rows
        held.rows = buffer
        held.filled = used
