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
from numpy.typing import NDArray

from klaw_core import Keys, RetrievalError
from klaw_store_sqlitevec.quantized.codes import Bytes, Planes, row_bytes, words
from klaw_store_sqlitevec.quantized.tables import CAPACITY, Form, Segment, read_range

_KEY_BYTES = 8
_WORD_BYTES = 8
_NO_ROWS = np.empty((0, 0), np.uint8)


@define(eq=False)
class Held:
    """One segment in RAM: codes of shape (words, used), its keys once they were read, and its first rows.

    ``rows`` has room for every place, or for none; the first ``filled`` were read, and never change. Other threads may
    be reading rows for the same object: ``rows`` is written before ``filled``, and read after it.
    """

    segment: Segment
    planes: Planes
    keys: Keys | None = None
    rows: Bytes = _NO_ROWS
    filled: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the row of every place is there."""
        return self.filled >= self.segment.used

    @property
    def nbytes(self) -> int:
        """How much it takes, with its keys."""
        return _code_bytes(len(self.planes)) + self.rows.nbytes


@define
class SegmentCache:
    """Keeps at most ``most_bytes``; segments beyond are read whenever they are asked for. Any thread may ask.

    What does not fit is not exchanged for what does: every query wants every segment. Rows are kept only where those
    of a whole collection fit. They are read from the second search on, a segment a search: a program that asks once
    needs few of them, and nobody waits for all.
    """

    most_bytes: int
    _held: dict[str, dict[int, Held]] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def load(self, connection: apsw.Connection, collection: str, form: Form, segments: Sequence[Segment]) -> list[Held]:
        """Return the segments of a collection with their codes. Raise RetrievalError if they are damaged."""
        with self._lock:
            before = self._held.get(collection, {})
            others = [held for name, some in self._held.items() if name != collection for held in some.values()]
        now = {segment.id: _update(connection, form, segment, before.get(segment.id)) for segment in segments}
        if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return list(now.values())
        room = max(0, self.most_bytes - sum(held.nbytes for held in others))
        code_bytes = _code_bytes(words(form.dimension))
        if len(now) * (code_bytes + CAPACITY * row_bytes(form.dimension)) <= room:
            _read_more_rows(connection, collection, form, [held for key, held in now.items() if key in before])
        else:
            now = {key: evolve(held, rows=_NO_ROWS, filled=0) for key, held in now.items()}
        with self._lock:
            self._held[collection] = dict(islice(now.items(), room // code_bytes))
        return list(now.values())


def read_keys(connection: apsw.Connection, held: Held) -> Keys:
    """Return the key of each place of a segment; where nothing lives, any. Raise RetrievalError if damaged."""
    if held.keys is None:
        keys = np.empty(CAPACITY, np.dtype("<i8"))
        _read(connection, held.segment, "keys", keys)
        held.keys = keys[: held.segment.used].astype(np.int64, copy=False)
    return held.keys


def _code_bytes(width: int) -> int:
    return CAPACITY * (width * _WORD_BYTES + _KEY_BYTES)


def _update(connection: apsw.Connection, form: Form, segment: Segment, held: Held | None) -> Held:
    """Return a segment with its codes, and with the rows that are held of what it was."""
    if held is not None and held.segment.stamp == segment.stamp:
        return held
    planes = np.empty((words(form.dimension), CAPACITY), np.uint64)
    _read(connection, segment, "codes", planes)
    fresh = Held(segment, planes[:, : segment.used])
    if held is not None and segment.follows(held.segment) and _continues(fresh, held):
        fresh.filled, fresh.rows = held.filled, held.rows
    return fresh


def _continues(fresh: Held, held: Held) -> bool:
    """Return whether what lives now where codes are held has those codes.

    A file that was put back to an earlier state and then written on looks like a later state and has other vectors.
    """
    end = held.segment.used
    differ = (fresh.planes[:, :end] != held.planes).any(axis=0)
    dead = fresh.segment.dead
    differ[dead[dead < end]] = False
    return not differ.any()


def _read_more_rows(connection: apsw.Connection, collection: str, form: Form, segments: Sequence[Held]) -> None:
    """Read the rows of one segment, and those that were added to others whose rows are held."""
    first = next((held for held in segments if not len(held.rows)), None)
    for held in segments:
        base, used = held.segment.first, held.segment.used
        filled, buffer = held.filled, held.rows
        if filled >= used or not (len(buffer) or held is first):
            continue
        if not len(buffer):
            buffer = np.zeros((CAPACITY, row_bytes(form.dimension)), np.uint8)
        places, rows = read_range(connection, collection, base + filled, base + used, form.dimension)
        buffer[places - base] = rows
        held.rows = buffer
        held.filled = used


def _read(connection: apsw.Connection, segment: Segment, what: str, into: NDArray[Any]) -> None:
    """Fill an array with a blob: in half the time of a SELECT, which copies it twice."""
    try:
        with connection.blob_open("main", f"quantized_{what}", what, segment.id, False) as blob:
            whole = blob.length() == into.nbytes
            if whole:
                blob.read_into(into.data.cast("B"))
    except apsw.SQLError:  # there is no such row
        whole = False
    if not whole:
        problem = f"the quantized vectors are damaged: {what} of segment {segment.id}"
        raise RetrievalError(problem, hint="klaw doctor --fix")
