"""What is on the server follows what is committed in klaw.db, whatever happens to either."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from attrs import evolve
from outside_vectors import SPACE, OutsideMemory, TransactionLaws, processes, vector

from klaw_core import Filters, KeySelection, RetrievalError
from klaw_qdrant.options import QdrantOptions
from klaw_qdrant.plugin import vectors
from klaw_qdrant.tables import QdrantTables
from klaw_store_sqlitevec.filtering import FilteredSelection
from klaw_store_sqlitevec.outside import Changes, TableRecord, Wanted

QUERIES = "points/query"


@pytest.fixture
def process(tmp_path, options):
    """Open the memory of this test as another process would; the first one makes it."""
    yield from processes(lambda: OutsideMemory(vectors(evolve(options, buffer=5), tmp_path), tmp_path))


class TestTransactions(TransactionLaws):
    def test_vectors_in_several_requests_all_arrive(self, process, server, monkeypatch):
        monkeypatch.setattr("klaw_qdrant.tables._MAX_NUMBERS", 7 * SPACE.dimension)
        monkeypatch.setattr("klaw_qdrant.tables._IDS_AT_ONCE", 4)
        memory = process()
        memory.add(range(1, 31))
        assert sum(asked.startswith("PUT") and asked.endswith("/points") for asked in server.asked) == 5
        assert sorted(memory.nearest(1, 50)) == list(range(1, 31))
        memory.remove([3])
        memory.erase()
        assert sorted(memory.nearest(1, 50)) == [1, 2, *range(4, 31)]
        assert memory.check() == []


class TestErasing:
    def test_no_collection_has_an_erased_vector_after_the_next_search(self, process):
        memory = process()
        memory.add(range(1, 30))
        memory.remove([7])
        memory.erase()
        memory.nearest(1)
        engine = memory.index.outside
        (name,) = engine.names()
        assert {key for key, _ in engine.read_batches(TableRecord(name, 16, 1))} == {*range(1, 7), *range(8, 30)}
        assert memory.check() == []

    def test_failed_erasing_is_an_error_and_forgets_nothing(self, process):
        memory = process()
        memory.add(range(1, 30))
        memory.remove([7])
        memory.index.outside.drop(next(iter(memory.index.outside.names())))
        with pytest.raises(RetrievalError, match="nothing was forgotten"):
            memory.erase()


class TestLosses:
    def test_a_lost_collection_is_an_error_with_a_fix(self, process):
        memory = process()
        memory.add(range(1, 30))
        memory.index.outside.drop(next(iter(memory.index.outside.names())))
        with pytest.raises(RetrievalError, match="could not be searched") as caught:
            memory.nearest(1)
        assert "klaw reindex" in caught.value.hint
        assert "could not be read" in memory.check()[0]

    def test_points_that_are_missing_are_counted(self, process, server):
        memory = process()
        memory.add(range(1, 30))
        (name,) = memory.index.outside.names()
        found, _ = server.local.scroll(name, limit=3)
        server.local.delete(name, [point.id for point in found])
        assert memory.check() == ["3 vectors are not in qdrant"]

    def test_vectors_wait_while_the_server_is_away(self, process, server, monkeypatch):
        monkeypatch.setattr("klaw_http.client.backoff_seconds", lambda _attempt: 0.0)
        memory = process()
        server.is_away = True
        memory.add(range(1, 30))
        assert "new vectors wait in klaw.db" in memory.index.limitation
        assert memory.nearest(7)[0] == 7
        server.is_away = False
        memory.add([40])
        assert memory.index.limitation == ""
        assert sorted(memory.nearest(1, 50)) == [*range(1, 30), 40]

    def test_another_server_at_the_address_is_named(self, httpserver):
        httpserver.expect_request("/collections").respond_with_json({"result": ["klaw"]})
        engine = QdrantTables(QdrantOptions(httpserver.url_for("")))
        with pytest.raises(RetrievalError, match="is not Qdrant's"):
            engine.names()

    def test_a_wrong_key_is_an_error_that_does_not_show_it(self, server):
        engine = QdrantTables(QdrantOptions(server.url, "wrong-key-5e11"))
        with pytest.raises(RetrievalError, match="401") as caught:
            engine.names()
        assert "api_key" in caught.value.hint
        assert (
            "wrong-key-5e11" not in f"{caught.value} {caught.value.hint} {engine._client} {QdrantOptions(api_key='k')}"
        )

    def test_orphans_are_dropped_after_a_day_and_others_stay(self, process, monkeypatch):
        memory = process()
        memory.add(range(1, 30))
        engine, prefix = memory.index.outside, memory.index._prefix
        (known,) = engine.names()
        changes = Changes(1, np.array([1], np.int64), vector(1)[None], [[0]])
        old = (datetime.now(UTC) - timedelta(days=2)).timestamp()
        monkeypatch.setattr("klaw_qdrant.tables.time.time", lambda: old)
        for name in (f"{prefix}memory_0", "klaw_somebody_else"):
            engine.apply(TableRecord(name, 16, 0), changes)
        monkeypatch.undo()
        engine.apply(TableRecord(f"{prefix}memory_1", 16, 0), changes)
        memory.index._drop_orphans({known})
        assert engine.names() == {known, f"{prefix}memory_1", "klaw_somebody_else"}


class TestAnswers:
    @pytest.mark.parametrize("allowed", [3, 40, 280])
    def test_filters_of_any_size_find_the_nearest(self, process, allowed, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.outside.index._MAX_SENT_KEYS", 100)
        memory = process()
        memory.add(range(1, 301))
        keys = np.sort(np.random.default_rng(1).choice(np.arange(1, 301), allowed, replace=False))
        scores = np.stack([vector(key) for key in keys]) @ vector(77)
        assert memory.nearest(77, 10, KeySelection(keys)) == keys[np.argsort(-scores)[:10]].tolist()

    def test_a_filter_that_keeps_many_is_one_request_with_a_condition(self, process, server, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.outside.index._MAX_SENT_KEYS", 10)
        memory = process()
        memory.add(range(1, 301))
        keys = np.arange(1, 301, 2)
        server.asked.clear()
        found = memory.nearest(8, 10, FilteredSelection(keys, Filters(path="b/")))
        scores = np.stack([vector(key) for key in keys]) @ vector(8)
        assert found == keys[np.argsort(-scores)[:10]].tolist()
        assert sum(QUERIES in asked for asked in server.asked) == 1

    @pytest.mark.parametrize("batch", [1, 2**62 - 1, 2**62])
    @pytest.mark.parametrize("key", [1, 2**62, 2**63 - 1])
    def test_keys_and_batches_of_any_size_come_back(self, options, key, batch):
        engine, table = QdrantTables(options), TableRecord(f"klaw_numbers_{key}_{batch}", 16, 0)
        label = -(2**63)
        changes = Changes(batch, np.array([key], np.int64), vector(1)[None], [[label, 5]])
        table = evolve(table, version=engine.apply(table, changes))
        assert list(engine.read_batches(table)) == [(key, batch)]
        found = engine.nearest(table, vector(1), 3, Wanted(labels=[frozenset({label})]), exact=False)
        assert (found.keys.tolist(), found.batches.tolist()) == ([key], [batch])
        assert found.scores.tolist() == pytest.approx([1.0], abs=1e-5)
        assert len(engine.nearest(table, vector(1), 3, Wanted(labels=[frozenset({7})]), exact=True).keys) == 0
        engine.drop(table.name)
        engine.drop(table.name)


@pytest.mark.parametrize("key", ["a b", "a\nb", "ключ"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key):
    with pytest.raises(ValueError, match="api_key: contains") as caught:
        QdrantOptions(api_key=key)
    assert key not in str(caught.value)
