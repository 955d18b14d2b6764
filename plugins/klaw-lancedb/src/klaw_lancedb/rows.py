"""The rows in klaw.db about vectors in LanceDB: which are valid, which are still buffered here, and a sample of them.

Rolling back a transaction undoes these rows but nothing in LanceDB. Therefore every append to LanceDB is a *batch* with
a random number, and a vector in LanceDB is valid only if klaw.db has its key with the number of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import KeyDigest, Keys, Matrix, Migration, RetrievalError, Vector

_SCHEMA = """
CREATE TABLE lancedb_tables (
    collection TEXT PRIMARY KEY,
    name TEXT NOT NULL,             -- of its table in LanceDB
    dimension INTEGER NOT NULL,
    version INTEGER NOT NULL        -- that a reader needs at least; 0 while there is no table in LanceDB
) WITHOUT ROWID;
CREATE TABLE lancedb_keys (
    collection TEXT NOT NULL,
    key INTEGER NOT NULL,
    batch INTEGER NOT NULL,         -- 0: the vector is in lancedb_waiting
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE TABLE lancedb_waiting (
    collection TEXT NOT NULL,
    key INTEGER NOT NULL,
    vector BLOB NOT NULL,           -- float32, little-endian
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE TABLE lancedb_samples (
    collection TEXT NOT NULL,
    position INTEGER NOT NULL,      -- a hash of the key; the lowest ones are kept
    key INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (collection, position, key)
) WITHOUT ROWID;
CREATE TABLE lancedb_replaced (
    name TEXT PRIMARY KEY           -- a table in LanceDB that nobody needs once this transaction is committed
) WITHOUT ROWID;
"""

_FLOAT = np.dtype("<f4")
_SAMPLED = 256
# Knuth's multiplicative hash (The Art of Computer Programming, volume 3, 6.4), with a prime number of buckets.
_MULTIPLIER, _POSITIONS = 2_654_435_761, 4_294_967_291


def _create(connection: apsw.Connection) -> None:
    connection.execute(_SCHEMA)


#: Append-only: a released migration is never changed.
MIGRATIONS = (Migration("0001-lancedb", _create),)


@frozen
class TableRecord:
    """The record of a collection's table in LanceDB."""

    name: str
    dimension: int
    version: int


def read_table(connection: apsw.Connection, collection: str) -> TableRecord | None:
    """Return the record of the collection's table, or None if the collection was not prepared for vectors."""
    sql = "SELECT name, dimension, version FROM lancedb_tables WHERE collection = ?"
    row = connection.execute(sql, (collection,)).fetchone()
    return None if row is None else TableRecord(*row)


def write_table(connection: apsw.Connection, collection: str, table: TableRecord) -> None:
    """Write the record of the collection's table."""
    values = (collection, table.name, table.dimension, table.version)
    connection.execute("INSERT OR REPLACE INTO lancedb_tables VALUES (?, ?, ?, ?)", values)


def table_names(connection: apsw.Connection) -> set[str]:
    """Return the names of the tables of all collections, and of the replaced tables that are not dropped yet."""
    return {name for (name,) in connection.execute("SELECT name FROM lancedb_tables")} | set(replaced(connection))


def replaced(connection: apsw.Connection) -> list[str]:
    """Return the names of the replaced tables that are not dropped yet."""
    return [name for (name,) in connection.execute("SELECT name FROM lancedb_replaced ORDER BY name")]


def add_replaced(connection: apsw.Connection, name: str) -> None:
    """Record that a table can be dropped once the transaction is committed."""
    connection.execute("INSERT OR IGNORE INTO lancedb_replaced VALUES (?)", (name,))


def remove_replaced(connection: apsw.Connection, names: Sequence[str]) -> None:
    """Record that these tables were dropped."""
    connection.executemany("DELETE FROM lancedb_replaced WHERE name = ?", ((name,) for name in names))


def clear(connection: apsw.Connection, collection: str) -> None:
    """Remove every row of the collection."""
    for table in ("tables", "keys", "waiting", "samples"):
        connection.execute(f"DELETE FROM lancedb_{table} WHERE collection = ?", (collection,))


def add(connection: apsw.Connection, collection: str, keys: Sequence[int], vectors: Matrix) -> None:
    """Buffer new vectors, row i for key i."""
    rows = np.ascontiguousarray(vectors, _FLOAT)
    connection.executemany("INSERT INTO lancedb_keys VALUES (?, ?, 0)", ((collection, key) for key in keys))
    waiting = ((collection, key, row.tobytes()) for key, row in zip(keys, rows, strict=True))
    connection.executemany("INSERT INTO lancedb_waiting VALUES (?, ?, ?)", waiting)
    _add_samples(connection, collection, keys, rows)


def remove(connection: apsw.Connection, collection: str, keys: Sequence[int]) -> None:
    """Remove keys, and the rows about their vectors."""
    gone = [int(key) for key in keys]
    for table in ("keys", "waiting"):
        sql = f"DELETE FROM lancedb_{table} WHERE collection = ? AND key = ?"
        connection.executemany(sql, ((collection, key) for key in gone))
    sql = "DELETE FROM lancedb_samples WHERE collection = ? AND position = ? AND key = ?"
    connection.executemany(sql, ((collection, _position(key), key) for key in gone))


def read_keys(connection: apsw.Connection, collection: str) -> Keys:
    """Return every key, ascending."""
    rows = connection.execute("SELECT key FROM lancedb_keys WHERE collection = ? ORDER BY key", (collection,))
    return np.fromiter((key for (key,) in rows), np.int64)


def key_digest(connection: apsw.Connection, collection: str) -> KeyDigest:
    """Return the digest of the keys, summed by SQLite."""
    p = KeyDigest.MODULUS
    sql = f"""SELECT COUNT(*), COALESCE(SUM(key % {p}), 0), COALESCE(SUM((key % {p}) * (key % {p}) % {p}), 0)
              FROM lancedb_keys WHERE collection = ?"""
    return KeyDigest(*connection.execute(sql, (collection,)).get)


def batches(connection: apsw.Connection, collection: str, keys: Sequence[int]) -> dict[int, int]:
    """Return the batch of each of these keys whose vector is in LanceDB and valid."""
    if not keys:  # carray rejects an empty array
        return {}
    sql = """SELECT key, batch FROM lancedb_keys
             WHERE collection = ? AND batch <> 0 AND key IN (SELECT value FROM carray(?))"""
    return dict(connection.execute(sql, (collection, apsw.carray(np.asarray(keys, np.int64)))))


def all_batches(connection: apsw.Connection, collection: str) -> dict[int, int]:
    """Return the batch of every key whose vector is in LanceDB and valid."""
    return dict(
        connection.execute("SELECT key, batch FROM lancedb_keys WHERE collection = ? AND batch <> 0", (collection,))
    )


def count(connection: apsw.Connection, collection: str) -> int:
    """Return the number of valid vectors."""
    return int(connection.execute("SELECT COUNT(*) FROM lancedb_keys WHERE collection = ?", (collection,)).get)


def count_buffered(connection: apsw.Connection, collection: str) -> int:
    """Return the number of buffered vectors."""
    return int(connection.execute("SELECT COUNT(*) FROM lancedb_waiting WHERE collection = ?", (collection,)).get)


def read_buffered(connection: apsw.Connection, collection: str, dimension: int) -> tuple[Keys, Matrix]:
    """Return the ascending keys, and the vectors, (n, d), of the buffer. Raise RetrievalError if they are damaged."""
    sql = "SELECT key, vector FROM lancedb_waiting WHERE collection = ? ORDER BY key"
    rows = connection.execute(sql, (collection,)).fetchall()
    keys = np.fromiter((key for key, _ in rows), np.int64, len(rows))
    return keys, _matrix([vector for _, vector in rows], collection, dimension)


def mark_appended(connection: apsw.Connection, collection: str, batch: int) -> None:
    """Record that all buffered vectors are in LanceDB now."""
    connection.execute("UPDATE lancedb_keys SET batch = ? WHERE collection = ? AND batch = 0", (batch, collection))
    connection.execute("DELETE FROM lancedb_waiting WHERE collection = ?", (collection,))


def read_samples(connection: apsw.Connection, collection: str, dimension: int) -> Matrix:
    """Return a sample of the collection's vectors, (n, d). Raise RetrievalError if they are damaged."""
    sql = "SELECT vector FROM lancedb_samples WHERE collection = ? ORDER BY position, key"
    return _matrix([vector for (vector,) in connection.execute(sql, (collection,))], collection, dimension)


def _add_samples(connection: apsw.Connection, collection: str, keys: Sequence[int], rows: NDArray[np.float32]) -> None:
    sql = "SELECT COUNT(*), COALESCE(MAX(position), 0) FROM lancedb_samples WHERE collection = ?"
    count, last = connection.execute(sql, (collection,)).get
    for key, row in zip(keys, rows, strict=True):
        if count < _SAMPLED or _position(key) < last:
            values = (collection, _position(key), key, row.tobytes())
            connection.execute("INSERT OR REPLACE INTO lancedb_samples VALUES (?, ?, ?, ?)", values)
            count += 1
    if count > _SAMPLED:
        sql = """DELETE FROM lancedb_samples WHERE collection = ?1 AND (position, key) IN (
                 SELECT position, key FROM lancedb_samples WHERE collection = ?1
                 ORDER BY position DESC, key DESC LIMIT ?2)"""
        connection.execute(sql, (collection, count - _SAMPLED))


def _position(key: int) -> int:
    return int(key) * _MULTIPLIER % _POSITIONS


def _matrix(blobs: Sequence[object], collection: str, dimension: int) -> Vector | Matrix:
    # SQLite does not enforce column types.
    sound = [blob for blob in blobs if isinstance(blob, bytes) and len(blob) == dimension * _FLOAT.itemsize]
    if len(sound) < len(blobs):
        raise RetrievalError(f"the vectors of {collection!r} are damaged", hint="klaw doctor --fix")
    return np.frombuffer(b"".join(sound), _FLOAT).reshape(len(sound), dimension).astype(np.float32, copy=False)
