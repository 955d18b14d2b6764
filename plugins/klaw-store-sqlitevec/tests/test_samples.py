"""A sample of vectors is read once for each version of the file, and never again used after a change."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from klaw_store_sqlitevec import exact
from klaw_store_sqlitevec.samples import SampleCache
from klaw_store_sqlitevec.vector_storage import _median
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.index import stored, unit_vectors

DIMENSION = 8


@pytest.fixture
def connections(tmp_path: Path) -> Iterator[tuple[apsw.Connection, apsw.Connection]]:
    """Yield a reader and a writer of a file with 20 vectors."""
    opened = apsw.Connection(str(tmp_path / "v.db")), apsw.Connection(str(tmp_path / "v.db"))
    for connection in opened:
        VectorIndex().prepare(connection)
        connection.pragma("journal_mode", "wal")
    exact.make(opened[1], "memory", DIMENSION)
    add(opened[1], 1, 20)
    yield opened
    for connection in opened:
        connection.close()


def add(connection: apsw.Connection, first: int, last: int) -> None:
    chunks = [stored(number, f"text {number}") for number in range(first, last + 1)]
    exact.add(connection, "memory", [chunk.key for chunk in chunks], unit_vectors(chunks, DIMENSION))


def begin(connection: apsw.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()


def test_a_sample_is_read_once_until_the_file_changes(connections):
    reader, writer = connections
    cache = SampleCache(256)
    begin(reader)
    first = cache.get(reader, "memory", DIMENSION)
    assert cache.get(reader, "memory", DIMENSION) is first
    add(writer, 21, 30)
    assert cache.get(reader, "memory", DIMENSION) is first, "the snapshot is still the old one"
    reader.execute("ROLLBACK")
    begin(reader)
    assert len(cache.get(reader, "memory", DIMENSION)) == 30
    reader.execute("ROLLBACK")


def test_changes_of_the_own_connection_are_seen(connections):
    _, writer = connections
    cache = SampleCache(256)
    begin(writer)
    assert len(cache.get(writer, "memory", DIMENSION)) == 20
    exact.remove(writer, "memory", [3])
    assert len(cache.get(writer, "memory", DIMENSION)) == 19, "a transaction that writes"
    writer.execute("COMMIT")
    begin(writer)
    assert len(cache.get(writer, "memory", DIMENSION)) == 19
    writer.execute("ROLLBACK")


def test_the_sample_agrees_with_a_direct_read(connections):
    reader, _ = connections
    begin(reader)
    kept = SampleCache(7).get(reader, "memory", DIMENSION)
    assert np.array_equal(kept, exact.read_sample(reader, "memory", DIMENSION, 7))
    reader.execute("ROLLBACK")


@pytest.mark.parametrize("count", [2, 3, 8, 255, 256])
def test_the_median_agrees_with_numpy(count):
    values = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    assert _median(values) == float(np.median(values))
