"""The arithmetic of quantized vectors: numpy only, no database.

A vector v of unit length is stored as its difference to the collection's *centre* c, in int8 steps with its own scale:
v ≈ c + scale · steps. Its *code* has one bit per step, set if the step is positive. Codes are in *planes*: row w of a
uint64 array of shape (words, n) has the w-th 64 bits of every vector, so that numpy compares a whole plane at once.

Without the centre, most bits would be equal for a model whose vectors all point in similar directions (the e5 family).
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

#: Larger than any distance of two codes.
FURTHEST = np.uint16(np.iinfo(np.uint16).max)

#: Bits per word of a plane.
WORD_BITS = 64

_MAX_STEP = 127
_MAX_EXACT = 2**24  # float32 represents all integers up to this exactly
_ROWS = 128  # per slice of a matrix product
_SCALE = np.dtype("<f4")
_MAX_TIES = 4  # results per requested one, if many are equal to the last
_TIE_TOLERANCE = 1e-5  # larger than the difference between sums for equal codes in different blocks of a matrix product
_SLICE = 4_096  # codes
_MAX_TABLE_BYTES = 32 << 20
_SAMPLE_STEP = 32  # one of this many distances is sampled
_SPARE = 8  # additional places in the sample


def words(dimension: int) -> int:
    """Return the number of 64-bit words of a code."""
    return -(-dimension // WORD_BITS)


def row_bytes(dimension: int) -> int:
    """Return the length of a packed row in bytes."""
    return _SCALE.itemsize + dimension


def quantize(vectors: Matrix, centre: Vector) -> Bytes:
    """Return packed rows: a little-endian float32 scale, then one int8 step per dimension; shape (n, 4 + d)."""
    rest = vectors - centre
    scales = np.abs(rest).max(axis=1) / _MAX_STEP
    steps = np.rint(rest / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return np.hstack([scales.astype(_SCALE)[:, None].view(np.uint8), steps.view(np.uint8)])


def unpack(rows: Bytes) -> tuple[NDArray[np.float32], Steps]:
    """Return the scales and the steps of packed rows."""
    size = _SCALE.itemsize
    scales = np.ascontiguousarray(rows[:, :size]).view(_SCALE)[:, 0].astype(np.float32, copy=False)
    return scales, rows[:, size:].view(np.int8)


def restore(rows: Bytes, centre: Vector) -> Matrix:
    """Return approximately the vectors of packed rows."""
    scales, steps = unpack(rows)
    restored: Matrix = centre + scales[:, None] * steps
    return restored


def encode(steps: NDArray[Any]) -> Planes:
    """Return the codes of steps, or of any numbers with the same signs, as planes of shape (words, n)."""
    bits = np.packbits(steps > 0, axis=1)
    padded = np.zeros((len(steps), words(steps.shape[1]) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def measure(planes: Planes, code: Planes, far: Distances) -> None:
    """Set ``far`` to the Hamming distance of each vector's code to ``code``, of shape (words, 1)."""
    np.add.reduce(np.bitwise_count(planes ^ code), axis=0, dtype=np.uint16, out=far)


def nearest(far: Distances, count: int, most: int, keys: KeysAt) -> Places:
    """Return the ascending indices of the ``count`` smallest of ``far``, and of all that equal the last of them.

    ``most`` is the largest possible distance; larger ones are left out. If very many equal the last, ``keys`` is called
    and only those with the smallest keys are returned.
    """
    found = _nearer(far, count, most)
    if len(found) > count:
        near = far[found]
        found = found[near <= np.partition(near, count - 1)[count - 1]]
    return found if len(found) <= _MAX_TIES * count else _limit_ties(found, far[found], count, keys)


def _nearer(far: Distances, count: int, most: int) -> Places:
    """Return the ascending indices of all distances below some bound: at least ``count``, or all.

    The bound comes from a sample. ``partition`` over all distances takes seven times as long.
    """
    sample = np.sort(far[::_SAMPLE_STEP])
    place = (count + count // 4) // _SAMPLE_STEP + _SPARE
    while place < len(sample) and sample[place] < most:
        found = np.flatnonzero(far <= sample[place])
        if len(found) >= count:
            return found
        place *= 2
    return np.flatnonzero(far <= most)


def best(scores: NDArray[np.float32], count: int, keys: KeysAt) -> Places:
    """Return the ascending indices of the ``count`` largest scores, and of all that equal the last of them.

    If very many equal the last, ``keys`` is called and only those with the smallest keys are returned.
    """
    bound = np.partition(scores, -count)[-count]
    found = np.flatnonzero(scores >= bound - _TIE_TOLERANCE)
    if len(found) <= _MAX_TIES * count:
        return found
    return _limit_ties(found, scores[found] <= bound + _TIE_TOLERANCE, count, keys)


def largest(scores: NDArray[np.float64], count: int) -> Places:
    """Return the ascending indices of the ``count`` largest scores, and of all that equal the last of them."""
    if len(scores) <= count:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -count)[-count])


def _limit_ties(found: Places, order: NDArray[Any], count: int, keys: KeysAt) -> Places:
    """Limit the number of ties, because the same text may exist ten thousand times."""
    return np.sort(found[np.lexsort((keys(found), order))[: _MAX_TIES * count]])


def members(keys: Keys, wanted: Keys) -> NDArray[np.bool_]:
    """Return for each key whether it is in ``wanted``, which is not empty.

    A lookup table is used if the range of the keys is small, as it is for consecutive row ids. ``np.isin`` uses one
    only for many keys, and takes ten times as long for few.
    """
    below, above = int(wanted.min()) - 1, int(wanted.max()) + 1
    if above - below > _MAX_TABLE_BYTES:
        return np.isin(keys, wanted)
    table = np.zeros(above - below + 1, np.bool_)
    table[wanted - below] = True
    return table.take(keys - below, mode="clip")


def estimates(planes: Planes, dimension: int, query: Vector) -> NDArray[np.float32]:
    """Return a value for each code that grows with its similarity to the query minus the centre.

    It is more exact than the Hamming distance. Codes are processed in slices, because one float32 per bit takes 32
    times the memory of the codes.
    """
    sums = np.empty(planes.shape[1], np.float32)
    for first in range(0, len(sums), _SLICE):
        part = slice(first, first + _SLICE)
        bits = np.unpackbits(np.ascontiguousarray(planes[:, part].T).view(np.uint8), axis=1, count=dimension)
        sums[part] = bits.astype(np.float32) @ query
    return sums


def similarities(rows: Bytes, centre: Vector, query: Vector) -> NDArray[np.float64]:
    """Return the cosine similarity of a query of unit length to each packed row.

    The products are integers, and the query is quantized so that float32 represents every sum exactly. So equal rows
    have equal scores, whatever their position and the order of additions in BLAS. Rows are processed in slices that fit
    in the processor's cache.
    """
    scales, steps = unpack(rows)
    unit = float(np.abs(query).sum()) / (_MAX_EXACT / _MAX_STEP - len(query))
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
