"""Quantized vectors: what they find beside vec0, and how a collection changes its form."""

import re

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import KeyDigest, KeySelection, Query, RetrievalError, VectorSpace
from klaw_store_sqlitevec import exact, quantized
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.index import stored
from klaw_testing.laws import scaled

SPACE = VectorSpace("test", "1", 48)
MANY = 6_000


def add(index, connection, vectors, first=1):
    with connection:
        index.add(connection, "memory", [stored(key, "") for key in range(first, first + len(vectors))], vectors)


def remove(index, connection, keys):
    with connection:
        index.remove(connection, "memory", keys)


def keys_of(index, connection, vector, limit=10, within=None):
    selected = None if within is None else KeySelection(np.asarray(within))
    return [hit.key for hit in index.search(connection, Query("", vector=vector, within=selected), limit)]


def recall(found, exact_answer):
    return np.mean([len({*some} & {*all_of}) / len(all_of) for some, all_of in zip(found, exact_answer, strict=True)])


def forms(connection):
    """Return whether there is a vec0 table, and whether there are quantized vectors."""
    return exact.exists(connection, "memory"), quantized.read_quantization(connection, "memory") is not None


class TestResults:
    @pytest.fixture
    def narrow(self, monkeypatch):
        """Make the stages narrow, so that each of them chooses among these few."""
        for name, size in {"_POOL": 600, "_RESCORED": 120, "_WARM": 300}.items():
            monkeypatch.setattr(f"klaw_store_sqlitevec.quantized.searching.{name}", size)
        for name in ("_POOL_PER_HIT", "_RESCORED_PER_HIT", "_WARM_PER_HIT"):
            monkeypatch.setattr(f"klaw_store_sqlitevec.quantized.searching.{name}", 1)

    @pytest.mark.parametrize("memory_mb", [0, 1, 128], ids=["nothing in RAM", "codes in RAM", "rows in RAM"])
    @pytest.mark.parametrize("share", [None, 0.01, 0.1, 0.5])
    @pytest.mark.usefixtures("narrow")
    def test_the_nearest_vectors_agree_with_vec0(self, opened, crowd, memory_mb, share):
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

    def test_equal_vectors_are_ordered_by_key(self, opened, crowd):
        index = VectorIndex("quantized")
        connection = opened(index)
        add(index, connection, crowd[1:2000], first=10_001)
        for first in range(7_501, 0, -2_500):  # so that places and keys are in another order
            add(index, connection, np.tile(crowd[:1], (2_500, 1)), first=first)
        for _ in range(4):  # from the file, and with more and more in RAM
            assert keys_of(index, connection, crowd[0], 30) == list(range(1, 31))
        assert keys_of(index, connection, crowd[0], 3, np.arange(40, 12_000)) == [40, 41, 42]

    @pytest.mark.parametrize("dimension", [1, 8, 64, 65, 130])
    def test_every_dimension_works(self, dimension, opened):
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

    @settings(max_examples=scaled(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        steps=st.lists(
            st.tuples(st.sampled_from(["add", "remove", "search", "reopen"]), st.integers(1, 40)), max_size=30
        )
    )
    def test_after_any_changes_answers_equal_those_of_a_new_index(self, steps, crowd, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.quantized.tables.MIN_FOR_CENTRE", 10**9)
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
    def test_auto_is_exact_for_small_collections(self, opened, crowd):
        index = VectorIndex("auto", exact_up_to=1500)
        connection = opened(index)
        add(index, connection, crowd[:1500])
        assert forms(connection) == (True, False)
        add(index, connection, crowd[1500:1510], first=1501)
        assert forms(connection) == (False, True)
        assert quantized.read_quantization(connection, "memory").centred
        assert index.keys(connection, "memory").tolist() == list(range(1, 1511))
        assert index.check(connection, "memory", SPACE) == []
        remove(index, connection, range(1, 1400))
        add(index, connection, crowd[:3])
        assert forms(connection) == (False, True), "it does not go back and forth"

    def test_every_vector_of_a_table_with_gaps_is_converted(self, opened, crowd):
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
        form = quantized.read_quantization(connection, "memory")
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

    def test_a_conversion_to_exact_is_gradual_and_searches_continue(self, opened, crowd):
        before = VectorIndex("quantized")
        connection = opened(before)
        add(before, connection, crowd[:300])
        index = VectorIndex("exact")
        assert index.keys(connection, "memory").size == 300
        assert index.key_digest(connection, "memory") is None
        for first in range(0, 300, 100):
            assert keys_of(index, connection, crowd[42], 1) == [43]
            assert keys_of(index, connection, crowd[242], 1) == [243]
            remove(index, connection, range(first + 1, first + 101))  # as the core does before it adds
            add(index, connection, crowd[first : first + 100], first=first + 1)
            assert index.outdated(connection, "memory").tolist() == list(range(first + 101, 301))
            assert index.keys(connection, "memory").size == 300
            assert index.check(connection, "memory", SPACE) == []
        assert index.key_digest(connection, "memory") == KeyDigest.of(np.arange(1, 301))
        assert forms(connection) == (True, False)
        assert connection.execute("SELECT COUNT(*) FROM quantized_segments").get == 0

    def test_a_conversion_to_quantized_completes_an_unfinished_one(self, opened, crowd):
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
            assert quantized.read_quantization(connection, "memory").centred == (first >= 1000)
            add(index, connection, crowd[first : first + 300], first=first + 1)
        form = quantized.read_quantization(connection, "memory")
        assert form.centre == pytest.approx(crowd[:1200].mean(axis=0), abs=0.01)
        assert index.check(connection, "memory", SPACE) == []
        assert keys_of(index, connection, crowd[7], 1) == [8]
