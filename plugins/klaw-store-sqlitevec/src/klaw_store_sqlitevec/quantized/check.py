"""Check quantized vectors: codes and keys must agree with the rows, and rows must be of unit length."""

from typing import Any

import apsw
import numpy as np
from attrs import define

from klaw_core import RetrievalError
from klaw_store_sqlitevec.quantized.codes import encode, restore, row_bytes, unpack, words
from klaw_store_sqlitevec.quantized.tables import (
    CAPACITY,
    Quantization,
    Segment,
    exists,
    read_quantization,
    read_segments,
    rows_table,
)

# int8 rounding changes the length of a restored vector by up to a hundredth.
_UNIT_TOLERANCE = 0.05


@define
class _DamageCounts:
    """The number of problems of each kind, and of rows."""

    damaged: int = 0
    misplaced: int = 0
    uncoded: int = 0
    unsound: int = 0
    rows: int = 0


def check_quantized(connection: apsw.Connection, collection: str, dimension: int | None) -> list[str]:
    """Return the problems of quantized vectors, which should have ``dimension`` (None: any)."""
    try:
        quantization = read_quantization(connection, collection)
        if quantization is None and not exists(connection, collection):
            return []
        rows = connection.execute(f"SELECT COUNT(*) FROM {rows_table(collection)}").get
        if quantization is None:
            return [f"{rows:,} quantized vectors lack their quantization parameters"] if rows else []
        if dimension not in (None, quantization.dimension):
            return [f"it contains vectors of {quantization.dimension} dimensions, the recorded space has {dimension}"]
        found = _DamageCounts()
        for segment in read_segments(connection, collection):
            _check_segment(connection, collection, quantization, segment, found)
        return _problems(found, rows)
    except (apsw.Error, TypeError, ValueError, IndexError, OverflowError, RetrievalError) as error:
        return [f"its vectors cannot be read: {error}"]


def _check_segment(
    connection: apsw.Connection, collection: str, quantization: Quantization, segment: Segment, found: _DamageCounts
) -> None:
    sql = f"SELECT place, key, vector FROM {rows_table(collection)} WHERE place BETWEEN ? AND ? ORDER BY place"
    rows: list[Any] = connection.execute(sql, (segment.first, segment.first + CAPACITY - 1)).fetchall()
    found.rows += len(rows)
    width = words(quantization.dimension)
    codes = connection.execute("SELECT codes FROM quantized_codes WHERE segment = ?", (segment.id,)).get or b""
    keys = connection.execute("SELECT keys FROM quantized_keys WHERE segment = ?", (segment.id,)).get or b""
    packed = b"".join(vector for _, _, vector in rows)
    lengths = (width * CAPACITY * 8, CAPACITY * 8, len(rows) * row_bytes(quantization.dimension))
    if (len(codes), len(keys), len(packed)) != lengths:
        found.damaged += 1
        return
    places = np.array([place for place, _, _ in rows], dtype=np.int64) - segment.first
    living = np.setdiff1d(np.arange(segment.used), segment.dead)
    found.misplaced += len(np.setxor1d(places, living))
    held = np.frombuffer(keys, "<i8")[places]
    found.misplaced += int(np.count_nonzero(held != np.array([key for _, key, _ in rows], dtype=np.int64)))
    vectors = np.frombuffer(packed, np.uint8).reshape(len(rows), row_bytes(quantization.dimension))
    planes = np.frombuffer(codes, np.uint64).reshape(width, CAPACITY)[:, places]
    found.uncoded += int(np.count_nonzero((planes != encode(unpack(vectors)[1])).any(axis=0)))
    with np.errstate(all="ignore"):
        sizes = np.linalg.norm(restore(vectors, quantization.centre), axis=1)
        found.unsound += int(np.count_nonzero(~(np.abs(sizes - 1.0) <= _UNIT_TOLERANCE)))


def _problems(found: _DamageCounts, rows: int) -> list[str]:
    problems = []
    if found.damaged:
        problems.append(f"{found.damaged:,} segments of vectors are missing or have the wrong length")
    if found.misplaced:
        problems.append(f"{found.misplaced:,} quantized vectors are missing or stored under another chunk")
    if found.uncoded:
        problems.append(f"{found.uncoded:,} codes do not match their vectors")
    if found.unsound:
        problems.append(f"{found.unsound:,} quantized vectors are not of unit length (zero, NaN or damaged)")
    if found.rows != rows:
        problems.append(f"{rows - found.rows:,} quantized vectors are in no segment")
    return problems
