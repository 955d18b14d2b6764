"""Vectors in vec0 tables: exact nearest neighbours. Where vec0 does not load they can be read, and be taken out.

Vectors have unit length, so the Euclidean distance d that vec0 scans fastest ranks as the cosine does, and
the cosine similarity is 1 - d²/2.
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
    """What one row of vec0's chunks holds: the places that are taken, of each the key, and its vector, (n, d)."""

    id: int
    places: NDArray[np.int64]
    keys: Keys
    vectors: Matrix


def vec_table(collection: str) -> str:
    """Return the name of the collection's table."""
    return table_name(collection, "vec")


def exists(connection: apsw.Connection, collection: str) -> bool:
    """Return whether the collection has its table."""
    return has_table(connection, vec_table(collection))


def make(connection: apsw.Connection, collection: str, dimension: int) -> None:
    """Make the collection's table, empty."""
    connection.execute(f"CREATE VIRTUAL TABLE {vec_table(collection)} USING vec0(embedding float[{dimension:d}])")


def drop(connection: apsw.Connection, collection: str) -> None:
    """Remove the collection's table and all in it."""
    connection.execute(f"DROP TABLE IF EXISTS {vec_table(collection)}")


def empty(connection: apsw.Connection, collection: str) -> None:
    """Remove all that is in the collection's table, past vec0: only that could remove the table itself."""
    for part in ("rowids", "chunks", "vector_chunks00"):
        connection.execute(f"DELETE FROM {vec_table(collection)}_{part}")


def declared_dimension(connection: apsw.Connection, collection: str) -> int | None:
    """Return how many dimensions the table's vectors have, None if it does not say."""
    sql = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (vec_table(collection),)).get
    found = _DECLARED.search(str(sql))
    return int(found[1]) if found else None


def count(connection: apsw.Connection, collection: str) -> int:
    """Return how many vectors there are."""
    return int(connection.execute(f"SELECT COUNT(*) FROM {vec_table(collection)}_rowids").get)


def read_keys(connection: apsw.Connection, collection: str) -> Keys:
    """Return every key, ascending."""
    sql = f"SELECT rowid FROM {vec_table(collection)}_rowids ORDER BY rowid"
    return np.fromiter((row[0] for row in connection.execute(sql)), dtype=np.int64)


def key_digest(connection: apsw.Connection, collection: str) -> KeyDigest:
    """Return the digest of the keys."""
    return read_key_digest(connection, f"{vec_table(collection)}_rowids", "rowid")


def read_vectors(connection: apsw.Connection, collection: str, dimension: int) -> Iterator[tuple[Keys, Matrix]]:
    """Yield the keys and the vectors, float32 of shape (n, d), of a block at a time.

    Raise RetrievalError if they are damaged.
    """
    for block in read_blocks(connection, collection, dimension):
        if block is None:
            raise damaged_vectors(f"the vectors of {collection!r} are damaged")
        yield block.keys, block.vectors


def read_blocks(connection: apsw.Connection, collection: str, dimension: int) -> Iterator[Block | None]:
    """Yield each block that vec0 keeps vectors in, None for one that is damaged.

    Its shadow tables are read directly: vec0, asked for one vector after another, takes many times as long, and from
    bad ones answers wrongly.
    """
    table = vec_table(collection)
    sql = f"""
        SELECT block.chunk_id, block.size, block.validity, block.rowids, stored.vectors
        FROM {table}_chunks AS block LEFT JOIN {table}_vector_chunks00 AS stored ON stored.rowid = block.chunk_id
        ORDER BY block.chunk_id
    """
    rows: Iterator[Any] = connection.execute(sql)
    for number, size, *blobs in rows:
        if {type(size), *map(type, blobs)} != {int, bytes}:  # SQLite keeps a value of any type anywhere
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
    """Return at most ``most`` of the vectors, from all over the table, float32 of shape (n, d)."""
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
    """Remove the vectors of these keys; unknown keys, for which vec0 would look one by one, are ignored."""
    table = vec_table(collection)
    sql = f"SELECT rowid FROM {table}_rowids WHERE rowid IN (SELECT value FROM carray(?))"
    held = connection.execute(sql, (apsw.carray(np.array(keys, dtype=np.int64)),)).fetchall()
    connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", held)


def search(connection: apsw.Connection, query: Query, vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the keys and scores of the nearest, best first."""
    sql = f"SELECT rowid, distance FROM {vec_table(query.collection)} WHERE embedding MATCH ? AND k = ?"
    values: tuple[object, ...] = (np.ascontiguousarray(vector, dtype="<f4").tobytes(), limit)
    if query.within is not None:
        sql += " AND rowid IN (SELECT value FROM carray(?))"
        values = (*values, apsw.carray(np.ascontiguousarray(query.within.keys(), dtype=np.int64)))
    rows: list[Any] = connection.execute(sql, values).fetchall()
    return [(key, 1.0 - distance * distance / 2.0) for key, distance in rows]


def scan(connection: apsw.Connection, query: Query, vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the keys and scores of the nearest, best first, ties by key, without vec0: every vector is compared."""
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
