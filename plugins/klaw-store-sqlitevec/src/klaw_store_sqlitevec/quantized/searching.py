"""Search quantized vectors in three stages, each more exact and over fewer vectors.

1. Hamming distance between the codes of the query and of every vector: keep the nearest one or two thousand.
2. The unquantized query against those codes: keep the best few hundred, because reading rows is slow.
3. The query against their int8 rows: the result.
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

# The pools after the first and the second stage: the minimum, and the number per requested hit.
_POOL, _POOL_PER_HIT = 2_000, 20
_RESCORED, _RESCORED_PER_HIT = 400, 4
# If every row is in RAM, the second stage costs more than it saves: this many go from the first to the third.
_WARM, _WARM_PER_HIT = 1_200, 12
# If fewer than one in this many vectors is allowed, gathering their codes is cheaper than comparing all.
_FEW = 8


def search(
    connection: apsw.Connection, cache: SegmentCache, quantization: Quantization, query: Query, limit: int
) -> list[tuple[int, float]]:
    """Return keys and scores of the nearest of a collection's vectors, best first, ties by key. Raise RetrievalError.

    The query's vector must have the same dimension.
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
    pool = max(_WARM, _WARM_PER_HIT * limit) if warm else max(_POOL, _POOL_PER_HIT * limit)
    rest = query.vector - quantization.centre
    positions = _pool(connection, view, arithmetic.encode(rest[None]), allowed, pool)
    if warm:
        rows = view.rows(positions)
    else:
        rescored = max(_RESCORED, _RESCORED_PER_HIT * limit)
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
    connection: apsw.Connection, cache: SegmentCache, quantization: Quantization, query: Query, sizes: tuple[int, int]
) -> float | None:
    """Return the typical similarity of a query to unrelated texts: the median over a sample of the vectors.

    ``sizes`` are the least and the most vectors of the sample; None if there are fewer. With many vectors, the
    similarity to their known centre is close enough.
    """
    if query.vector is None:
        return None
    if quantization.centred:
        return float(quantization.centre @ query.vector)
    view = cache.load(connection, query.collection, quantization)
    if not view.held:
        return None
    # `np.unique` is not used, because it imports `numpy.ma`.
    least, most = sizes
    even = np.linspace(0, view.starts[-1] - 1, min(most, view.starts[-1])).astype(np.int64)
    positions = np.setdiff1d(even, view.dead, assume_unique=True)
    if len(positions) < least:
        return None
    _, rows = read_rows(connection, query.collection, view.places(positions), quantization.dimension)
    return float(np.median(arithmetic.similarities(rows, quantization.centre, query.vector)))


def _allowed(connection: apsw.Connection, view: View, within: Keys) -> NDArray[np.bool_]:
    """Return for each position whether it holds a live vector with an allowed key."""
    wanted = arithmetic.members(view.all_keys(connection), within)
    wanted[view.dead] = False
    return wanted


def _keys_at(connection: apsw.Connection, view: View, positions: Places) -> arithmetic.KeysAt:
    return lambda found: view.keys(connection, positions[found])


def _pool(
    connection: apsw.Connection, view: View, code: arithmetic.Planes, allowed: NDArray[np.bool_] | None, count: int
) -> Places:
    """Return the allowed positions with the nearest codes, ascending."""
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
