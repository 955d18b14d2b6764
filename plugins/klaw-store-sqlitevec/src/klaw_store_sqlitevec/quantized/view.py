"""Segments in RAM, and all segments of one snapshot."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import apsw
import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from klaw_core import Keys
from klaw_store_sqlitevec.errors import damaged_vectors
from klaw_store_sqlitevec.quantized.codes import FURTHEST, Bytes, Distances, Places, Planes, measure
from klaw_store_sqlitevec.quantized.tables import CAPACITY, Segment

NO_ROWS = np.empty((0, 0), np.uint8)


@define(eq=False, repr=False)
class LoadedSegment:
    """A segment in RAM: codes of shape (words, used), its keys if they were read, and its first rows.

    ``rows`` has room for every place or for none; the first ``filled`` rows were read, and never change. Other threads
    may read rows into the same object, so ``rows`` is written before ``filled``, and read after it.
    """

    segment: Segment
    planes: Planes
    keys: Keys | None = None
    rows: Bytes = NO_ROWS
    filled: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the rows of all places are in RAM."""
        return self.filled >= self.segment.used


@frozen(eq=False, repr=False)
class View:
    """The segments of one snapshot. A position counts the used places of all segments, one after the other."""

    held: Sequence[LoadedSegment]

    @cached_property
    def starts(self) -> Sequence[int]:
        """The position of each segment's first place, and finally the number of positions."""
        return [0, *accumulate(held.segment.used for held in self.held)]

    @cached_property
    def dead(self) -> Places:
        """The positions of dead places."""
        return np.concatenate([held.segment.dead + start for held, start in zip(self.held, self.starts, strict=False)])

    @property
    def is_whole(self) -> bool:
        """Whether every row is in RAM."""
        return all(held.is_whole for held in self.held)

    def distances(self, code: Planes) -> Distances:
        """Return the Hamming distance of each code to ``code``, of shape (words, 1); dead places are furthest."""
        far = np.empty(self.starts[-1], np.uint16)
        for held, start in zip(self.held, self.starts, strict=False):
            measure(held.planes, code, far[start : start + held.segment.used])
        far[self.dead] = FURTHEST
        return far

    def places(self, positions: Places) -> Places:
        """Return the places in the table of these ascending positions."""
        return np.concatenate([part + held.segment.first for held, part in self._parts(positions)])

    def keys(self, connection: apsw.Connection, positions: Places) -> Keys:
        """Return the keys at these ascending positions. Raise RetrievalError if they are damaged."""
        return np.concatenate([read_keys(connection, held).take(part) for held, part in self._parts(positions)])

    def all_keys(self, connection: apsw.Connection) -> Keys:
        """Return the key of each position, arbitrary for dead places. Raise RetrievalError if they are damaged."""
        return np.concatenate([read_keys(connection, held) for held in self.held])

    def planes(self, positions: Places) -> Planes:
        """Return the codes at these ascending positions."""
        return np.hstack([held.planes.take(part, axis=1) for held, part in self._parts(positions)])

    def rows(self, positions: Places) -> Bytes:
        """Return the packed rows at these ascending positions. All rows must be in RAM."""
        rows = np.empty((len(positions), self.held[0].rows.shape[1]), np.uint8)
        end = 0
        for held, part in self._parts(positions):
            begin, end = end, end + len(part)
            # In the mode "clip", take writes to its output without an intermediate buffer.
            held.rows.take(part, axis=0, out=rows[begin:end], mode="clip")
        return rows

    def _parts(self, positions: Places) -> Iterator[tuple[LoadedSegment, Places]]:
        """Yield each segment with the positions in it, relative to its first place."""
        first = 0
        for held, start, last in zip(self.held, self.starts, positions.searchsorted(self.starts[1:]), strict=False):
            yield held, positions[first:last] - start
            first = last


def read_keys(connection: apsw.Connection, held: LoadedSegment) -> Keys:
    """Return the key of each place of a segment, arbitrary for dead places. Raise RetrievalError if damaged."""
    if held.keys is None:
        keys = np.empty(CAPACITY, np.dtype("<i8"))
        read_blob(connection, held.segment, "keys", keys)
        held.keys = keys[: held.segment.used].astype(np.int64, copy=False)
    return held.keys


def read_blob(connection: apsw.Connection, segment: Segment, what: str, into: NDArray[Any]) -> None:
    """Read a blob into an array. This takes half the time of a SELECT, which copies it twice."""
    try:
        with connection.blob_open("main", f"quantized_{what}", what, segment.id, False) as blob:
            whole = blob.length() == into.nbytes
            if whole:
                blob.read_into(into.data.cast("B"))
    except apsw.SQLError:  # the row does not exist
        whole = False
    if not whole:
        raise damaged_vectors(f"the quantized vectors are damaged: {what} of segment {segment.id}")
