"""The rows in klaw.db about vectors in an engine: which are valid, which still wait here, and a sample of them.

Rolling back a transaction undoes these rows but nothing in the engine. Therefore the vectors that an engine gets are a
*batch* with a random number, and a vector there is valid only if klaw.db has its key with the number of its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import apsw
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from klaw_core import KeyDigest, Keys, Matrix, Migration, RetrievalError, StoredChunk, Vector
from klaw_store_sqlitevec.outside.engine import Changes, TableRecord
from klaw_store_sqlitevec.outside.labels import UNKNOWN, labels_of

_SCHEMA = """
CREATE TABLE {name}_tables (
    collection TEXT PRIMARY KEY,
    name TEXT NOT NULL,             -- of its table in the engine
    dimension INTEGER NOT NULL,
    version INTEGER NOT NULL        -- that a reader needs at least; 0 while there is no table in the engine
) WITHOUT ROWID;
CREATE TABLE {name}_keys (
    collection TEXT NOT NULL,
    key INTEGER NOT NULL,
    batch INTEGER NOT NULL,         -- 0: the vector is in {name}_waiting
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE TABLE {name}_waiting (
    collection TEXT NOT NULL,
    key INTEGER NOT NULL,
    vector BLOB NOT NULL,           -- float32, little-endian
    PRIMARY KEY (collection, key)
) WITHOUT ROWID;
CREATE TABLE {name}_samples (
    collection TEXT NOT NULL,
    position INTEGER NOT NULL,      -- a hash of the key; the lowest ones are kept
    key INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (collection, position, key)
) WITHOUT ROWID;
CREATE TABLE {name}_replaced (
    name TEXT PRIMARY KEY           -- a table in the engine that nobody needs once this transaction is committed
) WITHOUT ROWID;
"""
_LABELS = "ALTER TABLE {name}_waiting ADD COLUMN labels BLOB NOT NULL DEFAULT x''"  # int64, little-endian

_FLOAT, _WHOLE = np.dtype("<f4"), np.dtype("<i8")
_SAMPLED = 256
# Knuth's multiplicative hash (The Art of Computer Programming, volume 3, 6.4), with a prime number of buckets.
_MULTIPLIER, _POSITIONS = 2_654_435_761, 4_294_967_291


@frozen
class Rows:
    """The tables in klaw.db of the engine ``name``."""

    name: str

    def migrations(self) -> Sequence[Migration[apsw.Connection]]:
        """Return the migrations that create the tables. Append-only: a released one is never changed."""
        steps = {f"0001-{self.name}": _SCHEMA, "0002-labels": _LABELS}
        return [Migration(step, partial(_create, sql.format(name=self.name))) for step, sql in steps.items()]

    def read_table(self, connection: apsw.Connection, collection: str) -> TableRecord | None:
        """Return the record of the collection's table, or None if the collection was not prepared for vectors."""
        sql = f"SELECT name, dimension, version FROM {self.name}_tables WHERE collection = ?"
        row = connection.execute(sql, (collection,)).fetchone()
        return None if row is None else TableRecord(*row)

    def write_table(self, connection: apsw.Connection, collection: str, table: TableRecord) -> None:
        """Write the record of the collection's table."""
        values = (collection, table.name, table.dimension, table.version)
        connection.execute(f"INSERT OR REPLACE INTO {self.name}_tables VALUES (?, ?, ?, ?)", values)

    def table_names(self, connection: apsw.Connection) -> set[str]:
        """Return the names of the tables of all collections, and of the replaced tables that are not dropped yet."""
        named = connection.execute(f"SELECT name FROM {self.name}_tables")
        return {name for (name,) in named} | set(self.replaced(connection))

    def replaced(self, connection: apsw.Connection) -> list[str]:
        """Return the names of the replaced tables that are not dropped yet."""
        return [name for (name,) in connection.execute(f"SELECT name FROM {self.name}_replaced ORDER BY name")]

    def add_replaced(self, connection: apsw.Connection, name: str) -> None:
        """Record that a table can be dropped once the transaction is committed."""
        connection.execute(f"INSERT OR IGNORE INTO {self.name}_replaced VALUES (?)", (name,))

    def remove_replaced(self, connection: apsw.Connection, names: Sequence[str]) -> None:
        """Record that these tables were dropped."""
        connection.executemany(f"DELETE FROM {self.name}_replaced WHERE name = ?", ((name,) for name in names))

    def clear(self, connection: apsw.Connection, collection: str) -> None:
        """Remove every row of the collection."""
        for table in ("tables", "keys", "waiting", "samples"):
            connection.execute(f"DELETE FROM {self.name}_{table} WHERE collection = ?", (collection,))

    def add(self, connection: apsw.Connection, collection: str, chunks: Sequence[StoredChunk], vectors: Matrix) -> None:
        """Keep new vectors here, row i for chunk i, until the engine gets them."""
        rows = np.ascontiguousarray(vectors, _FLOAT)
        keys = [stored.key for stored in chunks]
        connection.executemany(f"INSERT INTO {self.name}_keys VALUES (?, ?, 0)", ((collection, key) for key in keys))
        waiting = (
            (collection, stored.key, row.tobytes(), np.array(labels_of(stored), _WHOLE).tobytes())
            for stored, row in zip(chunks, rows, strict=True)
        )
        sql = f"INSERT INTO {self.name}_waiting (collection, key, vector, labels) VALUES (?, ?, ?, ?)"
        connection.executemany(sql, waiting)
        self._add_samples(connection, collection, keys, rows)

    def remove(self, connection: apsw.Connection, collection: str, keys: Sequence[int]) -> None:
        """Remove keys, and the rows about their vectors."""
        gone = [int(key) for key in keys]
        for table in ("keys", "waiting"):
            sql = f"DELETE FROM {self.name}_{table} WHERE collection = ? AND key = ?"
            connection.executemany(sql, ((collection, key) for key in gone))
        sql = f"DELETE FROM {self.name}_samples WHERE collection = ? AND position = ? AND key = ?"
        connection.executemany(sql, ((collection, _position(key), key) for key in gone))

    def read_keys(self, connection: apsw.Connection, collection: str) -> Keys:
        """Return every key, ascending."""
        sql = f"SELECT key FROM {self.name}_keys WHERE collection = ? ORDER BY key"
        return np.fromiter((key for (key,) in connection.execute(sql, (collection,))), np.int64)

    def key_digest(self, connection: apsw.Connection, collection: str) -> KeyDigest:
        """Return the digest of the keys, summed by SQLite."""
        p = KeyDigest.MODULUS
        sql = f"""SELECT COUNT(*), COALESCE(SUM(key % {p}), 0), COALESCE(SUM((key % {p}) * (key % {p}) % {p}), 0)
                  FROM {self.name}_keys WHERE collection = ?"""
        return KeyDigest(*connection.execute(sql, (collection,)).get)

    def batches(
        self, connection: apsw.Connection, collection: str, keys: Sequence[int] | None = None
    ) -> dict[int, int]:
        """Return the batch of each of these keys (None: of all) whose vector is in the engine and valid."""
        sql = f"SELECT key, batch FROM {self.name}_keys WHERE collection = ? AND batch <> 0"
        if keys is None:
            return dict(connection.execute(sql, (collection,)))
        if not keys:  # carray rejects an empty array
            return {}
        values = (collection, apsw.carray(np.asarray(keys, np.int64)))
        return dict(connection.execute(f"{sql} AND key IN (SELECT value FROM carray(?))", values))

    def count(self, connection: apsw.Connection, collection: str, table: str = "keys") -> int:
        """Return the number of valid vectors, or of the rows of another table."""
        sql = f"SELECT COUNT(*) FROM {self.name}_{table} WHERE collection = ?"
        return int(connection.execute(sql, (collection,)).get)

    def read_waiting(self, connection: apsw.Connection, collection: str, dimension: int) -> Changes:
        """Return what the engine lacks, by ascending keys. Raise RetrievalError if it is damaged."""
        sql = f"SELECT key, vector, labels FROM {self.name}_waiting WHERE collection = ? ORDER BY key"
        rows: list[Any] = connection.execute(sql, (collection,)).fetchall()
        keys = np.fromiter((key for key, _, _ in rows), np.int64, len(rows))
        vectors = _matrix([vector for _, vector, _ in rows], collection, dimension)
        try:
            labels = [np.frombuffer(stored, _WHOLE).tolist() or [UNKNOWN] for _, _, stored in rows]
        except (TypeError, ValueError) as error:
            raise _damaged(collection) from error
        return Changes(0, keys, vectors, labels)

    def mark_applied(self, connection: apsw.Connection, collection: str, batch: int) -> None:
        """Record that the engine has all vectors that waited here."""
        sql = f"UPDATE {self.name}_keys SET batch = ? WHERE collection = ? AND batch = 0"
        connection.execute(sql, (batch, collection))
        connection.execute(f"DELETE FROM {self.name}_waiting WHERE collection = ?", (collection,))

    def read_samples(self, connection: apsw.Connection, collection: str, dimension: int) -> Matrix:
        """Return a sample of the collection's vectors, (n, d). Raise RetrievalError if they are damaged."""
        sql = f"SELECT vector FROM {self.name}_samples WHERE collection = ? ORDER BY position, key"
        return _matrix([vector for (vector,) in connection.execute(sql, (collection,))], collection, dimension)

    def _add_samples(
        self, connection: apsw.Connection, collection: str, keys: Sequence[int], rows: NDArray[np.float32]
    ) -> None:
        sql = f"SELECT COUNT(*), COALESCE(MAX(position), 0) FROM {self.name}_samples WHERE collection = ?"
        count, last = connection.execute(sql, (collection,)).get
        for key, row in zip(keys, rows, strict=True):
            if count < _SAMPLED or _position(key) < last:
                values = (collection, _position(key), key, row.tobytes())
                connection.execute(f"INSERT OR REPLACE INTO {self.name}_samples VALUES (?, ?, ?, ?)", values)
                count += 1
        if count > _SAMPLED:
            sql = f"""DELETE FROM {self.name}_samples WHERE collection = ?1 AND (position, key) IN (
                      SELECT position, key FROM {self.name}_samples WHERE collection = ?1
                      ORDER BY position DESC, key DESC LIMIT ?2)"""
            connection.execute(sql, (collection, count - _SAMPLED))


def _create(sql: str, connection: apsw.Connection) -> None:
    connection.execute(sql)


def _position(key: int) -> int:
    return int(key) * _MULTIPLIER % _POSITIONS


def _damaged(collection: str) -> RetrievalError:
    return RetrievalError(f"the vectors of {collection!r} are damaged", hint="klaw doctor --fix")


def _matrix(blobs: Sequence[object], collection: str, dimension: int) -> Vector | Matrix:
    # SQLite does not enforce column types.
    sound = [blob for blob in blobs if isinstance(blob, bytes) and len(blob) == dimension * _FLOAT.itemsize]
    if len(sound) < len(blobs):
        raise _damaged(collection)
    return np.frombuffer(b"".join(sound), _FLOAT).reshape(len(sound), dimension).astype(np.float32, copy=False)
