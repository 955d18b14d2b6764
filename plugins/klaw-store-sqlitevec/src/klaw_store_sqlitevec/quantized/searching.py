"""A search over quantized vectors, in three stages that each look closer at fewer.

1. The bits in which the code of the query and that of every vector differ: the nearest thousand or two are left.
2. The query itself, unquantized, against those codes: the best few hundred are left, because reading rows is slow.
3. The query against their int8 rows: the answer.
"""

import apsw
import numpy as np
from numpy.typing import NDArray

from klaw_core import Keys, Query, RetrievalError
from klaw_store_sqlitevec.quantized import codes as arithmetic
from klaw_store_sqlitevec.quantized.cache import SegmentCache
from klaw_store_sqlitevec.quantized.codes import Places
from klaw_store_sqlitevec.quantized.tables import Quantization, read_rows
from klaw_store_sqlitevec.quantized.view import View

# How many the first stage leaves, and the second, at least and for each hit that is asked for.
_POOL, _POOL_A_HIT = 2_000, 20
_RESCORED, _RESCORED_A_HIT = 400, 4
# Where every row is in RAM, the second stage costs more than it saves: as many go from the first to the last.
_WARM, _WARM_A_HIT = 1_200, 12
# To gather the codes of one in so many costs less than to compare all of them.
_FEW = 8


def search(
    connection: apsw.Connection, cache: SegmentCache, quantization: Quantization, query: Query, limit: int
) -> list[tuple[int, float]]:
    """Return keys and scores of the nearest of a collection's vectors, best first, ties by key. Raise RetrievalError.

    The query's vector has as many dimensions as they have.
    """
    view = cache.load(connection, query.collection, quantization)
    if not view.held or query.vector is None:
        return []
    if len(query.vector) != quantization.dimension:
        raise RetrievalError(
            f"the question has {len(query.vector)} dimensions, "
            f"the vectors of {query.collection!r} {quantization.dimension}",
            hint="klaw reindex",
        )
    allowed = None if query.within is None else _allowed(connection, view, query.within.keys())
    warm = view.is_whole
    pool = max(_WARM, _WARM_A_HIT * limit) if warm else max(_POOL, _POOL_A_HIT * limit)
    rest = query.vector - quantization.centre
    positions = _pool(connection, view, arithmetic.encode(rest[None]), allowed, pool)
    if warm:
        rows = view.rows(positions)
    else:
        rescored = max(_RESCORED, _RESCORED_A_HIT * limit)
        if len(positions) > rescored:
            estimates = arithmetic.estimates(view.planes(positions), quantization.dimension, rest)
            positions = positions[arithmetic.best(estimates, rescored, _keys_at(connection, view, positions))]
        keys, rows = read_rows(connection, query.collection, view.places(positions), quantization.dimension)
    scores = arithmetic.similarities(rows, quantization.centre, query.vector)
    found = arithmetic.largest(scores, limit)
    keys, scores = view.keys(connection, positions[found]) if warm else keys[found], scores[found]
    order = np.lexsort((keys, -scores))[:limit]
    return list(zip(keys[order].tolist(), scores[order].tolist(), strict=True))


def typical_similarity(
    connection: apsw.Connection, cache: SegmentCache, quantization: Quantization, query: Query, most: int
) -> float | None:
    """Return how similar a query is to what it has nothing to do with: the median over at most ``most`` vectors.

    The centre of many is near enough, and known already. None where there are no vectors.
    """
    if query.vector is None:
        return None
    if quantization.centred:
        return float(quantization.centre @ query.vector)
    view = cache.load(connection, query.collection, quantization)
    if not view.held:
        return None
    positions = np.setdiff1d(np.unique(np.linspace(0, view.starts[-1] - 1, most).astype(np.int64)), view.dead)
    if not len(positions):
        return None
    _, rows = read_rows(connection, query.collection, view.places(positions), quantization.dimension)
    return float(np.median(arithmetic.similarities(rows, quantization.centre, query.vector)))


def _allowed(connection: apsw.Connection, view: View, within: Keys) -> NDArray[np.bool_]:
    """Return for each position whether one lives there whose key is wanted."""
    wanted = arithmetic.members(view.all_keys(connection), within)
    wanted[view.dead] = False
    return wanted


def _keys_at(connection: apsw.Connection, view: View, positions: Places) -> arithmetic.KeysAt:
    return lambda found: view.keys(connection, positions[found])


def _pool(
    connection: apsw.Connection, view: View, code: arithmetic.Planes, allowed: NDArray[np.bool_] | None, count: int
) -> Places:
    """Return, ascending, the positions whose codes are nearest, of those allowed."""
    most = len(code) * arithmetic.WORD_BITS
    if allowed is not None and _FEW * np.count_nonzero(allowed) <= max(allowed.size, _FEW * count):
        positions = np.flatnonzero(allowed)
        if len(positions) <= count:
            return positions
        far = np.empty(len(positions), np.uint16)
        arithmetic.measure(view.planes(positions), code, far)
        return positions[arithmetic.nearest(far, count, most, _keys_at(connection, view, positions))]
    far = view.distances(code)
    if allowed is not None:
        far = np.where(allowed, far, arithmetic.FURTHEST)
    return arithmetic.nearest(far, count, most, lambda found: view.keys(connection, found))
