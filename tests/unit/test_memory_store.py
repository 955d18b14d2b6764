"""The in-memory store and its two indexes keep the contracts that the real ones are held to."""

import math
from contextlib import contextmanager

import attrs
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from klaw_core import Query
from klaw_testing.checked import CheckedIndexContract
from klaw_testing.index import crowd, selection, stored, unit_vector, unit_vectors
from klaw_testing.laws import scaled
from klaw_testing.memory_index import CosineIndex, WordIndex
from klaw_testing.memory_store import MemoryStore
from klaw_testing.memory_tables import Tables
from klaw_testing.messages import MessagesContract
from klaw_testing.store import StoreContract, StoreMachine, put
from klaw_testing.store_isolation import IsolationContract
from klaw_testing.values import make_document


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def open_store(self):
        return MemoryStore


class TestIsolation(IsolationContract):
    @pytest.fixture
    def open_for(self):
        return lambda _agent: MemoryStore()


class SequencedStore(MemoryStore):
    """Gives a key that was rolled back to nobody, as the sequence of a database does."""

    @contextmanager
    def write(self):
        with super().write() as transaction:
            try:
                yield transaction
            except BaseException:
                self._tables.next_key = transaction.resource.next_key
                raise


class SequencedMachine(StoreMachine):
    make_opener = staticmethod(lambda: SequencedStore)
    persistent = False


TestSequencedMachine = SequencedMachine.TestCase
TestSequencedMachine.settings = settings(max_examples=scaled(20), stateful_step_count=25, deadline=None)


class ForgetfulStore(MemoryStore):
    """Gives a key again once its chunk is gone."""

    @contextmanager
    def write(self):
        with super().write() as transaction:
            held = [key for chunks in transaction.resource.chunks.values() for key in chunks]
            transaction.resource.next_key = max(held, default=0) + 1
            yield transaction


class ForgetfulMachine(StoreMachine):
    make_opener = staticmethod(lambda: ForgetfulStore)
    persistent = False


def test_the_state_machine_detects_a_reused_key():
    quickly = settings(max_examples=200, deadline=None, derandomize=True, phases=[Phase.generate])
    with pytest.raises(AssertionError, match="a key must not be reused"):
        run_state_machine_as_test(ForgetfulMachine, settings=quickly)


class TestMemoryMessages(MessagesContract):
    @pytest.fixture
    def open_store(self):
        return MemoryStore


class InTables(CheckedIndexContract[Tables]):
    """A transaction over tables is a copy of them."""

    @pytest.fixture
    def connection(self):
        return Tables()

    def begin(self, resource):
        self.before = resource.copy()

    def rollback(self, resource):
        for field in attrs.fields(Tables):
            setattr(resource, field.name, getattr(self.before, field.name))


class TestCosineIndex(InTables):
    @pytest.fixture
    def index(self):
        return CosineIndex()

    def test_the_score_is_the_cosine(self, index, filled):
        chunk = crowd(30)[4]
        vectors = unit_vectors(crowd(30))
        for hit in index.search(filled, Query("", vector=vectors[4]), 30):
            assert hit.score == pytest.approx(float(vectors[hit.key - 1] @ vectors[4]), abs=1e-6)
        best = index.search(filled, Query("", vector=unit_vector(chunk.chunk.text)), 1)
        assert best[0].score == pytest.approx(1, abs=1e-6)


class TestWordIndex(InTables):
    @pytest.fixture
    def index(self):
        return WordIndex()

    def test_a_rare_word_counts_more_than_a_common_one(self, index, connection):
        texts = ["harbour lighthouse", "harbour pier", "harbour pier", "harbour pier", "ship"]
        index.add(connection, "memory", [stored(key, text) for key, text in enumerate(texts, start=1)], None)
        assert [hit.key for hit in index.search(connection, Query("harbour lighthouse"), 1)] == [1]
        scores = {hit.key: hit.score for hit in index.search(connection, Query("pier lighthouse"), 5)}
        assert scores.keys() == {1, 2, 3, 4}
        assert scores[1] > scores[2] == scores[3]

    def test_the_score_is_bm25(self, index, connection):
        index.add(connection, "memory", [stored(1, "a a b"), stored(2, "b"), stored(3, "b c c c")], None)
        (hit,) = index.search(connection, Query("a"), 5)
        idf = math.log((3 - 1 + 0.5) / (1 + 0.5))
        mean = (3 + 1 + 4) / 3
        assert hit.score == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 3 / mean)))

    def test_the_weight_of_a_word_does_not_depend_on_the_filter(self, index, filled):
        every = {hit.key: hit.score for hit in index.search(filled, Query("tide7 gull3"), 30)}
        some = index.search(filled, Query("tide7 gull3", within=selection([3, 7])), 30)
        assert {hit.key: hit.score for hit in some} == {key: every[key] for key in (3, 7) if key in every}

    def test_words_of_the_headings_are_found(self, index, connection):
        index.add(connection, "memory", [stored(1, "text", heading=("Harbour", "Pier"))], None)
        assert index.search(connection, Query("PIER"), 5)


def test_rows_of_an_index_roll_back_with_the_rest():
    store, index = MemoryStore(), WordIndex()
    store.enlist("words", index)
    put(store, make_document("notes/a.md", "one"))

    class StopError(Exception):
        pass

    with pytest.raises(StopError), store.write() as transaction:  # noqa: PT012  # the block is the subject
        index.add(transaction.resource, "memory", [stored(1, "one")], None)
        raise StopError
    with store.read() as snapshot:
        assert index.keys(snapshot.resource, "memory").tolist() == []
