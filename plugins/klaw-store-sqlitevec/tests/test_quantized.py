"""Quantized vectors: what they find beside vec0, how a collection changes its form, and what is kept in RAM."""

import re
import threading
import tracemalloc
from contextlib import suppress

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import Query, RetrievalError, VectorSpace
from klaw_core.testing.index import stored
from klaw_store_sqlitevec import exact, quantized
from klaw_store_sqlitevec.quantized import cache, codes, tables
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.vectors import VectorIndex

SPACE = VectorSpace("test", "1", 48)
MANY = 6_000


@pytest.fixture(scope="module")
def crowd():
    """Return vectors that stand in groups, all of them roughly in one direction, as those of the e5 models do."""
    random = np.random.default_rng(3)
    groups = random.standard_normal((300, SPACE.dimension))
    rows = groups[random.integers(0, 300, MANY)] + 0.6 * random.standard_normal((MANY, SPACE.dimension)) + 1.5
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "klaw.db"


@pytest.fixture
def opened(path):
    """Return a function that opens the database with an index of its own."""
    connections = []

    def connect(index):
        connection = apsw.Connection(str(path))
        connections.append(connection)
        connection.pragma("synchronous", 0)
        index.prepare(connection)
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'quantized_forms'").fetchone():
            for migration in index.migrations():
                migration.apply(connection)
            index.reset(connection, "memory", SPACE)
        return connection

    yield connect
    for connection in connections:
        connection.close()


def add(index, connection, vectors, first=1):
    with connection:
        index.add(connection, "memory", [stored(key, "") for key in range(first, first + len(vectors))], vectors)


def remove(index, connection, keys):
    with connection:
        index.remove(connection, "memory", keys)


def keys_of(index, connection, vector, limit=10, within=None):
    return [hit.key for hit in index.search(connection, Query("", vector=vector, within=within), limit)]


def recall(found, exact_answer):
    return np.mean([len({*some} & {*all_of}) / len(all_of) for some, all_of in zip(found, exact_answer, strict=True)])


def forms(connection):
    """Return whether there is a vec0 table, and whether there are quantized vectors."""
    return exact.exists(connection, "memory"), quantized.read_form(connection, "memory") is not None


class TestWhatIsFound:
    @pytest.fixture
    def narrow(self, monkeypatch):
        """Make the stages narrow, so that each of them chooses among these few."""
        for name, size in {"_POOL": 600, "_RESCORED": 120, "_WARM": 300}.items():
            monkeypatch.setattr(f"klaw_store_sqlitevec.quantized.stages.{name}", size)
        for name in ("_POOL_A_HIT", "_RESCORED_A_HIT", "_WARM_A_HIT"):
            monkeypatch.setattr(f"klaw_store_sqlitevec.quantized.stages.{name}", 1)

    @pytest.mark.parametrize("memory_mb", [0, 1, 128], ids=["nothing in RAM", "codes in RAM", "rows in RAM"])
    @pytest.mark.parametrize("share", [None, 0.01, 0.1, 0.5])
    @pytest.mark.usefixtures("narrow")
    def test_the_nearest_are_those_of_vec0(self, opened, crowd, memory_mb, share):
        oracle = VectorIndex("exact")
        connection = opened(oracle)
        add(oracle, connection, crowd)
        random = np.random.default_rng(5)
        within = None if share is None else np.sort(random.choice(MANY, int(MANY * share), replace=False) + 1)
        questions = crowd[random.integers(0, MANY, 40)] + 0.05 * random.standard_normal((40, SPACE.dimension))
        questions = (questions / np.linalg.norm(questions, axis=1, keepdims=True)).astype(np.float32)
        right = [keys_of(oracle, connection, question, within=within) for question in questions]
        index = VectorIndex("quantized", memory_mb=memory_mb)
        add(index, connection, crowd[:1], first=MANY + 1)
        index.remove(connection, "memory", [MANY + 1])
        assert forms(connection) == (False, True)
        found = [keys_of(index, connection, question, within=within) for question in questions]
        assert recall(found, right) >= 0.94
        if within is not None:
            assert {*np.concatenate(found).tolist()} <= {*within.tolist()}

    def test_scores_are_cosine_similarities(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd)
        hits = index.search(connection, Query("", vector=crowd[40]), 50)
        assert [hit.score for hit in hits] == pytest.approx([crowd[hit.key - 1] @ crowd[40] for hit in hits], abs=0.01)
        assert hits[0].key == 41

    def test_the_same_text_ten_thousand_times_is_answered_by_key(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[1:2000], first=10_001)
        for first in range(7_501, 0, -2_500):  # so that places and keys are in another order
            add(index, connection, np.tile(crowd[:1], (2_500, 1)), first=first)
        for _ in range(4):  # from the file, and with more and more in RAM
            assert keys_of(index, connection, crowd[0], 30) == list(range(1, 31))
        assert keys_of(index, connection, crowd[0], 3, np.arange(40, 12_000)) == [40, 41, 42]

    @pytest.mark.parametrize("dimension", [1, 8, 64, 65, 130])
    def test_any_dimension(self, dimension, opened):
        random = np.random.default_rng(dimension)
        rows = random.standard_normal((50, dimension)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        index = VectorIndex("quantized")
        connection = opened(index)
        index.reset(connection, "memory", VectorSpace("other", "1", dimension))
        add(index, connection, rows)
        best = index.search(connection, Query("", vector=rows[7]), 1)[0]
        assert best.score == pytest.approx(1.0, abs=0.02)

    def test_a_question_of_another_dimension_is_refused(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:3])
        with pytest.raises(RetrievalError, match=r"4 dimensions.* 48"):
            keys_of(index, connection, np.full(4, 0.5, np.float32))

    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        steps=st.lists(
            st.tuples(st.sampled_from(["add", "remove", "search", "reopen"]), st.integers(1, 40)), max_size=30
        )
    )
    def test_any_sequence_answers_as_a_fresh_index_does(self, steps, crowd, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.quantized.tables.FEWEST_FOR_CENTRE", 10**9)
        connection, index, held = _in_memory(), VectorIndex("quantized"), set()
        for action, number in steps:
            if action == "add":
                fresh = sorted({number, number + 1, number + 40} - held)
                index.add(connection, "memory", [stored(key, "") for key in fresh], crowd[fresh])
                held |= {*fresh}
            elif action == "remove":
                index.remove(connection, "memory", [*range(number, number + 5)])
                held -= {*range(number, number + 5)}
            elif action == "search":
                keys_of(index, connection, crowd[number])
            else:
                index = VectorIndex("quantized")
        other, fresh_index = _in_memory(), VectorIndex("quantized")
        fresh_index.add(other, "memory", [stored(key, "") for key in sorted(held)], crowd[sorted(held)])
        for question in crowd[:5]:
            query = Query("", vector=question)
            assert index.search(connection, query, 20) == fresh_index.search(other, query, 20)
        assert index.check(connection, "memory", SPACE) == []


def _in_memory():
    connection, index = apsw.Connection(":memory:"), VectorIndex("quantized")
    index.prepare(connection)
    for migration in index.migrations():
        migration.apply(connection)
    index.reset(connection, "memory", SPACE)
    return connection


class TestForms:
    def test_auto_is_exact_until_there_are_many(self, opened, crowd):
        index = VectorIndex("auto", exact_up_to=1500)
        connection = opened(index)
        add(index, connection, crowd[:1500])
        assert forms(connection) == (True, False)
        add(index, connection, crowd[1500:1510], first=1501)
        assert forms(connection) == (False, True)
        assert quantized.read_form(connection, "memory").centred
        assert index.keys(connection, "memory").tolist() == list(range(1, 1511))
        assert index.check(connection, "memory", SPACE) == []
        remove(index, connection, range(1, 1400))
        add(index, connection, crowd[:3])
        assert forms(connection) == (False, True), "it does not go back and forth"

    def test_every_vector_is_taken_over_from_a_table_with_holes(self, opened, crowd):
        index = VectorIndex("auto", exact_up_to=5_000)
        connection = opened(index)
        add(index, connection, crowd[:3000])
        remove(index, connection, [*range(5, 15), *range(1025, 2049), 3000])  # a whole block of vec0's among them
        add(index, connection, crowd[3000:3010], first=9001)
        steps = []
        connection.set_exec_trace(lambda _, sql, __: steps.append(sql) or True)
        VectorIndex("quantized").add(connection, "memory", [stored(9011, "")], crowd[3010:3011])
        connection.set_exec_trace(None)
        assert not [sql for sql in steps if re.search(r"SELECT.*FROM.* vec_memory\b", sql, re.DOTALL)]
        living = np.setdiff1d(np.arange(3000), [*range(4, 14), *range(1024, 2048), 2999])
        keys = [*(living + 1).tolist(), *range(9001, 9012)]
        assert forms(connection) == (False, True)
        assert index.keys(connection, "memory").tolist() == keys
        assert index.check(connection, "memory", SPACE) == []
        rows = np.vstack([crowd[living], crowd[3000:3010]])
        form = quantized.read_form(connection, "memory")
        assert form.centre == pytest.approx(rows.mean(axis=0), abs=1e-6)
        for number in (0, 14, 2048, 2998):
            assert keys_of(index, connection, crowd[number], 1) == [number + 1]
        assert keys_of(index, connection, crowd[3009], 1) == [9010]

    def test_a_damaged_table_is_not_converted(self, opened, crowd):
        index = VectorIndex("auto", exact_up_to=100)
        connection = opened(index)
        add(index, connection, crowd[:100])
        connection.execute("UPDATE vec_memory_vector_chunks00 SET vectors = x'00'")
        with pytest.raises(RetrievalError, match="damaged"):
            add(index, connection, crowd[100:101], first=101)
        assert forms(connection) == (True, False)

    def test_a_conversion_is_undone_with_its_transaction(self, opened, crowd):
        index = VectorIndex("auto", exact_up_to=100)
        connection = opened(index)
        add(index, connection, crowd[:100])
        connection.execute("BEGIN")
        index.add(connection, "memory", [stored(101, "")], crowd[100:101])
        assert forms(connection) == (False, True)
        connection.execute("ROLLBACK")
        assert forms(connection) == (True, False)
        assert keys_of(index, connection, crowd[7], 1) == [8]

    def test_to_exact_vector_by_vector_with_searches_going_on(self, opened, crowd):
        before = VectorIndex("quantized")
        connection = opened(before)
        add(before, connection, crowd[:300])
        index = VectorIndex("exact")
        assert index.keys(connection, "memory").size == 0, "the core is to add them again"
        for first in range(0, 300, 100):
            assert keys_of(index, connection, crowd[42], 1) == [43]
            assert keys_of(index, connection, crowd[242], 1) == [243]
            remove(index, connection, range(first + 1, first + 101))  # as the core does before it adds
            add(index, connection, crowd[first : first + 100], first=first + 1)
            assert index.keys(connection, "memory").tolist() == list(range(1, first + 101))
            assert index.check(connection, "memory", SPACE) == []
        assert forms(connection) == (True, False)
        assert connection.execute("SELECT COUNT(*) FROM quantized_segments").get == 0

    def test_to_quantized_and_what_is_left_of_the_other_way(self, opened, crowd):
        before = VectorIndex("quantized")
        connection = opened(before)
        add(before, connection, crowd[:50])
        halfway = VectorIndex("exact")
        halfway.remove(connection, "memory", range(1, 11))
        add(halfway, connection, crowd[:10])
        assert forms(connection) == (True, True)
        add(before, connection, crowd[50:51], first=51)
        assert forms(connection) == (False, True)
        assert before.keys(connection, "memory").tolist() == list(range(1, 52))

    def test_few_vectors_are_centred_when_they_are_enough(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        for first in range(0, 1200, 300):
            assert quantized.read_form(connection, "memory").centred == (first >= 1000)
            add(index, connection, crowd[first : first + 300], first=first + 1)
        form = quantized.read_form(connection, "memory")
        assert form.centre == pytest.approx(crowd[:1200].mean(axis=0), abs=0.01)
        assert index.check(connection, "memory", SPACE) == []
        assert keys_of(index, connection, crowd[7], 1) == [8]


class TestSegments:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch):
        """Make segments small: 64 places, emptied when half is dead."""
        for module in ("tables", "cache", "check"):
            monkeypatch.setattr(f"klaw_store_sqlitevec.quantized.{module}.CAPACITY", 64)
        monkeypatch.setattr(tables, "FEWEST_FOR_CENTRE", 10)

    def test_a_change_reads_one_segment_again(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:300])
        for _ in range(8):
            keys_of(index, connection, crowd[0])
        before = dict(index.forms._cache._held["memory"])
        assert all(held.is_whole for held in before.values())
        add(index, connection, crowd[300:310], first=301)
        assert keys_of(index, connection, crowd[305], 1) == [306]
        after = index.forms._cache._held["memory"]
        same = [key for key in after if after[key] is before[key]]
        assert len(same) == len(after) - 1
        assert all(held.is_whole for held in after.values()), "of the changed one only what is new"

    def test_segments_half_of_which_is_dead_are_emptied(self, opened, crowd):
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
        (held,) = index.forms._cache._held["memory"].values()
        assert held.is_whole
        for _ in range(3):
            assert keys_of(index, reader, crowd[50], 1) == [51]

    def test_what_was_rolled_back_is_not_remembered(self, opened, crowd):
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

    def test_threads_that_search_while_another_writes(self, path, crowd):
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

    def test_rows_that_another_thread_reads_meanwhile_are_kept(self, opened, crowd, monkeypatch):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[:60])
        keys_of(index, connection, crowd[0])
        (held,) = index.forms._cache._held["memory"].values()
        form, plain = quantized.read_form(connection, "memory"), cache.row_bytes

        def meanwhile(dimension):
            monkeypatch.setattr(cache, "row_bytes", plain)
            cache._read_more_rows(connection, "memory", form, [held])
            return plain(dimension)

        monkeypatch.setattr(cache, "row_bytes", meanwhile)
        cache._read_more_rows(connection, "memory", form, [held])
        assert held.is_whole
        assert held.rows[:60].any(axis=1).all()

    def test_what_does_not_fit_is_not_kept(self, opened, crowd):
        index = VectorIndex("quantized", memory_mb=0)
        connection = opened(index)
        add(index, connection, crowd[:300])
        assert keys_of(index, connection, crowd[200], 1) == [201]
        assert index.forms._cache._held["memory"] == {}
        index.forms._cache.most_bytes = 2 * 64 * 16  # the codes and keys of two segments
        assert keys_of(index, connection, crowd[200], 1) == [201]
        assert len(index.forms._cache._held["memory"]) == 2

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
    "UPDATE quantized_codes SET codes = zeroblob(LENGTH(codes))": "codes are not those",
    "UPDATE quantized_keys SET keys = zeroblob(LENGTH(keys))": "filed under another chunk",
    "DELETE FROM quantized_memory WHERE key = 9": "missing or filed",
    "UPDATE quantized_memory SET vector = zeroblob(LENGTH(vector)) WHERE key = 9": "not of unit length",
    "UPDATE quantized_memory SET vector = x'00' WHERE key = 9": "wrong length",
    "DELETE FROM quantized_segments": "in no segment",
    "DELETE FROM quantized_forms": "no form",
    "UPDATE quantized_segments SET dead = zeroblob(1)": "damaged",
    "UPDATE quantized_segments SET dead = unhex(hex(zeroblob(2047)) || '01')": "damaged",
    "UPDATE quantized_segments SET dead = 'a text'": "damaged",
    "UPDATE quantized_segments SET used = 16385": "damaged",
    "UPDATE quantized_segments SET used = -1": "damaged",
    "UPDATE quantized_segments SET used = 'many'": "damaged",
    "UPDATE quantized_segments SET used = 1100": "missing or filed",
    "UPDATE quantized_memory SET vector = 'a text' WHERE key = 9": "cannot be read",
    "UPDATE quantized_codes SET codes = 'a text'": "missing or have the wrong length",
    "UPDATE quantized_forms SET dimension = 'wide'": "damaged",
    "UPDATE quantized_forms SET dimension = 'wide', centre = NULL": "damaged",
    "UPDATE quantized_forms SET dimension = 7": "damaged|dimensions",
    "UPDATE quantized_forms SET centre = x'00'": "damaged|cannot be read",
    "DROP TABLE quantized_memory": "no such table",
}


@pytest.mark.parametrize("sql", DAMAGE)
def test_damage_is_found_and_nothing_but_our_own_errors_is_raised(opened, crowd, sql):
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


def test_a_vector_that_is_no_number_is_damage(opened, crowd):
    index = VectorIndex("quantized")
    connection = opened(index)
    add(index, connection, crowd[:20])
    row = connection.execute("SELECT vector FROM quantized_memory WHERE key = 9").get
    bad = np.array([np.nan], dtype="<f4").tobytes() + row[4:]
    connection.execute("UPDATE quantized_memory SET vector = ? WHERE key = 9", (bad,))
    (problem,) = index.check(connection, "memory", SPACE)
    assert problem.startswith("1 quantized vectors are not of unit length")


def test_a_code_is_the_signs_of_the_steps():
    steps = np.array([[1, -1, 0, 5] * 20], dtype=np.int8)
    planes = codes.encode(steps)
    assert planes.shape == (2, 1)
    bits = np.unpackbits(np.ascontiguousarray(planes.T).view(np.uint8), axis=1)[0]
    assert bits.tolist() == [1, 0, 0, 1] * 20 + [0] * 48


def test_estimates_are_made_a_slice_at_a_time():
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


def test_what_is_quantized_comes_back():
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
def test_members_are_those_of_isin(keys, wanted, small):
    limit = 50 if small else 2**41
    left = np.array([key % limit for key in keys])
    right = np.array([key % limit for key in wanted])
    assert codes.members(left, right).tolist() == np.isin(left, right).tolist()


@given(far=st.lists(st.integers(0, 20), min_size=1), count=st.integers(1, 30))
def test_nearest_are_at_least_so_many_and_none_nearer_is_left_out(far, count):
    distances = np.array(far, dtype=np.uint16)
    found = codes.nearest(distances, count, 20, lambda found: -found)
    assert len(found) >= min(count, len(far))
    left = np.delete(distances, found)
    assert not len(left) or distances[found].max() <= left.min()
