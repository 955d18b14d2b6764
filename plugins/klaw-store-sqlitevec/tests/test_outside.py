"""An index outside of the store's transactions: the contract with an engine of dictionaries, and filters as labels."""

from datetime import UTC, datetime, timedelta

import apsw
import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from sqlite_index import SqliteIndexTests

from klaw_core import Filters, KeySelection, Query, RetrievalError, VectorSpace, parse_condition
from klaw_store_sqlitevec.filtering import FilteredSelection
from klaw_store_sqlitevec.outside import Changes, Found, OutsideIndex, OutsideVectors, TableRecord, Wanted
from klaw_store_sqlitevec.outside.labels import labels_of, wanted_labels
from klaw_testing.index import stored, unit_vector, unit_vectors
from klaw_testing.values import conditions, metadata

SPACE = VectorSpace("made-up", "1", 16)


class Dictionaries(OutsideIndex):
    """Tables as dictionaries. ``asked`` are the searches; with ``is_away`` every method raises."""

    def __init__(self):
        self.tables, self.written, self.asked, self.is_away = {}, {}, [], False

    def rows(self, table):
        if self.is_away or table.name not in self.tables:
            raise RetrievalError("away")
        return self.tables[table.name]

    def apply(self, table: TableRecord, changes: Changes) -> int:
        if self.is_away:
            raise RetrievalError("away")
        if not table.version:
            self.tables[table.name] = {}
        for key, vector, labels in zip(changes.keys.tolist(), changes.vectors, changes.labels, strict=True):
            self.rows(table)[key, changes.batch] = vector, set(labels)
        self.written[table.name] = datetime.now(UTC)
        return table.version + 1

    def nearest(self, table, vector, limit, wanted: Wanted, *, exact) -> Found:
        self.asked.append((limit, wanted, exact))
        rows = [
            (key, batch, float(row @ vector))
            for (key, batch), (row, labels) in self.rows(table).items()
            if (wanted.keys is None or key in wanted.keys) and all(labels & each for each in wanted.labels)
        ]
        rows.sort(key=lambda row: (-row[2], row[0]))
        keys, batches, scores = zip(*rows[:limit], strict=True) if rows else ((), (), ())
        return Found(np.array(keys, np.int64), np.array(batches, np.int64), np.array(scores, np.float32))

    def read_batches(self, table):
        yield from self.rows(table)

    def copy(self, table, name, alive):
        self.tables[name] = {at: row for at, row in self.rows(table).items() if alive.get(at[0]) == at[1]}
        self.written[name] = datetime.now(UTC)
        return 1

    def count(self, table):
        return len(self.rows(table))

    def names(self):
        return set(self.tables)

    def last_written(self, name):
        return self.written[name]

    def drop(self, name):
        self.tables.pop(name, None)


class TestOutsideVectors(SqliteIndexTests):
    @pytest.fixture(params=[1, pytest.param(7, marks=pytest.mark.one_of(3)), 1_000])
    def index(self, request, tmp_path) -> OutsideVectors:
        return OutsideVectors("engine", tmp_path, request.param, Dictionaries)


@pytest.fixture
def filled(tmp_path):
    """Return an index of 60 chunks in two directories, and its connection; the engine has them all."""
    index = OutsideVectors("engine", tmp_path, 1, Dictionaries)
    connection = apsw.Connection(":memory:")
    for migration in index.migrations():
        migration.apply(connection)
    index.reset(connection, "memory", SPACE)
    chunks = [evolve(stored(key, f"tide {key}"), path=f"{'ab'[key % 2]}/{key}.md") for key in range(1, 61)]
    index.add(connection, "memory", chunks, unit_vectors(chunks, SPACE.dimension))
    yield index, connection
    connection.close()


def find(filled, within):
    index, connection = filled
    return [hit.key for hit in index.search(connection, Query("", "memory", unit_vector("tide 7", 16), within), 5)]


def odd_keys():
    return np.arange(1, 61, 2, dtype=np.int64)


class TestSelections:
    def test_few_keys_are_sent_as_keys(self, filled):
        asked = filled[0].outside.asked
        assert find(filled, KeySelection(odd_keys()))[0] == 7
        assert [wanted.keys.tolist() for _, wanted, _ in asked] == [odd_keys().tolist()]

    def test_many_keys_are_sent_as_labels(self, filled, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.outside.index._MAX_SENT_KEYS", 10)
        asked = filled[0].outside.asked
        found = find(filled, FilteredSelection(odd_keys(), Filters(path="b/")))
        assert found[0] == 7
        assert {key % 2 for key in found} == {1}
        assert len(asked) == 1  # the labels leave only rows that pass
        assert asked[0][1].keys is None
        assert len(asked[0][1].labels) == 1

    def test_many_keys_without_conditions_are_compared_here(self, filled, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.outside.index._MAX_SENT_KEYS", 10)
        expected = find(filled, KeySelection(odd_keys()))
        for filters in (Filters(source="x"), Filters(since=datetime(2020, 1, 1, tzinfo=UTC))):
            assert find(filled, FilteredSelection(odd_keys(), filters)) == expected
        assert {tuple(wanted.labels) for _, wanted, _ in filled[0].outside.asked} == {()}

    def test_vectors_that_waited_without_labels_are_found_with_every_filter(self, tmp_path, monkeypatch):
        """An earlier version stored them, and the engine gets them with those of this one."""
        monkeypatch.setattr("klaw_store_sqlitevec.outside.index._MAX_SENT_KEYS", 10)
        index, connection = OutsideVectors("engine", tmp_path, 30, Dictionaries), apsw.Connection(":memory:")
        first, second = index.migrations()
        first.apply(connection)
        index.reset(connection, "memory", SPACE)
        chunks = [evolve(stored(key, f"tide {key}"), path=f"{'ab'[key % 2]}/{key}.md") for key in range(1, 61)]
        vectors = unit_vectors(chunks, SPACE.dimension)
        connection.executemany("INSERT INTO engine_keys VALUES ('memory', ?, 0)", [(key,) for key in range(1, 31)])
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in enumerate(vectors[:30], 1)]
        connection.executemany("INSERT INTO engine_waiting VALUES ('memory', ?, ?)", rows)
        second.apply(connection)
        index.add(connection, "memory", chunks[30:], vectors[30:])
        assert connection.execute("SELECT COUNT(*) FROM engine_waiting").get == 0
        for filters in (Filters(path="b/"), Filters(metadata=(parse_condition("kind=log"),))):
            assert find((index, connection), FilteredSelection(odd_keys(), filters))[0] == 7
        connection.close()

    @given(
        values=metadata,
        wanted=st.lists(conditions, max_size=4),
        path=st.sampled_from([None, "a", "a/", "a/b", "a/b/n.md"]),
    )
    def test_a_chunk_that_passes_has_a_label_of_each_set(self, values, wanted, path):
        chunk = evolve(stored(1, "x"), path="a/b/n.md", metadata=values)
        passing = [condition for condition in wanted if condition.holds(values)]
        labels = set(labels_of(chunk))
        sets = wanted_labels(Filters(path=path, metadata=tuple(passing)))
        assert [each for each in sets if not labels & each] == []

    def test_another_directory_and_another_value_have_other_labels(self):
        chunk = evolve(stored(1, "x"), path="a/b/n.md", metadata={"status": "open", "size": 1, "tags": ("x/y",)})
        labels = set(labels_of(chunk))
        for path in ("b/", "a/c/", "a/b/n.md/x"):
            assert not labels & wanted_labels(Filters(path=path))[0]
        for text in ("status=closed", "size=2", "tags=z", "other=open"):
            assert not labels & wanted_labels(Filters(metadata=(parse_condition(text),)))[0]
        for text in ("status=open", "size=1.0", "tags=x"):
            assert labels & wanted_labels(Filters(metadata=(parse_condition(text),)))[0]


class TestAnEngineThatIsAway:
    def test_new_vectors_wait_and_arrive_later(self, filled):
        index, connection = filled
        index.outside.is_away = True
        chunks = [stored(key, f"tide {key}") for key in (70, 71)]
        index.add(connection, "memory", chunks, unit_vectors(chunks, SPACE.dimension))
        assert "new vectors wait in klaw.db" in index.limitation
        with pytest.raises(RetrievalError, match="away"):
            find(filled, None)
        index.outside.is_away = False
        index.add(connection, "memory", [stored(72, "tide 72")], unit_vectors([stored(72, "tide 72")], SPACE.dimension))
        assert index.limitation == ""
        assert connection.execute("SELECT COUNT(*) FROM engine_waiting").get == 0
        assert index.check(connection, "memory", SPACE) == []

    def test_orphans_are_dropped_after_a_day_and_others_stay(self, filled):
        index, connection = filled
        engine = index.outside
        old = datetime.now(UTC) - timedelta(days=2)
        mine, young, foreign = f"{index._prefix}memory_0", f"{index._prefix}memory_1", "klaw_other_memory_2"
        for name, at in ((mine, old), (young, datetime.now(UTC)), (foreign, old)):
            engine.tables[name], engine.written[name] = {}, at
        index.reset(connection, "memory", SPACE)
        chunks = [stored(key, f"tide {key}") for key in (1, 2)]
        index.add(connection, "memory", chunks, unit_vectors(chunks, SPACE.dimension))
        assert mine not in engine.tables
        assert {young, foreign} <= set(engine.tables)
