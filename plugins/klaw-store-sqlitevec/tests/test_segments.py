"""Segments of quantized vectors: how they fill and empty, what of them is kept in RAM, and which damage is noticed."""

import re
import threading
import tracemalloc
from contextlib import suppress
from importlib import import_module

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import KeySelection, Query, RetrievalError, VectorSpace
from klaw_store_sqlitevec import exact, quantized
from klaw_store_sqlitevec.quantized import cache, codes, tables
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.index import stored

SPACE = VectorSpace("test", "1", 48)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "klaw.db"


def add(index, connection, vectors, first=1):
    with connection:
        index.add(connection, "memory", [stored(key, "") for key in range(first, first + len(vectors))], vectors)


def remove(index, connection, keys):
    with connection:
        index.remove(connection, "memory", keys)


def keys_of(index, connection, vector, limit=10, within=None):
    selected = None if within is None else KeySelection(np.asarray(within))
    return [hit.key for hit in index.search(connection, Query("", vector=vector, within=selected), limit)]


def forms(connection):
    """Return whether there is a vec0 table, and whether there are quantized vectors."""
    return exact.exists(connection, "memory"), quantized.read_quantization(connection, "memory") is not None


class TestSegments:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        """Make segments small: 64 places, emptied when half is dead."""
        names = ("tables", "cache", "check", "view")
        # All of them first: one that is imported later would keep the small number for good.
        for module in [import_module(f"klaw_store_sqlitevec.quantized.{name}") for name in names]:
            monkeypatch.setattr(module, "CAPACITY", 64)
        monkeypatch.setattr(tables, "MIN_FOR_CENTRE", 10)

    def test_a_change_reads_only_one_segment_again(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:300])
        for _ in range(8):
            keys_of(index, connection, crowd[0])
        before = dict(index.storage._cache._held["memory"])
        assert before
        assert all(held.is_whole for held in before.values())
        add(index, connection, crowd[300:310], first=301)
        assert keys_of(index, connection, crowd[305], 1) == [306]
        after = index.storage._cache._held["memory"]
        same = [key for key in after if after[key] is before[key]]
        assert len(same) == len(after) - 1
        assert all(held.is_whole for held in after.values()), "of the changed one only what is new"

    def test_segments_with_half_of_their_rows_removed_are_emptied(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:320])
        assert len(tables.read_segments(connection, "memory")) == 5
        remove(index, connection, [key for key in range(1, 321) if key % 5])
        places = sum(segment.used for segment in tables.read_segments(connection, "memory"))
        assert places <= 2 * 64 + 64
        assert index.keys(connection, "memory").tolist() == list(range(5, 321, 5))
        assert index.check(connection, "memory", SPACE) == []
        assert keys_of(index, connection, crowd[104], 1) == [105]

    def test_a_segment_that_others_were_emptied_into_loses_nothing_when_it_is_emptied_too(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:84])
        remove(index, connection, range(31, 76))  # of the first 64 more than half, and of the last 20
        assert index.keys(connection, "memory").tolist() == [*range(1, 31), *range(76, 85)]
        assert index.check(connection, "memory", SPACE) == []
        for number in (0, 29, 75, 83):
            assert keys_of(index, connection, crowd[number], 1) == [number + 1]

    def test_two_segments_are_emptied_in_one_call(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:114])
        living = [*range(1, 6), *range(105, 115)]
        remove(index, connection, range(6, 105))
        assert index.keys(connection, "memory").tolist() == living
        assert index.check(connection, "memory", SPACE) == []
        assert sorted(keys_of(index, connection, crowd[0], 100)) == living

    def test_rows_of_a_file_that_was_put_back_and_written_on_are_read_again(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:20])
        with apsw.Connection(":memory:") as kept:
            with kept.backup("main", connection, "main") as backup:
                backup.step()
            add(index, connection, crowd[20:30], first=21)
            for _ in range(3):
                keys_of(index, connection, crowd[25])
            with connection.backup("main", kept, "main") as backup:
                backup.step()
        add(index, connection, crowd[500:520], first=21)
        query = Query("", vector=crowd[505])
        assert index.search(connection, query, 20) == VectorIndex("quantized").search(connection, query, 20)
        assert keys_of(index, connection, crowd[505], 1) == [26]

    def test_another_connections_write_is_seen_and_an_older_snapshot_stays(self, opened, crowd):
        index = VectorIndex("quantized")
        reader, writer = opened(index), opened(index)
        writer.pragma("journal_mode", "wal")
        add(index, writer, crowd[:100])
        for _ in range(4):
            keys_of(index, reader, crowd[0])
        reader.execute("BEGIN")
        assert keys_of(index, reader, crowd[50], 1) == [51]
        index.remove(writer, "memory", [51])
        add(index, writer, crowd[200:201], first=201)
        assert keys_of(index, writer, crowd[200], 1) == [201]
        assert keys_of(index, reader, crowd[50], 1) == [51]
        assert keys_of(index, reader, crowd[200], 1) != [201]
        reader.execute("COMMIT")
        assert keys_of(index, reader, crowd[50], 1) != [51]
        assert keys_of(index, reader, crowd[200], 1) == [201]

    def test_rows_read_after_a_removal_are_not_those_of_an_older_snapshot(self, opened, crowd):
        index = VectorIndex("quantized")
        reader, writer = opened(index), opened(index)
        writer.pragma("journal_mode", "wal")
        add(index, writer, crowd[:60])
        reader.execute("BEGIN")
        assert keys_of(VectorIndex("quantized"), reader, crowd[50], 1) == [51]
        index.remove(writer, "memory", [51])
        for _ in range(3):
            assert keys_of(index, writer, crowd[50], 1) != [51]
        (held,) = index.storage._cache._held["memory"].values()
        assert held.is_whole
        for _ in range(3):
            assert keys_of(index, reader, crowd[50], 1) == [51]

    def test_rolled_back_rows_are_not_cached(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:100])
        for _ in range(4):
            keys_of(index, connection, crowd[0])
        for number in (500, 501):  # two vectors, one after the other at the same place, under the same key
            connection.execute("BEGIN")
            index.add(connection, "memory", [stored(101, "")], crowd[number : number + 1])
            assert keys_of(index, connection, crowd[number], 1) == [101]
            connection.execute("COMMIT" if number == 501 else "ROLLBACK")
        hit = index.search(connection, Query("", vector=crowd[501]), 1)[0]
        assert (hit.key, hit.score) == (101, pytest.approx(1.0, abs=0.01))

    def test_threads_can_search_while_another_writes(self, path, crowd):
        index = VectorIndex("quantized")
        store = SqliteStore(path)
        store.enlist("sqlite-vec", index)
        with store.write() as transaction:
            index.reset(transaction.resource, "memory", SPACE)
            index.add(transaction.resource, "memory", [stored(key, "") for key in range(1, 401)], crowd[:400])
        wrong, stop = [], threading.Event()

        def ask(number):
            while not stop.is_set():
                with store.read() as snapshot:
                    held = {*index.keys(snapshot.resource, "memory").tolist()}
                    found = keys_of(index, snapshot.resource, crowd[number], 400)
                    if {*found} != held or (number + 1 in held and found[0] != number + 1):
                        wrong.append((number, len(held), found[:3]))

        threads = [threading.Thread(target=ask, args=(number,)) for number in (3, 77, 350)]
        for thread in threads:
            thread.start()
        for key in range(1, 300, 7):
            with store.write() as transaction:
                index.remove(transaction.resource, "memory", [key, key + 1])
                index.add(transaction.resource, "memory", [stored(1000 + key, "")], crowd[1000 + key : 1001 + key])
        stop.set()
        for thread in threads:
            thread.join()
        store.close()
        assert wrong == []

    def test_rows_that_another_thread_reads_are_kept(self, opened, crowd, monkeypatch):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:60])
        keys_of(index, connection, crowd[0])
        (held,) = index.storage._cache._held["memory"].values()
        form, plain = quantized.read_quantization(connection, "memory"), cache.row_bytes

        def meanwhile(dimension):
            monkeypatch.setattr(cache, "row_bytes", plain)
            cache._read_more_rows(connection, "memory", form, [held])
            return plain(dimension)

        monkeypatch.setattr(cache, "row_bytes", meanwhile)
        cache._read_more_rows(connection, "memory", form, [held])
        assert held.is_whole
        assert held.rows[:60].any(axis=1).all()

    def test_rows_that_exceed_the_cache_are_not_kept(self, opened, crowd):
        index = VectorIndex("quantized", memory_mb=0)
        connection = opened(index)
        add(index, connection, crowd[:300])
        assert keys_of(index, connection, crowd[200], 1) == [201]
        assert index.storage._cache._held["memory"] == {}
        index.storage._cache.most_bytes = 2 * 64 * 16  # the codes and keys of two segments
        assert keys_of(index, connection, crowd[200], 1) == [201]
        assert len(index.storage._cache._held["memory"]) == 2

    def test_a_removed_vector_leaves_codes_and_pages(self, opened, path, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        connection.pragma("secure_delete", 1)  # as the store has it
        add(index, connection, crowd[:60])
        (segment,) = tables.read_segments(connection, "memory")
        row = connection.execute("SELECT vector FROM quantized_memory WHERE key = 7").get
        assert row[4:] in path.read_bytes()
        index.remove(connection, "memory", [7])
        assert row[4:] not in path.read_bytes()
        planes = np.frombuffer(connection.execute("SELECT codes FROM quantized_codes").get, np.uint64)
        assert not planes.reshape(-1, 64)[:, 6].any()
        assert planes.reshape(-1, 64)[:, 7].any()
        assert connection.execute("SELECT stamp FROM quantized_segments").get != segment.stamp


DAMAGE = {
    "UPDATE quantized_codes SET codes = x'00'": "missing or have the wrong length",
    "DELETE FROM quantized_keys": "missing or have the wrong length",
    "UPDATE quantized_codes SET codes = zeroblob(LENGTH(codes))": "codes do not match",
    "UPDATE quantized_keys SET keys = zeroblob(LENGTH(keys))": "stored under another chunk",
    "DELETE FROM quantized_memory WHERE key = 9": "missing or stored",
    "UPDATE quantized_memory SET vector = zeroblob(LENGTH(vector)) WHERE key = 9": "not of unit length",
    "UPDATE quantized_memory SET vector = x'00' WHERE key = 9": "wrong length",
    "DELETE FROM quantized_segments": "in no segment",
    "DELETE FROM quantized_forms": "lack their quantization parameters",
    "UPDATE quantized_segments SET dead = zeroblob(1)": "damaged",
    "UPDATE quantized_segments SET dead = unhex(hex(zeroblob(2047)) || '01')": "damaged",
    "UPDATE quantized_segments SET dead = 'a text'": "damaged",
    "UPDATE quantized_segments SET used = 16385": "damaged",
    "UPDATE quantized_segments SET used = -1": "damaged",
    "UPDATE quantized_segments SET used = 'many'": "damaged",
    "UPDATE quantized_segments SET used = 1100": "missing or stored",
    "UPDATE quantized_memory SET vector = 'a text' WHERE key = 9": "cannot be read",
    "UPDATE quantized_codes SET codes = 'a text'": "missing or have the wrong length",
    "UPDATE quantized_forms SET dimension = 'wide'": "damaged",
    "UPDATE quantized_forms SET dimension = 'wide', centre = NULL": "damaged",
    "UPDATE quantized_forms SET dimension = 7": "damaged|dimensions",
    "UPDATE quantized_forms SET centre = x'00'": "damaged|cannot be read",
    "DROP TABLE quantized_memory": "no such table",
}


@pytest.mark.parametrize("sql", DAMAGE)
def test_damage_is_found_and_raises_only_klaw_errors(opened, crowd, sql):
    index = VectorIndex("quantized")
    connection = opened(index)
    add(index, connection, crowd[:1200])
    connection.execute(sql)
    problems = index.check(connection, "memory", SPACE)
    assert problems
    assert any(re.search(DAMAGE[sql], problem) for problem in problems), problems
    with suppress(RetrievalError):
        keys_of(VectorIndex("quantized"), connection, crowd[5])
    if not sql.startswith("DROP"):
        index.reset(connection, "memory", SPACE)
        assert index.check(connection, "memory", SPACE) == []


def test_a_vector_that_is_not_a_number_is_damage(opened, crowd):
    index = VectorIndex("quantized")
    connection = opened(index)
    add(index, connection, crowd[:20])
    row = connection.execute("SELECT vector FROM quantized_memory WHERE key = 9").get
    bad = np.array([np.nan], dtype="<f4").tobytes() + row[4:]
    connection.execute("UPDATE quantized_memory SET vector = ? WHERE key = 9", (bad,))
    (problem,) = index.check(connection, "memory", SPACE)
    assert problem.startswith("1 quantized vectors are not of unit length")


def test_a_code_has_the_signs_of_the_steps():
    steps = np.array([[1, -1, 0, 5] * 20], dtype=np.int8)
    planes = codes.encode(steps)
    assert planes.shape == (2, 1)
    bits = np.unpackbits(np.ascontiguousarray(planes.T).view(np.uint8), axis=1)[0]
    assert bits.tolist() == [1, 0, 0, 1] * 20 + [0] * 48


def test_estimates_are_computed_in_slices():
    random = np.random.default_rng(2)
    planes = random.integers(0, 2**63, (16, 20_000), dtype=np.uint64)
    query = random.standard_normal(1024).astype(np.float32)
    tracemalloc.start()
    found = codes.estimates(planes, 1024, query)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 << 20, "a float32 for each bit would be 78 MiB"
    for number in (0, 4095, 4096, 19_999):
        bits = np.unpackbits(np.ascontiguousarray(planes[:, number]).view(np.uint8))
        assert found[number] == pytest.approx(bits @ query, rel=1e-3, abs=1e-2)


def test_quantized_vectors_are_read_back():
    random = np.random.default_rng(1)
    rows = random.standard_normal((20, 30)).astype(np.float32)
    centre = random.standard_normal(30).astype(np.float32)
    rows[3] = centre
    packed = codes.quantize(rows, centre)
    assert packed.shape == (20, codes.row_bytes(30))
    assert codes.restore(packed, centre) == pytest.approx(rows, abs=0.04)


@given(
    keys=st.lists(st.integers(-(2**40), 2**40), min_size=1, unique=True),
    wanted=st.lists(st.integers(-(2**40), 2**40), min_size=1),
    small=st.booleans(),
)
def test_membership_agrees_with_isin(keys, wanted, small):
    limit = 50 if small else 2**41
    left = np.array([key % limit for key in keys])
    right = np.array([key % limit for key in wanted])
    assert codes.members(left, right).tolist() == np.isin(left, right).tolist()


@given(far=st.lists(st.integers(0, 20), min_size=1), count=st.integers(1, 30))
def test_the_nearest_candidates_are_complete(far, count):
    distances = np.array(far, dtype=np.uint16)
    found = codes.nearest(distances, count, 20, lambda found: -found)
    assert len(found) >= min(count, len(far))
    left = np.delete(distances, found)
    assert not len(left) or distances[found].max() <= left.min()
