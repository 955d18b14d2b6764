"""The sqlite store keeps the contract, and what is particular to a file."""

import os
import shutil
import stat
import tempfile
import threading
import weakref
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest
from attrs import evolve
from hypothesis import settings

from klaw_core import StoreCorruptError, StoreError, StoreLockedError, StoreReadOnlyError
from klaw_core.values.text import text_hash
from klaw_store_sqlitevec.store import SqliteStore
from klaw_testing.laws import scaled
from klaw_testing.store import OpenStore, PersistentStoreContract, StoreMachine, put
from klaw_testing.store_cache import SPACE, vector
from klaw_testing.store_isolation import IsolationContract
from klaw_testing.values import cut_lines, make_document


class TestSqliteStore(PersistentStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: SqliteStore(tmp_path / "klaw.db")


class TestCompressingStore(TestSqliteStore):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: SqliteStore(tmp_path / "klaw.db", compress=True)


def test_a_compressing_store_reads_both_forms_and_detects_a_changed_byte(tmp_path):
    path, long = tmp_path / "klaw.db", "the harbour at night, " * 20
    put(SqliteStore(path), make_document("notes/plain.md", long + "plain"))
    put(SqliteStore(path, compress=True), make_document("notes/packed.md", long), make_document("notes/short.md", "a"))
    store = SqliteStore(path)
    with store.read() as snapshot:
        kinds = snapshot.resource.execute("SELECT typeof(content) FROM memory_chunks ORDER BY id").fetchall()
        assert kinds == [("text",), ("blob",), ("text",)]
        for name, text in (("plain", long + "plain"), ("packed", long), ("short", "a")):
            (stored,) = snapshot.outline("memory", f"notes/{name}.md")
            assert stored.chunk.text == text
    with store.write() as transaction:
        whole = transaction.resource.execute("SELECT content FROM memory_chunks WHERE id = 2").get
        for position in range(len(whole)):
            changed = bytes([*whole[:position], whole[position] ^ 16, *whole[position + 1 :]])
            transaction.resource.execute("UPDATE memory_chunks SET content = ? WHERE id = 2", (changed,))
            for stored in transaction.outline("memory", "notes/packed.md"):
                assert stored.chunk.text == long  # the bit stands for nothing
        transaction.resource.execute("UPDATE memory_chunks SET content = ? WHERE id = 2", (whole[:-3],))
        assert transaction.damaged("memory") == [2]


@pytest.mark.parametrize("damaged", ["CAST(x'ff' AS TEXT)", "x'00ff'", "x''"])
def test_texts_leaves_out_a_damaged_row_and_returns_the_others(tmp_path, damaged):
    store, long = SqliteStore(tmp_path / "klaw.db", compress=True), "the harbour at night, " * 20
    put(store, *[make_document(f"notes/{name}.md", name + long) for name in "abc"])
    with store.write() as transaction:
        transaction.resource.execute(f"UPDATE memory_chunks SET content = {damaged} WHERE id = 2")
        assert dict(transaction.texts("memory", [3, 2, 1])) == {1: "a" + long, 3: "c" + long}


class TestIsolation(IsolationContract):
    @pytest.fixture
    def open_for(self, tmp_path):
        for agent in ("victim", "thief"):
            (tmp_path / agent).mkdir()
        return lambda agent: SqliteStore(tmp_path / agent / "klaw.db")


def _opener() -> OpenStore:
    directory = Path(tempfile.mkdtemp())

    def open_store() -> SqliteStore:
        return SqliteStore(directory / "klaw.db")

    weakref.finalize(open_store, shutil.rmtree, directory, ignore_errors=True)
    return open_store


class SqliteMachine(StoreMachine):
    make_opener = staticmethod(_opener)


TestSqliteMachine = SqliteMachine.TestCase
TestSqliteMachine.settings = settings(max_examples=scaled(40), stateful_step_count=25, deadline=None)


@pytest.mark.promise("S2")
def test_the_files_are_private(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    put(store, make_document("notes/a.md", "one"))
    with store.read():
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    assert modes == {"klaw.db": 0o600, "klaw.db-wal": 0o600, "klaw.db-shm": 0o600, "klaw.db.lock": 0o600}


def test_the_tables_have_the_documented_names_and_columns(tmp_path):
    with SqliteStore(tmp_path / "klaw.db").read() as snapshot:
        columns = {row[1] for row in snapshot.resource.execute("PRAGMA table_info(memory_chunks)")}
        assert snapshot.resource.pragma("journal_mode") == "wal"
        assert snapshot.resource.pragma("foreign_keys") == 1
        assert snapshot.resource.pragma("synchronous") == 2
        assert snapshot.resource.pragma("secure_delete") == 1
    assert columns >= {"id", "source", "chat_id", "content", "created_at", "updated_at"}


def test_documentation_has_its_own_tables(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    put(store, make_document("notes/a.md", "mine"))
    guide = evolve(make_document("guide/install.md", "one\ntwo", origin="guide"), version="1.2")
    with store.write() as transaction:
        transaction.replace("docs", guide, cut_lines(guide))
    with store.read() as snapshot:
        rows = snapshot.resource.execute(
            "SELECT file, section, content, version FROM doc_chunks ORDER BY id"
        ).fetchall()
        assert rows == [("install.md", "line of 3", "one", "1.2"), ("install.md", "line of 3", "two", "1.2")]
        assert [item.source for item in snapshot.outline("docs", "guide/install.md")] == ["install.md", "install.md"]
        assert snapshot.counts("docs") == {"guide": (1, 2)}
        assert snapshot.counts("memory") == {"notes": (1, 1)}
    later = evolve(guide, version="1.3")
    with store.write() as transaction:
        assert transaction.replace("docs", later, cut_lines(later)).removed == ()
        assert transaction.resource.execute("SELECT DISTINCT version FROM doc_chunks").fetchall() == [("1.3",)]


def test_foreign_keys_are_enforced(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    insert = (
        "INSERT INTO memory_chunks (source, content, created_at, document_id, chunk_id, start_offset, end_offset,"
        " start_line, end_line, heading) VALUES ('s', 'c', 't', 99, 'i', 0, 1, 1, 1, '[]')"
    )
    with pytest.raises(StoreError, match="ConstraintError"), store.write() as transaction:
        transaction.resource.execute(insert)


def test_a_database_of_another_program_is_rejected_and_not_changed(tmp_path):
    path = tmp_path / "other.db"
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(path)
    assert [row[0] for row in apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema")] == ["theirs"]


def test_an_invalid_database_is_reported_as_corrupt(tmp_path):
    path = tmp_path / "klaw.db"
    path.write_bytes(b"this is not a database, but long enough to be looked at" * 40)
    with pytest.raises(StoreCorruptError, match=r"klaw\.db"):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"this is not")


def test_a_file_written_by_a_newer_version_is_refused(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    with store.write() as transaction:
        transaction.resource.execute("INSERT INTO klaw_migrations (owner, name) VALUES ('sqlite', '9999-future')")
    store.close()
    with pytest.raises(StoreError, match="newer version"):
        SqliteStore(tmp_path / "klaw.db")


def test_a_read_only_location_is_named(tmp_path):
    with pytest.raises(StoreReadOnlyError, match="cannot be opened"):
        SqliteStore(tmp_path / "missing" / "klaw.db")


def test_a_second_writer_waits_and_then_gets_an_error(tmp_path):
    first = SqliteStore(tmp_path / "klaw.db")
    second = SqliteStore(tmp_path / "klaw.db", busy_timeout_seconds=0.05)
    with first.write(), pytest.raises(StoreLockedError, match="locked"), second.write():
        pass
    put(second, make_document("notes/a.md", "one"))


def test_a_rebuild_blocks_other_writers_by_name_and_no_readers(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    put(store, make_document("notes/a.md", "one"))
    other = SqliteStore(tmp_path / "klaw.db")
    with store.rebuild() as fresh:
        put(fresh, make_document("notes/b.md", "two"))
        with pytest.raises(StoreLockedError, match=f"process {os.getpid()} is rebuilding"), other.write():
            pass
        with other.read() as before:
            assert list(before.manifest("memory", "notes")) == ["notes/a.md"]
    with other.read() as after:
        assert list(after.manifest("memory", "notes")) == ["notes/b.md"]
    put(other, make_document("notes/c.md", "three"))
    assert sorted(path.name for path in tmp_path.iterdir() if "rebuild" in path.name) == []


def test_a_snapshot_does_not_see_the_end_of_a_rebuild(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    put(store, make_document("notes/a.md", "one"))
    with store.read() as snapshot:
        with store.rebuild() as fresh:
            put(fresh, make_document("notes/b.md", "two"))
        assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]


def test_an_interrupted_rebuild_is_resumed(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    with pytest.raises(KeyboardInterrupt), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
        put(fresh, make_document("notes/b.md", "two"))
        raise KeyboardInterrupt
    with store.rebuild() as fresh, fresh.read() as snapshot:
        assert list(snapshot.manifest("memory", "notes")) == ["notes/b.md"]
    with store.read() as snapshot:
        assert list(snapshot.manifest("memory", "notes")) == ["notes/b.md"]


def test_a_transaction_inside_another_is_refused(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    with store.write(), pytest.raises(StoreError, match="inside another"), store.write():
        pass
    put(store, make_document("notes/a.md", "one"))


def test_use_after_close_and_after_fork_is_refused(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    child = os.fork()
    if child == 0:  # pragma: no cover  # the child's own process
        try:
            with store.read():
                os._exit(0)
        except StoreError:
            os._exit(42)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    store.close()
    with pytest.raises(StoreError, match="closed"), store.read():
        pass


@pytest.mark.parametrize("since", [None, datetime(2020, 1, 1, tzinfo=UTC)])
def test_the_newest_documents_of_a_rare_origin_are_found_without_reading_the_others(tmp_path, since):
    store = SqliteStore(tmp_path / "klaw.db")
    with store.write() as transaction:
        transaction.resource.executemany(
            "INSERT INTO documents (collection, path, origin, content_hash, created_at) VALUES (?, ?, ?, '', ?)",
            (("memory", f"notes/{n}.md", "notes", "2026-02-24T09:00:00.000Z") for n in range(3000)),
        )
    old = make_document("saved/a", "a", origin="saved")
    put(store, old)
    calls = []
    with store.read() as snapshot:
        snapshot.resource.set_progress_handler(lambda: calls.append(1) and False, 100)
        found = snapshot.newest("memory", 5, origin="saved", since=since)
        snapshot.resource.set_progress_handler(None)
        assert [record.path for record in found] == ["saved/a"]
        assert len(calls) < 10  # thousands of steps if each of the notes is read
        assert len(snapshot.newest("memory", 5, origin="notes", since=since)) == 5


def test_threads_have_separate_snapshots(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    put(store, make_document("notes/a.md", "one\ntwo"))
    barrier = threading.Barrier(4)
    seen = []

    def read():
        with store.read() as snapshot:
            barrier.wait()
            seen.append(snapshot.keys("memory").size)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [2, 2, 2, 2]


def test_a_cache_in_single_precision_becomes_one_in_half(tmp_path):
    path = tmp_path / "klaw.db"
    store = SqliteStore(path)
    digest, row = text_hash("one"), vector(1, 2, 3, 4)
    with store.write() as transaction:
        transaction.cache_vectors(SPACE, {digest: row})
    store.close()
    with apsw.Connection(str(path)) as old:
        old.execute("UPDATE embedding_cache SET vector = ?", (row.astype("<f4").tobytes(),))
        old.execute("DELETE FROM klaw_migrations WHERE name = '0005-half-precision-cache'")
    old.close()
    store = SqliteStore(path)
    with store.read() as snapshot:
        assert snapshot.cached_vectors(SPACE, [digest])[digest].tolist() == pytest.approx(row.tolist(), abs=1e-3)
        assert snapshot.resource.execute("SELECT length(vector) FROM embedding_cache").get == 2 * row.size
    assert list(store.check()) == []
    store.close()
