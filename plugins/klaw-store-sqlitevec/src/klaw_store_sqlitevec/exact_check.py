"""Check a vec0 table.

Vectors are in blocks with a fixed number of places. ``<table>_chunks`` has for each block a bitmap of the used places
and their keys, ``<table>_vector_chunks00`` the vectors; ``<table>_rowids`` maps each key to its place.
"""

import apsw
import numpy as np
from attrs import define

from klaw_core import Matrix
from klaw_store_sqlitevec.exact import Block, count, declared_dimension, read_blocks, vec_table

_UNIT_TOLERANCE = 1e-3


@define
class _DamageCounts:
    """Counts of problems in the blocks."""

    taken: int = 0
    damaged: int = 0
    misplaced: int = 0
    unsound: int = 0


def check_table(connection: apsw.Connection, collection: str, dimension: int | None) -> list[str]:
    """Return the problems of a collection's table, whose vectors should have ``dimension`` (None: any)."""
    try:
        declared = declared_dimension(connection, collection)
        if declared is None:
            return ["the table does not declare the dimension of its vectors"]
        if dimension not in (None, declared):
            return [f"it contains vectors of {declared} dimensions, the recorded space has {dimension}"]
        return _check_blocks(connection, collection, declared)
    except (
        apsw.Error,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:  # SQLite stores values of any type in any column
        return [f"its vectors cannot be read: {error}"]


def count_unsound(rows: Matrix) -> int:
    """Return how many rows are not of unit length, including rows with NaN."""
    with np.errstate(all="ignore"):
        return int(np.count_nonzero(~(np.abs(np.linalg.norm(rows, axis=1) - 1.0) <= _UNIT_TOLERANCE)))


def _check_blocks(connection: apsw.Connection, collection: str, dimension: int) -> list[str]:
    found = _DamageCounts()
    for block in read_blocks(connection, collection, dimension):
        if block is None:
            found.damaged += 1
            continue
        found.taken += len(block.places)
        found.misplaced += _count_misplaced(connection, collection, block)
        found.unsound += count_unsound(block.vectors)
    return _problems(found, count(connection, collection))


def _count_misplaced(connection: apsw.Connection, collection: str, block: Block) -> int:
    """Return how many places of a block have another key than ``<table>_rowids`` says."""
    sql = f"""
        SELECT rowid, chunk_offset FROM {vec_table(collection)}_rowids
        WHERE rowid IN (SELECT value FROM carray(?)) AND chunk_id = ?
    """
    known: dict[int, int] = {}
    if len(block.keys):  # carray raises an error for an empty array
        known = dict(connection.execute(sql, (apsw.carray(block.keys), block.id)))
    return sum(known.get(key) != place for key, place in zip(block.keys.tolist(), block.places.tolist(), strict=True))


def _problems(found: _DamageCounts, keys: int) -> list[str]:
    problems = []
    if found.damaged:
        problems.append(f"{found.damaged:,} blocks of vectors are missing or have the wrong length")
    if found.misplaced:
        problems.append(f"{found.misplaced:,} vectors are stored under another chunk")
    if found.taken != keys and not found.damaged:
        problems.append(f"it has {keys:,} keys and {found.taken:,} vectors")
    if found.unsound:
        problems.append(f"{found.unsound:,} vectors are not of unit length (zero, NaN or damaged)")
    return problems
