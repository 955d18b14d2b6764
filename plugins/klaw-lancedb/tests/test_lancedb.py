"""What is in LanceDB follows what is committed in klaw.db, whatever happens to either."""

import os
import shutil
import sys
from datetime import timedelta

import apsw
import numpy as np
import pytest
from outside_vectors import SPACE, OutsideMemory, TransactionLaws, processes, vector

from klaw_core import Filters, KeySelection, Query, RetrievalError, reinstall_command
from klaw_lancedb.index import LanceIndex
from klaw_lancedb.options import LanceOptions
from klaw_store_sqlitevec.filtering import FilteredSelection
from klaw_store_sqlitevec.outside.rows import Rows
from klaw_testing.index import stored


def Memory(root, **options):  # noqa: N802  # makes an object, as a class does
    """Return a memory whose index has these options."""
    return OutsideMemory(LanceIndex(LanceOptions(**options), root), root)


@pytest.fixture
def process(tmp_path):
    """Open the memory of this test as another process would; the first one makes it."""
    yield from processes(lambda **options: Memory(tmp_path, **{"buffer": 5, **options}))


def folders(root):
    """Return the names of the tables' directories."""
    return sorted(path.name for path in (root / "lancedb").glob("*.lance"))


def contains(root, data):
    """Return whether any file of klaw.db or of LanceDB contains these bytes."""
    return any(data in path.read_bytes() for path in root.rglob("*") if path.is_file())


class TestTransactions(TransactionLaws):
    def test_nothing_waits_after_a_first_batch_was_rolled_back(self, process):
        memory = process()
        memory.connection.execute("BEGIN IMMEDIATE")
        memory.add(range(1, 10))
        memory.connection.execute("ROLLBACK")
        memory.add(range(1, 30))
        assert memory.connection.execute("SELECT COUNT(*) FROM lancedb_waiting").get == 0

    def test_a_replaced_vector_is_found_only_by_the_new_one(self, process):
        memory = process()
        memory.add(range(1, 7))
        memory.remove([3])
        memory.index.add(memory.connection, "memory", [stored(3, "text 3")], vector(900)[None])
        memory.add(range(20, 30))
        assert memory.nearest(900)[0] == 3
        hits = memory.index.search(memory.connection, Query("", "memory", vector(3)), 50)
        assert {hit.key: hit.score for hit in hits}[3] == pytest.approx(float(vector(3) @ vector(900)), abs=1e-5)

    def test_a_snapshot_from_before_an_append_still_finds_everything(self, process):
        writer, reader = process(), process()
        writer.connection.execute("PRAGMA journal_mode = WAL")
        writer.add(range(1, 5))  # they wait
        reader.connection.execute("BEGIN")
        assert set(reader.nearest(1, 50)) == {1, 2, 3, 4}
        writer.add(range(5, 10))  # they are in LanceDB
        assert set(reader.nearest(1, 50)) == {1, 2, 3, 4}
        reader.connection.execute("COMMIT")
        assert set(reader.nearest(1, 50)) == set(range(1, 10))

    def test_two_processes_that_write_in_turn_lose_nothing(self, process):
        pair = process(), process()
        for first in range(1, 81, 10):
            pair[(first // 10) % 2].add(range(first, first + 10))
        for memory in pair:
            assert sorted(memory.nearest(1, 200)) == list(range(1, 81))
            assert memory.check() == []


class TestErasing:
    def test_nothing_of_an_erased_vector_is_left_after_the_next_search(self, process, tmp_path):
        memory = process()
        memory.connection.execute("PRAGMA secure_delete = ON")
        memory.add(range(1, 30))
        assert contains(tmp_path, vector(7).tobytes())
        memory.remove([7])
        memory.erase()
        memory.nearest(1)
        assert not contains(tmp_path, vector(7).tobytes())
        assert contains(tmp_path, vector(8).tobytes())
        assert sorted(memory.nearest(1, 50)) == [*range(1, 7), *range(8, 30)]
        assert memory.check() == []

    def test_erasing_can_be_rolled_back(self, process):
        memory = process()
        memory.add(range(1, 30))
        memory.connection.execute("BEGIN IMMEDIATE")
        memory.remove([7])
        memory.erase()
        assert 7 not in memory.nearest(7, 50)
        memory.connection.execute("ROLLBACK")
        assert memory.nearest(7)[0] == 7
        assert memory.check() == []

    def test_failed_erasing_is_an_error_and_forgets_nothing(self, process, tmp_path):
        memory = process()
        memory.add(range(1, 30))
        memory.remove([7])
        memory.index.outside._open.clear()
        shutil.rmtree(tmp_path / "lancedb")
        with pytest.raises(RetrievalError, match="nothing was forgotten"):
            memory.erase()

    def test_another_process_can_drop_the_old_table(self, process, tmp_path):
        memory = process()
        memory.add(range(1, 30))
        memory.remove([7])
        memory.erase()
        memory.close()
        assert len(folders(tmp_path)) == 2
        other = process()
        other.nearest(1)
        assert len(folders(tmp_path)) == 1
        other.add(range(40, 60))
        assert other.connection.execute("SELECT COUNT(*) FROM lancedb_replaced").get == 0

    def test_without_dead_rows_nothing_is_written(self, process, tmp_path):
        memory = process()
        memory.add(range(1, 30))
        before = folders(tmp_path)
        memory.erase()
        assert folders(tmp_path) == before

    def test_a_table_that_is_mostly_dead_is_written_again(self, process, tmp_path):
        memory = process()
        memory.add(range(1, 101))
        before = folders(tmp_path)
        memory.remove(range(1, 91))
        memory.add(range(200, 206))
        memory.nearest(1)
        after = folders(tmp_path)
        assert len(after) == 1
        assert after != before
        assert sorted(memory.nearest(1, 50)) == [*range(91, 101), *range(200, 206)]

    def test_a_reset_drops_the_old_table(self, process, tmp_path):
        memory = process()
        memory.add(range(1, 30))
        memory.index.reset(memory.connection, "memory", SPACE)
        memory.add(range(50, 60))
        assert sorted(memory.nearest(1, 50)) == list(range(50, 60))
        assert len(folders(tmp_path)) == 1


class TestLosses:
    def test_lost_tables_are_an_error_with_a_fix(self, process, tmp_path):
        memory = process()
        memory.add(range(1, 30))
        memory.close()
        shutil.rmtree(tmp_path / "lancedb")
        memory = process()
        with pytest.raises(RetrievalError, match="could not be searched") as caught:
            memory.nearest(1)
        assert "klaw reindex" in caught.value.hint
        assert "could not be read" in memory.check()[0]

    def test_rows_that_are_missing_in_lancedb_are_counted(self, process, tmp_path):
        memory = process()
        memory.add(range(1, 30))
        memory.index.outside._connect().open_table(folders(tmp_path)[0].removesuffix(".lance")).delete("key < 4")
        memory.close()
        assert process().check() == ["3 vectors are not in lancedb"]

    def test_rows_that_are_missing_in_klaw_db_are_counted(self, process):
        memory = process()
        memory.add(range(1, 5))
        memory.connection.execute("DELETE FROM lancedb_waiting WHERE key = 2")
        assert memory.check() == ["1 vectors that should wait in klaw.db are not there"]

    @pytest.mark.parametrize("value", ["text", b"short", None, 5])
    @pytest.mark.parametrize("table", ["waiting", "samples"])
    def test_damaged_vectors_in_klaw_db_are_reported(self, process, table, value):
        memory = process()
        memory.add(range(1, 5))
        memory.connection.execute("PRAGMA ignore_check_constraints = ON")
        memory.connection.execute(f"CREATE TABLE copy AS SELECT * FROM lancedb_{table}")
        memory.connection.execute("UPDATE copy SET vector = ? WHERE key = 2", (value,))
        memory.connection.execute(f"DROP TABLE lancedb_{table}; ALTER TABLE copy RENAME TO lancedb_{table}")
        assert "damaged" in memory.check()[0]
        with pytest.raises(RetrievalError, match="damaged"):
            memory.nearest(1)

    def test_vectors_wait_while_the_storage_is_unreachable(self, process, tmp_path):
        (tmp_path / "lancedb").write_text("in the way")
        memory = process()
        memory.add(range(1, 30))
        assert "new vectors wait in klaw.db" in memory.index.limitation
        assert memory.nearest(7)[0] == 7
        (tmp_path / "lancedb").unlink()
        memory.add([40])
        assert memory.index.limitation == ""
        assert sorted(memory.nearest(1, 50)) == [*range(1, 30), 40]
        assert len(folders(tmp_path)) == 1

    def test_orphans_of_interrupted_rebuilds_are_removed_after_a_day(self, process, tmp_path, monkeypatch):
        memory = process()
        memory.connection.execute("BEGIN IMMEDIATE")
        memory.add(range(1, 30))
        memory.connection.execute("ROLLBACK")
        memory.add(range(1, 30))
        assert len(folders(tmp_path)) == 1  # the name is the recorded one
        stranger = memory.index.outside._connect()
        prefix = memory.index._prefix
        for name in (f"{prefix}memory_0", "of_somebody_else"):
            stranger.create_table(name, [{"key": 1}])
        known = {folders(tmp_path)[0].removesuffix(".lance")}
        memory.index._drop_orphans(known)
        assert f"{prefix}memory_0.lance" in folders(tmp_path)
        monkeypatch.setattr("klaw_store_sqlitevec.outside.index._DAY", timedelta(0))
        memory.index._drop_orphans(known)
        assert folders(tmp_path) == sorted(f"{name}.lance" for name in (*known, "of_somebody_else"))


class TestAnswers:
    def test_a_large_collection_gets_an_approximate_index(self, process):
        memory = process(buffer=500, approximate_from=1_000)
        for first in range(1, 3_001, 500):
            memory.add(range(first, first + 501 if first == 2_501 else first + 500))
        opened = next(iter(memory.index.outside._open.values()))
        assert [index.index_type for index in opened.list_indices()] == ["IvfRq"]
        assert [memory.nearest(key, 10)[0] for key in range(1, 3_001, 100)] == list(range(1, 3_001, 100))

    def test_a_failed_approximate_index_does_not_affect_searches(self, process, monkeypatch):
        memory = process(buffer=500, approximate_from=1_000)
        monkeypatch.setattr("klaw_lancedb.tables.IvfRq", None)
        memory.add(range(1, 1_101))
        assert "searches may take longer" in memory.index.limitation
        assert memory.nearest(7)[0] == 7
        assert memory.check() == []

    @pytest.mark.parametrize("allowed", [3, 40, 5_500])
    def test_filters_of_any_size_find_the_nearest(self, process, allowed):
        memory = process(buffer=1_000)
        for first in range(1, 6_001, 1_000):
            memory.add(range(first, first + 1_000))
        keys = np.sort(np.random.default_rng(1).choice(np.arange(1, 6_001), allowed, replace=False))
        vectors = np.stack([vector(key) for key in keys])
        asked = vector(77)
        hits = memory.index.search(memory.connection, Query("", "memory", asked, KeySelection(keys)), 10)
        assert [hit.key for hit in hits] == keys[np.argsort(-(vectors @ asked))[:10]].tolist()

    def test_a_filter_that_keeps_many_is_sent_as_a_condition(self, process, monkeypatch):
        monkeypatch.setattr("klaw_store_sqlitevec.outside.index._MAX_SENT_KEYS", 10)
        memory = process(buffer=100)
        memory.add(range(1, 301))
        keys = np.arange(1, 301, 2)
        asked = []
        nearest = memory.index.outside.nearest
        monkeypatch.setattr(
            memory.index.outside, "nearest", lambda *given, **kept: asked.append(given) or nearest(*given, **kept)
        )
        for within in (FilteredSelection(keys, Filters(path="b/")), FilteredSelection(keys, Filters(source="x"))):
            hits = memory.index.search(memory.connection, Query("", "memory", vector(8), within), 10)
            scores = np.stack([vector(key) for key in keys]) @ vector(8)
            assert [hit.key for hit in hits] == keys[np.argsort(-scores)[:10]].tolist()
        assert [bool(each[3].labels) for each in asked] == [True, *[False] * (len(asked) - 1)]

    def test_a_table_of_an_earlier_version_has_no_labels_and_works(self, process):
        memory = process(buffer=10)
        memory.add(range(1, 12))
        (name,) = memory.index.outside.names()
        memory.index.outside._connect().open_table(name).drop_columns(["labels"])
        memory.index.outside._open.clear()
        memory.add(range(12, 40))
        memory.remove([3])
        memory.erase()
        keys = np.arange(1, 40, 2)
        query = Query("", "memory", vector(5), FilteredSelection(keys[keys != 3], Filters(path="b/")))
        assert memory.index.search(memory.connection, query, 3)[0].key == 5
        assert memory.check() == []

    def test_relevance_compares_a_hit_with_typical_ones(self, process):
        memory = process()
        memory.add(range(1, 40))
        hits = memory.index.search(memory.connection, Query("", "memory", vector(7)), 40)
        assert hits[0].relevance == pytest.approx(0.3, abs=0.01)
        assert hits[-1].relevance == 0.0

    def test_the_sample_has_a_fixed_size_and_only_live_vectors(self, process):
        memory = process(buffer=1_000)
        memory.add(range(1, 601))
        held = "SELECT COUNT(*) FROM lancedb_samples"
        assert memory.connection.execute(held).get == 256
        memory.remove(range(1, 601))
        assert memory.connection.execute(held).get == 0

    def test_vectors_of_another_dimension_are_refused(self, process):
        memory = process()
        memory.add(range(1, 3))
        with pytest.raises(RetrievalError, match="16 dimensions, not 3"):
            memory.index.search(memory.connection, Query("", "memory", np.ones(3, np.float32)), 5)


class TestPlaces:
    def test_agents_on_object_storage_have_a_folder_each(self, tmp_path):
        shared = LanceOptions(uri="s3://bucket/memory/")
        uris = {LanceIndex(shared, tmp_path, agent).outside._uri for agent in ("", "ada", "bob")}
        assert uris == {"s3://bucket/memory/", "s3://bucket/memory/ada", "s3://bucket/memory/bob"}

    def test_a_directory_is_relative_to_the_data_directory(self, tmp_path):
        assert LanceIndex(LanceOptions(), tmp_path, "ada").outside._uri == str(tmp_path / "lancedb")

    @pytest.mark.skipif(sys.platform == "win32", reason="no fork")
    def test_use_after_a_fork_is_an_error(self, process):
        memory = process()
        memory.add(range(1, 30))
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                memory.index.outside.count(Rows("lancedb").read_table(memory.connection, "memory"))
                said = "it worked"
            except RetrievalError as error:
                said = f"{error} {error.hint}"
            os.write(write, said.encode())
            os._exit(0)
        os.waitpid(child, 0)
        said = os.read(read, 1_000).decode()
        os.close(read)
        os.close(write)
        assert "before this process was forked" in said
        assert "spawn" in said


def test_a_missing_lancedb_names_its_install_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "klaw_lancedb.tables", None)
    index = LanceIndex(LanceOptions(), tmp_path)
    connection = apsw.Connection(":memory:")
    for migration in index.migrations():
        migration.apply(connection)
    with pytest.raises(RetrievalError, match="cannot be imported") as caught:
        index.reset(connection, "memory", SPACE)
    assert caught.value.hint == reinstall_command("lancedb")
    connection.close()


@pytest.mark.parametrize("damage", ["no directory", "no tables", "no manifests", "zeroed", "cut"])
def test_a_damaged_database_is_an_error_and_a_reset_builds_it_again(tmp_path, damage):
    memory = Memory(tmp_path, buffer=1).make()
    memory.add(range(1, 20))
    place = tmp_path / "lancedb"
    files = [path for path in place.rglob("*.lance") if path.is_file()]
    assert files
    match damage:
        case "no directory":
            shutil.rmtree(place)
        case "no tables":
            for path in place.iterdir():
                shutil.rmtree(path)
        case "no manifests":
            for path in place.rglob("*.manifest"):
                path.unlink()
        case _:
            for path in files:
                size = path.stat().st_size
                path.write_bytes(bytes(size) if damage == "zeroed" else path.read_bytes()[: size // 2])
    memory.close()
    memory = Memory(tmp_path, buffer=1)
    with pytest.raises(RetrievalError) as caught:
        memory.nearest(3)
    assert "klaw reindex" in caught.value.hint
    assert memory.check()
    memory.index.reset(memory.connection, "memory", SPACE)  # as a reindex does
    memory.add(range(1, 20))
    assert memory.nearest(3)[0] == 3
    assert memory.check() == []
    memory.close()


def test_a_placeholder_for_the_agent_is_refused():
    with pytest.raises(ValueError, match=r"leave \{agentId\} out"):
        LanceOptions(uri="s3://bucket/{agentId}")
