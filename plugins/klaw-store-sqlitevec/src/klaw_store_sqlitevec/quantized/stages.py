"""A search over quantized vectors, in three stages that each look closer at fewer.

1. The bits in which the code of the query and that of every vector differ: the nearest thousand or two are left.
2. The query itself, unquantized, against those codes: the best few hundred are left, because reading rows is slow.
3. The query against their int8 rows: the answer.
"""

from collections.abc import Iterator, Sequence

import apsw
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import Hit, Keys, Query, RetrievalError
from klaw_store_sqlitevec.quantized import codes as arithmetic
from klaw_store_sqlitevec.quantized.cache import Held, SegmentCache, read_keys
from klaw_store_sqlitevec.quantized.codes import Bytes, Places
from klaw_store_sqlitevec.quantized.tables import Form, read_rows, read_segments

# How many the first stage leaves, and the second, at least and for each hit that is asked for.
_POOL, _POOL_A_HIT = 2_000, 20
_RESCORED, _RESCORED_A_HIT = 400, 4
# Where every row is in RAM, the second stage costs more than it saves: as many go from the first to the last.
_WARM, _WARM_A_HIT = 1_200, 12
# To gather the codes of one in so many costs less than to compare all of them.
_FEW = 8


@frozen
class _View:
    """The segments of one snapshot. Positions count their used places, one segment after another."""

    held: Sequence[Held]
    starts: NDArray[np.int64]

    @property
    def dead(self) -> Places:
        """The positions where nothing lives."""
        pairs = zip(self.held, self.starts.tolist(), strict=True)
        return np.concatenate([held.segment.dead + start for held, start in pairs])

    def places(self, positions: Places) -> Places:
        """Return where in the table these positions, which ascend, stand."""
        return np.concatenate([part + held.segment.first for held, part in self._parts(positions)])

    def keys(self, connection: apsw.Connection, positions: Places) -> Keys:
        """Return the keys at these positions, which ascend."""
        return np.concatenate([read_keys(connection, held).take(part) for held, part in self._parts(positions)])

    def planes(self, positions: Places) -> arithmetic.Planes:
        """Return the codes at these positions, which ascend."""
        return np.hstack([held.planes.take(part, axis=1) for held, part in self._parts(positions)])

    def rows(self, connection: apsw.Connection, positions: Places) -> tuple[Keys, Bytes]:
        """Return the keys and the packed rows at these positions, which ascend, where all are in RAM."""
        keys = np.empty(len(positions), np.int64)
        rows = np.empty((len(positions), self.held[0].rows.shape[1]), np.uint8)
        end = 0
        for held, part in self._parts(positions):
            begin, end = end, end + len(part)
            # In the mode "clip" take writes to its output without a buffer of its own.
            read_keys(connection, held).take(part, out=keys[begin:end], mode="clip")
            held.rows.take(part, axis=0, out=rows[begin:end], mode="clip")
        return keys, rows

    def _parts(self, positions: Places) -> Iterator[tuple[Held, Places]]:
        """Yield each segment with the positions in it, counted from its first place."""
        cuts = np.searchsorted(positions, self.starts[1:])
        for held, part, start in zip(self.held, np.split(positions, cuts), self.starts.tolist(), strict=True):
            yield held, part - start


def search(connection: apsw.Connection, cache: SegmentCache, form: Form, query: Query, limit: int) -> list[Hit]:
    """Return the nearest of a collection's vectors, best first, ties by key. Raise RetrievalError.

    The query has a vector of the form's dimension.
    """
    segments = [segment for segment in read_segments(connection, query.collection) if segment.used]
    if not segments or query.vector is None:
        return []
    if len(query.vector) != form.dimension:
        problem = (
            f"the question has {len(query.vector)} dimensions, the vectors of {query.collection!r} {form.dimension}"
        )
        raise RetrievalError(problem, hint="klaw reindex")
    held = cache.load(connection, query.collection, form, segments)
    view = _View(held, np.cumsum([0, *(segment.used for segment in segments)], dtype=np.int64)[:-1])
    allowed = None if query.within is None else _allowed(connection, view, query.within)
    warm = all(each.is_whole for each in held)
    pool = max(_WARM, _WARM_A_HIT * limit) if warm else max(_POOL, _POOL_A_HIT * limit)
    rest = query.vector - form.centre
    positions = _pool(connection, view, arithmetic.encode(rest[None]), allowed, pool)
    if warm:
        keys, rows = view.rows(connection, positions)
    else:
        rescored = max(_RESCORED, _RESCORED_A_HIT * limit)
        if len(positions) > rescored:
            scores = arithmetic.estimates(view.planes(positions), form.dimension, rest)
            positions = positions[arithmetic.best(scores, rescored, _keys_at(connection, view, positions))]
        keys, rows = read_rows(connection, query.collection, view.places(positions), form.dimension)
    similarities = arithmetic.similarities(rows, form.centre, query.vector)
    best = np.lexsort((keys, -similarities))[:limit]
    return [Hit(key, score) for key, score in zip(keys[best].tolist(), similarities[best].tolist(), strict=True)]


def _allowed(connection: apsw.Connection, view: _View, within: Keys) -> NDArray[np.bool_]:
    """Return for each position whether one lives there whose key is wanted."""
    wanted = arithmetic.members(np.concatenate([read_keys(connection, held) for held in view.held]), within)
    wanted[view.dead] = False
    return wanted


def _keys_at(connection: apsw.Connection, view: _View, positions: Places) -> arithmetic.KeysAt:
    return lambda found: view.keys(connection, positions[found])


def _pool(
    connection: apsw.Connection, view: _View, code: arithmetic.Planes, allowed: NDArray[np.bool_] | None, count: int
) -> Places:
    """Return, ascending, the positions whose codes are nearest, of those allowed."""
    most = len(code) * arithmetic.WORD_BITS
    if allowed is not None and _FEW * np.count_nonzero(allowed) <= max(allowed.size, _FEW * count):
        positions = np.flatnonzero(allowed)
        if len(positions) <= count:
            return positions
        far = arithmetic.distances(view.planes(positions), code)
        return positions[arithmetic.nearest(far, count, most, _keys_at(connection, view, positions))]
    far = np.concatenate([arithmetic.distances(held.planes, code) for held in view.held])
    if allowed is None:
        far[view.dead] = arithmetic.FURTHEST
    else:
        far = np.where(allowed, far, arithmetic.FURTHEST)
    return arithmetic.nearest(far, count, most, lambda found: view.keys(connection, found))
