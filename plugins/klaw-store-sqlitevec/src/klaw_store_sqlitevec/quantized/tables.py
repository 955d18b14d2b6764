"""The tables of quantized vectors: reading and writing.

Vectors are in *segments* of ``CAPACITY`` places. A place is used only once: a removed vector leaves zeros and a bit in
``dead``, and a segment that is half dead is merged into the last one. Every change gives a segment a new random
``stamp``. So cached content of a segment is valid as long as its stamp is the same, for every connection, process and
copy of the file.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw
import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from klaw_core import KeyDigest, Keys, Matrix, RetrievalError, Vector
from klaw_store_sqlitevec.errors import damaged_vectors
from klaw_store_sqlitevec.key_digests import read_key_digest
from klaw_store_sqlitevec.names import has_table, is_standard, table_name
from klaw_store_sqlitevec.quantized.codes import Bytes, Places, encode, quantize, restore, row_bytes, unpack, words
from klaw_store_sqlitevec.quantized_schema import CREATE_ROWS

#: Places per segment: large enough that a query needs few reads and calls of numpy, small enough that reading a changed
#: segment again takes a fraction of a millisecond.
CAPACITY = 16_384

#: The minimum number of vectors for a centre. The mean of fewer vectors does not predict later ones.
MIN_FOR_CENTRE = 1_000

_FLOAT_BYTES = 4
_KEY_BYTES = 8
_WORD_BYTES = 8
_PLACES_A_BYTE = 8
_NOWHERE = np.empty(0, np.int64)
_BATCH = 4_096


@frozen
class Quantization:
    """The parameters of a collection's quantization. ``centred`` is false while there are few vectors."""

    dimension: int
    centre: Vector = field(eq=False)
    centred: bool


@frozen
class Segment:
    """A row of ``quantized_segments``; ``dead`` are its dead places, ascending, relative to its first place."""

    id: int
    made: bytes
    stamp: bytes
    used: int
    dead: Places = field(eq=False)

    @property
    def first(self) -> int:
        """The segment's first place in the table."""
        return self.id * CAPACITY

    def follows(self, other: "Segment") -> bool:
        """Return whether this is a later state of the same segment, with more used or dead places."""
        return self.made == other.made and self.used >= other.used and len(self.dead) >= len(other.dead)


def rows_table(collection: str) -> str:
    """Return the name of the table of the collection's vectors."""
    return table_name(collection, "quantized")


def exists(connection: apsw.Connection, collection: str) -> bool:
    """Return whether the collection has a table of quantized vectors."""
    return is_standard(collection) or has_table(connection, rows_table(collection))


def read_quantization(connection: apsw.Connection, collection: str) -> Quantization | None:
    """Return the parameters of a collection's quantization; None if it has none. Raise RetrievalError."""
    sql = "SELECT dimension, centre FROM quantized_forms WHERE collection = ?"
    row = connection.execute(sql, (collection,)).fetchone()
    if row is None:
        return None
    dimension, blob = row
    if not isinstance(dimension, int) or dimension < 1:
        raise _damaged(collection)
    if blob is not None and not (isinstance(blob, bytes) and len(blob) == dimension * _FLOAT_BYTES):
        raise _damaged(collection)
    centre = np.zeros(dimension, np.float32) if blob is None else np.frombuffer(blob, "<f4").astype(np.float32)
    return Quantization(dimension, centre, blob is not None)


def create_quantization(
    connection: apsw.Connection, collection: str, dimension: int, centre: Vector | None
) -> Quantization:
    """Create the quantized form of a collection, empty."""
    drop_quantization(connection, collection)
    if not exists(connection, collection):
        connection.execute(CREATE_ROWS.format(table=rows_table(collection)))
    blob = None if centre is None else centre.astype("<f4").tobytes()
    connection.execute("INSERT INTO quantized_forms VALUES (?, ?, ?)", (collection, dimension, blob))
    return Quantization(dimension, np.zeros(dimension, np.float32) if centre is None else centre, centre is not None)


def drop_quantization(connection: apsw.Connection, collection: str) -> None:
    """Remove a collection's quantized vectors and parameters, even if they are damaged."""
    if exists(connection, collection):
        connection.execute(f"DELETE FROM {rows_table(collection)}")
    for segment in _segment_ids(connection, collection):
        _drop_segment(connection, segment)
    for table in ("quantized_codes", "quantized_keys"):  # of segments whose row is missing because of damage
        connection.execute(f"DELETE FROM {table} WHERE segment NOT IN (SELECT id FROM quantized_segments)")
    connection.execute("DELETE FROM quantized_forms WHERE collection = ?", (collection,))


def read_segments(connection: apsw.Connection, collection: str) -> list[Segment]:
    """Return a collection's segments in order. Raise RetrievalError if they are damaged."""
    return parse_segments(collection, read_segment_rows(connection, collection))


def read_segment_rows(connection: apsw.Connection, collection: str) -> list[Any]:
    """Return the rows of a collection's segments, in the order of their places."""
    sql = "SELECT id, made, stamp, used, dead FROM quantized_segments WHERE collection = ? ORDER BY id"
    return connection.execute(sql, (collection,)).fetchall()


def parse_segments(collection: str, rows: Iterable[Any]) -> list[Segment]:
    """Convert the rows of :func:`read_segment_rows` to segments. Raise RetrievalError if they are damaged."""
    return [_segment(collection, row) for row in rows]


def _read_segment(connection: apsw.Connection, collection: str, segment: int) -> Segment:
    sql = "SELECT id, made, stamp, used, dead FROM quantized_segments WHERE id = ?"
    return _segment(collection, connection.execute(sql, (segment,)).fetchone())


def _segment(collection: str, row: Any) -> Segment:
    """Convert a row to a segment, and check that its places are within its range."""
    number, made, stamp, used, bits = row
    if not isinstance(used, int) or not 0 <= used <= CAPACITY:
        raise _damaged(collection)
    if bits is not None and not (isinstance(bits, bytes) and len(bits) == CAPACITY // _PLACES_A_BYTE):
        raise _damaged(collection)
    dead = _NOWHERE if bits is None else np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8)))
    if len(dead) and dead[-1] >= used:
        raise _damaged(collection)
    return Segment(number, made, stamp, used, dead)


def _segment_ids(connection: apsw.Connection, collection: str) -> list[int]:
    sql = "SELECT id FROM quantized_segments WHERE collection = ? ORDER BY id"
    return [row[0] for row in connection.execute(sql, (collection,))]


def count(connection: apsw.Connection, collection: str) -> int:
    """Return the number of quantized vectors of a collection."""
    return sum(segment.used - len(segment.dead) for segment in read_segments(connection, collection))


def read_keys(connection: apsw.Connection, collection: str) -> Keys:
    """Return every key, ascending."""
    if not exists(connection, collection):
        return _NOWHERE
    sql = f"SELECT key FROM {rows_table(collection)} ORDER BY key"
    return np.fromiter((row[0] for row in connection.execute(sql)), dtype=np.int64)


def key_digest(connection: apsw.Connection, collection: str) -> KeyDigest:
    """Return the digest of the keys."""
    if not exists(connection, collection):
        return KeyDigest()
    return read_key_digest(connection, rows_table(collection), "key")


def read_rows(connection: apsw.Connection, collection: str, places: Places, dimension: int) -> tuple[Keys, Bytes]:
    """Return keys and packed rows at these places, in this order. Raise RetrievalError if one is missing."""
    sql = f"""
        SELECT stored.key, stored.vector
        FROM carray(?) AS wanted CROSS JOIN {rows_table(collection)} AS stored ON stored.place = wanted.value
    """
    rows: list[Any] = []
    if len(places):
        rows = connection.execute(sql, (apsw.carray(np.ascontiguousarray(places)),)).fetchall()
    if len(rows) != len(places):
        raise _damaged(collection)
    return _packed(collection, rows, dimension)


def read_range(
    connection: apsw.Connection, collection: str, first: int, end: int, dimension: int
) -> tuple[Places, Bytes]:
    """Return the live places from ``first`` to before ``end``, and their packed rows."""
    sql = f"SELECT place, vector FROM {rows_table(collection)} WHERE place >= ? AND place < ? ORDER BY place"
    return _packed(collection, connection.execute(sql, (first, end)).fetchall(), dimension)


def _packed(collection: str, rows: list[Any], dimension: int) -> tuple[NDArray[np.int64], Bytes]:
    """Return the numbers and the packed rows of rows (number, vector)."""
    packed = b"".join([vector for _, vector in rows])
    if len(packed) != len(rows) * row_bytes(dimension):
        raise _damaged(collection)
    numbers = np.fromiter((number for number, _ in rows), dtype=np.int64, count=len(rows))
    return numbers, np.frombuffer(packed, np.uint8).reshape(len(rows), row_bytes(dimension))


def _damaged(collection: str) -> RetrievalError:
    return damaged_vectors(f"the quantized vectors of {collection!r} are damaged")


def add(
    connection: apsw.Connection, collection: str, quantization: Quantization, keys: Sequence[int], vectors: Matrix
) -> Quantization:
    """Add vectors; return the parameters afterwards. Once there are enough vectors, all are centred."""
    held = 0 if quantization.centred else count(connection, collection)
    if not quantization.centred and held + len(keys) >= MIN_FOR_CENTRE:
        places = _places_of(connection, collection, read_keys(connection, collection))
        old, rows = read_rows(connection, collection, places, quantization.dimension)
        vectors = np.vstack([restore(rows, quantization.centre), vectors])
        keys = [*old.tolist(), *keys]
        quantization = create_quantization(connection, collection, quantization.dimension, vectors.mean(axis=0))
    for first in range(0, len(keys), _BATCH):
        part = slice(first, first + _BATCH)
        _append(connection, collection, keys[part], quantize(vectors[part], quantization.centre))
    return quantization


def remove(connection: apsw.Connection, collection: str, keys: Sequence[int]) -> None:
    """Remove vectors and their codes; unknown keys are ignored."""
    quantization = read_quantization(connection, collection)
    if quantization is None:
        return
    places = _places_of(connection, collection, np.array(sorted(set(keys)), dtype=np.int64))
    if not len(places):
        return
    sql = f"DELETE FROM {rows_table(collection)} WHERE place = ?"
    connection.executemany(sql, ((place,) for place in places.tolist()))
    for number in _segment_ids(connection, collection):
        gone = places[places // CAPACITY == number] - number * CAPACITY
        if not len(gone):
            continue
        # Read only now, because the vectors of a segment that was merged before may be in it.
        segment = _read_segment(connection, collection, number)
        dead = np.sort(np.concatenate((segment.dead, gone)))  # without `np.union1d`, which imports `numpy.ma`
        if 2 * len(dead) > max(segment.used, MIN_FOR_CENTRE):
            _empty(connection, collection, quantization, segment, dead)
            continue
        _erase(connection, segment.id, gone, words(quantization.dimension))
        bits = np.zeros(CAPACITY, np.bool_)
        bits[dead] = True
        sql = "UPDATE quantized_segments SET dead = ?, stamp = randomblob(16) WHERE id = ?"
        connection.execute(sql, (np.packbits(bits).tobytes(), segment.id))


def _empty(
    connection: apsw.Connection, collection: str, quantization: Quantization, segment: Segment, dead: Places
) -> None:
    """Move the live vectors of a segment to the end of the last one, and remove the segment."""
    places = np.setdiff1d(np.arange(segment.used), dead, assume_unique=True) + segment.first
    keys, rows = read_rows(connection, collection, places, quantization.dimension)
    sql = f"DELETE FROM {rows_table(collection)} WHERE place BETWEEN ? AND ?"
    connection.execute(sql, (segment.first, segment.first + CAPACITY - 1))
    _drop_segment(connection, segment.id)
    for first in range(0, len(keys), _BATCH):
        _append(connection, collection, keys[first : first + _BATCH].tolist(), rows[first : first + _BATCH])


def _append(connection: apsw.Connection, collection: str, keys: Sequence[int], rows: Bytes) -> None:
    """Write packed rows and their codes to free places at the end."""
    planes = encode(unpack(rows)[1])
    done = 0
    while done < len(keys):
        segment, used = _open_segment(connection, collection, len(planes))
        part = slice(done, min(len(keys), done + CAPACITY - used))
        first = segment * CAPACITY + used
        sql = f"INSERT INTO {rows_table(collection)} (place, key, vector) VALUES (?, ?, ?)"
        fresh = enumerate(zip(keys[part], rows[part], strict=True), first)
        connection.executemany(sql, ((place, int(key), row.tobytes()) for place, (key, row) in fresh))
        with connection.blob_open("main", "quantized_codes", "codes", segment, True) as blob:
            for number, plane in enumerate(planes):
                blob.seek((number * CAPACITY + used) * _WORD_BYTES)
                blob.write(plane[part].tobytes())
        with connection.blob_open("main", "quantized_keys", "keys", segment, True) as blob:
            blob.seek(used * _KEY_BYTES)
            blob.write(np.asarray(keys[part], dtype="<i8").tobytes())
        sql = "UPDATE quantized_segments SET used = ?, stamp = randomblob(16) WHERE id = ?"
        connection.execute(sql, (used + part.stop - part.start, segment))
        done = part.stop


def _open_segment(connection: apsw.Connection, collection: str, width: int) -> tuple[int, int]:
    """Return a segment with free places, the last one or a new one, and the number of its used places."""
    sql = "SELECT id, used FROM quantized_segments WHERE collection = ? ORDER BY id DESC LIMIT 1"
    row = connection.execute(sql, (collection,)).fetchone()
    if row is not None and row[1] < CAPACITY:
        return int(row[0]), int(row[1])
    sql = "INSERT INTO quantized_segments (collection, made, stamp, used) VALUES (?, randomblob(16), randomblob(16), 0)"
    connection.execute(sql, (collection,))
    fresh = connection.last_insert_rowid()
    connection.execute("INSERT INTO quantized_codes VALUES (?, zeroblob(?))", (fresh, width * CAPACITY * _WORD_BYTES))
    connection.execute("INSERT INTO quantized_keys VALUES (?, zeroblob(?))", (fresh, CAPACITY * _KEY_BYTES))
    return fresh, 0


def _erase(connection: apsw.Connection, segment: int, gone: Places, width: int) -> None:
    """Overwrite the codes and keys at these places with zeros, one run of adjacent places at a time."""
    codes = connection.blob_open("main", "quantized_codes", "codes", segment, True)
    keys = connection.blob_open("main", "quantized_keys", "keys", segment, True)
    with codes, keys:
        for first, length in _runs(gone):
            keys.seek(first * _KEY_BYTES)
            keys.write(bytes(length * _KEY_BYTES))
            for number in range(width):
                codes.seek((number * CAPACITY + first) * _WORD_BYTES)
                codes.write(bytes(length * _WORD_BYTES))


def _runs(places: Places) -> Iterator[tuple[int, int]]:
    """Yield the first place and the length of each run of adjacent places."""
    for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
        yield int(run[0]), len(run)


def _drop_segment(connection: apsw.Connection, segment: int) -> None:
    connection.execute("DELETE FROM quantized_codes WHERE segment = ?", (segment,))
    connection.execute("DELETE FROM quantized_keys WHERE segment = ?", (segment,))
    connection.execute("DELETE FROM quantized_segments WHERE id = ?", (segment,))


def _places_of(connection: apsw.Connection, collection: str, keys: Keys) -> Places:
    """Return the places of the existing keys, ascending."""
    sql = f"""
        SELECT stored.place FROM carray(?) AS wanted CROSS JOIN {rows_table(collection)} AS stored
        ON stored.key = wanted.value ORDER BY stored.place
    """
    if not len(keys):
        return _NOWHERE
    return np.fromiter((row[0] for row in connection.execute(sql, (apsw.carray(keys),))), dtype=np.int64)
