"""The arithmetic of quantized vectors: numpy only, no database.

A vector v of unit length is kept as what it differs from the collection's *centre* c by: int8 steps of a scale of its
own, v ≈ c + scale · steps. Its *code* is one bit a step, set where that is positive. Codes stand in *planes*: row w of
a uint64 array (words, n) has the w-th 64 bits of every vector, so that numpy compares a whole plane at once.

Without the centre, the bits of a model whose vectors all point roughly the same way (the e5 family) would mostly be
those of that common way.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from klaw_core import Keys, Matrix, Vector

Planes = NDArray[np.uint64]
Steps = NDArray[np.int8]
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Distances = NDArray[np.uint16]
KeysAt = Callable[[Places], Keys]

#: Further than any two codes are.
FURTHEST = np.uint16(np.iinfo(np.uint16).max)

#: Of a plane.
WORD_BITS = 64

_MOST_STEPS = 127
_EXACT = 2**24  # whole numbers up to it are exact in float32
_ROWS = 128
_SCALE = np.dtype("<f4")
_MOST_EVEN = 4
_EVEN = 1e-5  # the sums of equal codes, in different blocks of a matrix product, differ by less
_SLICE = 4_096
_LARGEST_TABLE = 32 << 20
_SAMPLED = 32  # one in so many distances
_SPARE = 8


def words(dimension: int) -> int:
    """Return how many words of 64 bits a code has."""
    return -(-dimension // WORD_BITS)


def row_bytes(dimension: int) -> int:
    """Return the length of a packed row."""
    return _SCALE.itemsize + dimension


def quantize(vectors: Matrix, centre: Vector) -> Bytes:
    """Return packed rows: a float32 scale, little-endian, then an int8 step a dimension; shape (n, 4 + d)."""
    rest = vectors - centre
    scales = np.abs(rest).max(axis=1) / _MOST_STEPS
    steps = np.rint(rest / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return np.hstack([scales.astype(_SCALE)[:, None].view(np.uint8), steps.view(np.uint8)])


def unpack(rows: Bytes) -> tuple[NDArray[np.float32], Steps]:
    """Return the scales and the steps of packed rows."""
    size = _SCALE.itemsize
    scales = np.ascontiguousarray(rows[:, :size]).view(_SCALE)[:, 0].astype(np.float32, copy=False)
    return scales, rows[:, size:].view(np.int8)


def restore(rows: Bytes, centre: Vector) -> Matrix:
    """Return about the vectors that packed rows were made of."""
    scales, steps = unpack(rows)
    restored: Matrix = centre + scales[:, None] * steps
    return restored


def encode(steps: NDArray[Any]) -> Planes:
    """Return the codes of rows of steps, or of any numbers with the same signs, as planes of shape (words, n)."""
    bits = np.packbits(steps > 0, axis=1)
    padded = np.zeros((len(steps), words(steps.shape[1]) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def measure(planes: Planes, code: Planes, far: Distances) -> None:
    """Set ``far`` to in how many bits each vector's code differs from ``code``, of shape (words, 1)."""
    np.add.reduce(np.bitwise_count(planes ^ code), axis=0, dtype=np.uint16, out=far)


def nearest(far: Distances, count: int, most: int, keys: KeysAt) -> Places:
    """Return, ascending, where the ``count`` smallest of ``far`` stand, and others that are as small as the last.

    ``most`` is the largest distance there can be; what is further is left out. ``keys`` is asked only where many more
    are as small, of which those with the first keys are returned.
    """
    found = _nearer(far, count, most)
    if len(found) > count:
        near = far[found]
        found = found[near <= np.partition(near, count - 1)[count - 1]]
    return found if len(found) <= _MOST_EVEN * count else _first(found, far[found], count, keys)


def _nearer(far: Distances, count: int, most: int) -> Places:
    """Return, ascending, where all that are below some bound stand: ``count`` at least, or all that there are.

    How far that is, a sample tells. To ``partition`` all takes seven times as long.
    """
    sample = np.sort(far[::_SAMPLED])
    place = (count + count // 4) // _SAMPLED + _SPARE
    while place < len(sample) and sample[place] < most:
        found = np.flatnonzero(far <= sample[place])
        if len(found) >= count:
            return found
        place *= 2
    return np.flatnonzero(far <= most)


def best(scores: NDArray[np.float32], count: int, keys: KeysAt) -> Places:
    """Return, ascending, where the ``count`` largest scores stand, and others that are as large as the last.

    ``keys`` is asked only where those are many more, of which those with the first keys are returned.
    """
    bound = np.partition(scores, -count)[-count]
    found = np.flatnonzero(scores >= bound - _EVEN)
    return found if len(found) <= _MOST_EVEN * count else _first(found, scores[found] <= bound + _EVEN, count, keys)


def largest(scores: NDArray[np.float64], count: int) -> Places:
    """Return, ascending, where the ``count`` largest scores stand, and all others that are as large as the last."""
    if len(scores) <= count:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -count)[-count])


def _first(found: Places, order: NDArray[Any], count: int, keys: KeysAt) -> Places:
    """Bound what is even: the same text may be there ten thousand times."""
    return np.sort(found[np.lexsort((keys(found), order))[: _MOST_EVEN * count]])


def members(keys: Keys, wanted: Keys) -> NDArray[np.bool_]:
    """Return for each key whether it is among ``wanted``, of which there is one at least.

    By a table where their range is small: keys are row numbers, given one after another. ``np.isin`` does so only for
    many, and takes ten times as long for few.
    """
    below, above = int(wanted.min()) - 1, int(wanted.max()) + 1
    if above - below > _LARGEST_TABLE:
        return np.isin(keys, wanted)
    table = np.zeros(above - below + 1, np.bool_)
    table[wanted - below] = True
    return table.take(keys - below, mode="clip")


def estimates(planes: Planes, dimension: int, query: Vector) -> NDArray[np.float32]:
    """Return what grows with the similarity of a query, less the centre, to each code: sharper than counting bits.

    A slice at a time, because a float32 a bit is 32 times what the codes take.
    """
    sums = np.empty(planes.shape[1], np.float32)
    for first in range(0, len(sums), _SLICE):
        part = slice(first, first + _SLICE)
        bits = np.unpackbits(np.ascontiguousarray(planes[:, part].T).view(np.uint8), axis=1, count=dimension)
        sums[part] = bits.astype(np.float32) @ query
    return sums


def similarities(rows: Bytes, centre: Vector, query: Vector) -> NDArray[np.float64]:
    """Return the cosine similarity of a query of unit length to each packed row.

    The sums are over whole numbers, and the steps of the query as small as a float32 can hold any such sum exactly: so
    equal rows have equal scores wherever they stand, in whatever order BLAS adds. A slice at a time stays in the
    processor's cache.
    """
    scales, steps = unpack(rows)
    unit = float(np.abs(query).sum()) / (_EXACT / _MOST_STEPS - len(query))
    wanted = np.rint(query / (unit or 1.0)).astype(np.float32)
    sums = np.empty(len(rows), np.float32)
    slice_of_floats = np.empty((_ROWS, len(query)), np.float32)
    for first in range(0, len(rows), _ROWS):
        part = steps[first : first + _ROWS]
        floats = slice_of_floats[: len(part)]
        np.copyto(floats, part)
        np.dot(floats, wanted, out=sums[first : first + _ROWS])
    scores: NDArray[np.float64] = float(centre.astype(np.float64) @ query) + sums * (scales.astype(np.float64) * unit)
    return scores.clip(-1.0, 1.0)
