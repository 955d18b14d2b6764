"""Whether a vec0 table is sound. Its shadow tables are read directly: from bad ones vec0 itself answers wrongly.

Vectors lie in chunks of a fixed number of places. Of each chunk ``<table>_chunks`` has a bitmap of the places that are
taken and the key in each, ``<table>_vector_chunks00`` the vectors; ``<table>_rowids`` says where each key's vector is.
"""

import re
from collections.abc import Iterator
from typing import Any

import apsw
import numpy as np
from attrs import define
from numpy.typing import NDArray

_UNIT_TOLERANCE = 1e-3
_FLOAT_BYTES = 4
_KEY_BYTES = 8
_PLACES_A_BYTE = 8
_DECLARED = re.compile(r"\bfloat\[(\d+)\]")


@define
class _Found:
    """What the chunks show: counts of what is wrong."""

    taken: int = 0
    damaged: int = 0
    misplaced: int = 0
    unsound: int = 0


def check_table(connection: apsw.Connection, table: str, dimension: int | None) -> list[str]:
    """Return what is wrong with ``table``, whose vectors should have ``dimension`` (None: whatever it declares)."""
    try:
        declared = _declared(connection, table)
        if declared is None:
            return ["the table does not say which dimension its vectors have"]
        if dimension not in (None, declared):
            return [f"it holds vectors of {declared} dimensions, the recorded space has {dimension}"]
        return _check_chunks(connection, table, declared)
    except (apsw.Error, TypeError, ValueError, OverflowError) as error:  # SQLite keeps a value of any type anywhere
        return [f"its vectors cannot be read: {error}"]


def count_unsound(rows: NDArray[np.float32]) -> int:
    """Return how many rows are not of unit length; NaN is not."""
    with np.errstate(all="ignore"):
        return int(np.count_nonzero(~(np.abs(np.linalg.norm(rows, axis=1) - 1.0) <= _UNIT_TOLERANCE)))


def _declared(connection: apsw.Connection, table: str) -> int | None:
    sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
    found = _DECLARED.search(str(sql))
    return int(found[1]) if found else None


def _check_chunks(connection: apsw.Connection, table: str, dimension: int) -> list[str]:
    keys = connection.execute(f"SELECT COUNT(*) FROM {table}_rowids").get  # noqa: S608  # a name of ours
    found = _Found()
    for chunk_id, size, validity, rowids, vectors in _chunks(connection, table):
        blobs = (validity, rowids, vectors)
        if {type(size), *map(type, blobs)} != {int, bytes} or tuple(map(len, blobs)) != (
            *(size // _PLACES_A_BYTE, size * _KEY_BYTES, size * dimension * _FLOAT_BYTES),
        ):
            found.damaged += 1
            continue
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")
        places = np.flatnonzero(bits)
        held = np.frombuffer(rowids, "<i8")[places]
        rows = np.frombuffer(vectors, "<f4").reshape(size, dimension)[places]
        found.taken += len(places)
        found.misplaced += _misplaced(connection, table, chunk_id, held, places)
        found.unsound += count_unsound(rows)
    return _problems(found, keys)


def _chunks(connection: apsw.Connection, table: str) -> Iterator[Any]:
    sql = f"""
        SELECT chunk.chunk_id, chunk.size, chunk.validity, chunk.rowids, vector.vectors
        FROM {table}_chunks AS chunk LEFT JOIN {table}_vector_chunks00 AS vector ON vector.rowid = chunk.chunk_id
        ORDER BY chunk.chunk_id
    """  # noqa: S608  # a name of ours
    return connection.execute(sql)


def _misplaced(
    connection: apsw.Connection, table: str, chunk_id: int, held: NDArray[np.int64], places: NDArray[np.int64]
) -> int:
    """Return how many places of a chunk hold another key than the one that is said to be there."""
    sql = (
        f"SELECT rowid, chunk_offset FROM {table}_rowids WHERE rowid IN (SELECT value FROM carray(?)) AND chunk_id = ?"  # noqa: S608  # a name of ours
    )
    array = apsw.carray(np.ascontiguousarray(held, dtype=np.int64))
    known: dict[int, int] = dict(connection.execute(sql, (array, chunk_id))) if len(held) else {}
    return sum(known.get(key) != place for key, place in zip(held.tolist(), places.tolist(), strict=True))


def _problems(found: _Found, keys: int) -> list[str]:
    problems = []
    if found.damaged:
        problems.append(f"{found.damaged:,} blocks of vectors are missing or have the wrong length")
    if found.misplaced:
        problems.append(f"{found.misplaced:,} vectors are filed under another chunk")
    if found.taken != keys and not found.damaged:
        problems.append(f"it has {keys:,} keys and {found.taken:,} vectors")
    if found.unsound:
        problems.append(f"{found.unsound:,} vectors are not of unit length (zero, NaN or damaged)")
    return problems
