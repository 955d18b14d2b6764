"""What is kept of segments in RAM, for as long as it is what the database that is asked holds.

A segment's stamp changes whenever its content does, in the same transaction. So the codes that were read under a
stamp are right for every snapshot that has this stamp: another process's write, a transaction that is rolled back and
a file that is replaced need nothing else. The rows of a segment are read on from where they ended as long as what is
seen is a later state of it, with the same codes: a place is written once. What a transaction sees that may still be
rolled back is not kept.
"""

import threading
from collections.abc import Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np
from attrs import define, evolve, field

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
    """Keeps at most ``most_bytes``; segments beyond are read whenever they are asked for. Any thread may ask.

    What does not fit is not exchanged for what does: every query wants every segment. Rows are kept only where those
    of a whole collection fit. They are read from the second search on, a segment a search: a program that asks once
    needs few of them, and nobody waits for all.
    """

    most_bytes: int
    _held: dict[str, dict[int, LoadedSegment]] = field(factory=dict, init=False)
    _complete: dict[str, tuple[list[Any], View]] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def load(self, connection: apsw.Connection, collection: str, quantization: Quantization) -> View:
        """Return the segments of a collection with their codes. Raise RetrievalError if they are damaged."""
        stored = read_segment_rows(connection, collection)
        known = self._complete.get(collection)
        if known is not None and known[0] == stored:  # the stamps among the rest
            return known[1]
        segments = [segment for segment in parse_segments(collection, stored) if segment.used]
        with self._lock:
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
        with self._lock:
            self._held[collection] = dict(islice(now.items(), room // code_bytes))
            self._complete.pop(collection, None)
            if len(self._held[collection]) == len(now) and (view.is_whole or not wants_rows):
                self._complete[collection] = (stored, view)  # there is nothing left to read
        return view


def _bytes(held: LoadedSegment) -> int:
    """Return how much a segment takes, with its keys."""
    return _code_bytes(len(held.planes)) + held.rows.nbytes


def _code_bytes(width: int) -> int:
    return CAPACITY * (width * _WORD_BYTES + _KEY_BYTES)


def _update(
    connection: apsw.Connection, quantization: Quantization, segment: Segment, held: LoadedSegment | None
) -> LoadedSegment:
    """Return a segment with its codes, and with the rows that are held of what it was."""
    if held is not None and held.segment.stamp == segment.stamp:
        return held
    planes = np.empty((words(quantization.dimension), CAPACITY), np.uint64)
    read_blob(connection, segment, "codes", planes)
    fresh = LoadedSegment(segment, planes[:, : segment.used])
    if held is not None and segment.follows(held.segment) and _continues(fresh, held):
        fresh.filled, fresh.rows = held.filled, held.rows
    return fresh


def _continues(fresh: LoadedSegment, held: LoadedSegment) -> bool:
    """Return whether what lives now where codes are held has those codes.

    A file that was put back to an earlier state and then written on looks like a later state and has other vectors.
    """
    end = held.segment.used
    differ = (fresh.planes[:, :end] != held.planes).any(axis=0)
    dead = fresh.segment.dead
    differ[dead[dead < end]] = False
    return not differ.any()


def _read_more_rows(
    connection: apsw.Connection, collection: str, quantization: Quantization, segments: Sequence[LoadedSegment]
) -> None:
    """Read the rows of one segment, and those that were added to others whose rows are held."""
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
