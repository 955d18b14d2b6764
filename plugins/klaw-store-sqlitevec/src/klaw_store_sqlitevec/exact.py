"""Vectors in vec0 tables: exact nearest neighbours. Without vec0, they can still be read and removed.

Vectors have unit length. So the Euclidean distance d, which vec0 computes fastest, gives the same order as the cosine,
and the cosine similarity is 1 - d²/2.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import apsw
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import KeyDigest, Keys, Matrix, Query, Vector
from klaw_store_sqlitevec.errors import damaged_vectors
from klaw_store_sqlitevec.key_digests import read_key_digest
from klaw_store_sqlitevec.names import has_table, table_name

_FLOAT_BYTES = 4
_KEY_BYTES = 8
_PLACES_A_BYTE = 8
_DECLARED = re.compile(r"\bfloat\[(\d+)\]")


@frozen(eq=False, repr=False)
class Block:
    """The content of one row of vec0's chunks: the used places, their keys, and their vectors of shape (n, d)."""

    id: int
    places: NDArray[np.int64]
    keys: Keys
    vectors: Matrix


def vec_table(collection: str) -> str:
    """Return the name of the collection's table."""
    return table_name(collection, "vec")


def exists(connection: apsw.Connection, collection: str) -> bool:
    """Return whether the collection has a vec0 table."""
    return has_table(connection, vec_table(collection))


def make(connection: apsw.Connection, collection: str, dimension: int) -> None:
    """Create the collection's table, empty."""
    connection.execute(f"CREATE VIRTUAL TABLE {vec_table(collection)} USING vec0(embedding float[{dimension:d}])")


def drop(connection: apsw.Connection, collection: str) -> None:
    """Drop the collection's table."""
    connection.execute(f"DROP TABLE IF EXISTS {vec_table(collection)}")


def empty(connection: apsw.Connection, collection: str) -> None:
    """Delete the content of the collection's table without vec0, which would be needed to drop the table itself."""
    for part in ("rowids", "chunks", "vector_chunks00"):
        connection.execute(f"DELETE FROM {vec_table(collection)}_{part}")


def declared_dimension(connection: apsw.Connection, collection: str) -> int | None:
    """Return the dimension that the table declares; None if it cannot be determined."""
    sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (vec_table(collection),)).get
    found = _DECLARED.search(str(sql))
    return int(found[1]) if found else None


def count(connection: apsw.Connection, collection: str) -> int:
    """Return the number of vectors."""
    return int(connection.execute(f"SELECT COUNT(*) FROM {vec_table(collection)}_rowids").get)


def read_keys(connection: apsw.Connection, collection: str) -> Keys:
    """Return every key, ascending."""
    sql = f"SELECT rowid FROM {vec_table(collection)}_rowids ORDER BY rowid"
    return np.fromiter((row[0] for row in connection.execute(sql)), dtype=np.int64)


def key_digest(connection: apsw.Connection, collection: str) -> KeyDigest:
    """Return the digest of the keys."""
    return read_key_digest(connection, f"{vec_table(collection)}_rowids", "rowid")


def read_vectors(connection: apsw.Connection, collection: str, dimension: int) -> Iterator[tuple[Keys, Matrix]]:
    """Yield keys and vectors, float32 of shape (n, d), one block at a time.

    Raise RetrievalError if they are damaged.
    """
    for block in read_blocks(connection, collection, dimension):
        if block is None:
            raise damaged_vectors(f"the vectors of {collection!r} are damaged")
        yield block.keys, block.vectors


def read_blocks(connection: apsw.Connection, collection: str, dimension: int) -> Iterator[Block | None]:
    """Yield each block of vec0's vectors, None for a damaged one.

    The shadow tables are read directly, because reading single vectors through vec0 takes many times as long, and vec0
    returns wrong vectors from damaged tables.
    """
    table = vec_table(collection)
    sql = f"""
        SELECT block.chunk_id, block.size, block.validity, block.rowids, stored.vectors
        FROM {table}_chunks AS block LEFT JOIN {table}_vector_chunks00 AS stored ON stored.rowid = block.chunk_id
        ORDER BY block.chunk_id
    """
    rows: Iterator[Any] = connection.execute(sql)
    for number, size, *blobs in rows:
        if {type(size), *map(type, blobs)} != {int, bytes}:  # SQLite stores values of any type in any column
            yield None
            continue
        if [*map(len, blobs)] != [size // _PLACES_A_BYTE, size * _KEY_BYTES, size * dimension * _FLOAT_BYTES]:
            yield None
            continue
        validity, rowids, vectors = blobs
        places = np.flatnonzero(np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little"))
        held = np.frombuffer(vectors, "<f4").reshape(size, dimension)[places]
        keys = np.frombuffer(rowids, "<i8")[places].astype(np.int64)
        yield Block(number, places, keys, held.astype(np.float32, copy=False))


def read_sample(connection: apsw.Connection, collection: str, dimension: int, most: int) -> Matrix:
    """Return at most ``most`` vectors, spread over the table, float32 of shape (n, d)."""
    table = vec_table(collection)
    blocks: list[Any] = connection.execute(
        f"SELECT chunk_id, validity FROM {table}_chunks ORDER BY chunk_id"
    ).fetchall()
    taken = [np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")) for _, bits in blocks]
    held = sum(map(len, taken))
    chosen = np.arange(held) if held <= most else np.linspace(0, held - 1, most).astype(np.int64)
    sample = np.empty((len(chosen), dimension), np.dtype("<f4"))
    start = row = 0
    for (number, _), places in zip(blocks, taken, strict=True):
        inside = places[chosen[(chosen >= start) & (chosen < start + len(places))] - start]
        start += len(places)
        if not len(inside):
            continue
        with connection.blob_open("main", f"{table}_vector_chunks00", "vectors", number, False) as blob:
            for place in inside.tolist():
                blob.seek(place * dimension * _FLOAT_BYTES)
                blob.read_into(sample[row].data.cast("B"))
                row += 1
    return sample[:row]


def add(connection: apsw.Connection, collection: str, keys: Sequence[int], vectors: Matrix) -> None:
    """Add vectors, row i for key i."""
    sql = f"INSERT INTO {vec_table(collection)} (rowid, embedding) VALUES (?, ?)"
    rows = zip(keys, np.ascontiguousarray(vectors, dtype="<f4"), strict=True)
    connection.executemany(sql, ((key, vector.tobytes()) for key, vector in rows))


def remove(connection: apsw.Connection, collection: str, keys: Sequence[int]) -> None:
    """Remove the vectors of these keys. Unknown keys are skipped before vec0, which would search for each of them."""
    table = vec_table(collection)
    sql = f"SELECT rowid FROM {table}_rowids WHERE rowid IN (SELECT value FROM carray(?))"
    held = connection.execute(sql, (apsw.carray(np.array(keys, dtype=np.int64)),)).fetchall()
    connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", held)


def search(connection: apsw.Connection, query: Query, vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the keys and scores of the nearest vectors, best first."""
    sql = f"SELECT rowid, distance FROM {vec_table(query.collection)} WHERE embedding MATCH ? AND k = ?"
    values: tuple[object, ...] = (np.ascontiguousarray(vector, dtype="<f4").tobytes(), limit)
    if query.within is not None:
        sql += " AND rowid IN (SELECT value FROM carray(?))"
        values = (*values, apsw.carray(np.ascontiguousarray(query.within.keys(), dtype=np.int64)))
    rows: list[Any] = connection.execute(sql, values).fetchall()
    return [(key, 1.0 - distance * distance / 2.0) for key, distance in rows]


def scan(connection: apsw.Connection, query: Query, vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the same without vec0, by comparing every vector; ties are ordered by key."""
    blocks = list(read_vectors(connection, query.collection, len(vector)))
    if not blocks:
        return []
    keys = np.concatenate([held for held, _ in blocks])
    scores = np.concatenate([vectors @ vector for _, vectors in blocks])
    if query.within is not None:
        allowed = np.isin(keys, query.within.keys())
        keys, scores = keys[allowed], scores[allowed]
    best = np.lexsort((keys, -scores))[:limit]
    return list(zip(keys[best].tolist(), scores[best].tolist(), strict=True))
