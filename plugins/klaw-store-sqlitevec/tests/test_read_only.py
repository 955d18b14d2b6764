"""A database where nothing may be written is read as it is; what would write says why it cannot."""

import shutil

import apsw
import pytest

from klaw_core import StoreLockedError, StoreReadOnlyError
from klaw_store_sqlitevec import connections, read_only
from klaw_store_sqlitevec.store import SqliteStore
from klaw_testing.store import C, dump, put
from klaw_testing.values import make_document


@pytest.fixture
def path(tmp_path):
    """A database of one document that its last user has closed."""
    path = tmp_path / "data" / "klaw.db"
    path.parent.mkdir()
    store = SqliteStore(path)
    put(store, make_document("notes/a.md", "one\ntwo"))
    store.close()
    return path


@pytest.fixture
def forbid(monkeypatch):
    """Take the permission to write from everybody, as a mount does; root would not notice that of a file."""

    def forbid(path):
        for file in path.parent.iterdir():
            file.chmod(0o400)
        path.parent.chmod(0o500)
        for module in (connections, read_only):
            monkeypatch.setattr(module, "may_be_written", lambda place: place != path)

    return forbid


@pytest.fixture(autouse=True)
def _removable(path):
    yield
    path.parent.chmod(0o700)


def listing(path):
    return {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in path.parent.iterdir()}


def contents(store):
    with store.read() as snapshot:
        return dump(snapshot)


@pytest.mark.promise("D48")
def test_a_read_only_database_is_read_without_new_files(path, forbid):
    writable = SqliteStore(path)
    expected = contents(writable)
    writable.close()
    forbid(path)
    before = listing(path)
    store = SqliteStore(path)
    assert contents(store) == expected
    assert contents(store) == expected
    assert store.statistics()["log_bytes"] == 0
    store.close()
    assert listing(path) == before


@pytest.mark.promise("D49")
def test_a_read_only_database_is_not_written(path, forbid):
    forbid(path)
    store = SqliteStore(path)
    with pytest.raises(StoreReadOnlyError, match=r"cannot be opened for writing.*check its permissions"):
        put(store, make_document("notes/b.md", "three"))
    with pytest.raises(StoreReadOnlyError), store.rebuild():
        pass
    assert [finding.check for finding in store.check() if finding.severity == "error"] == ["writing"]
    assert contents(store)["counts"] == {"notes": (1, 2)}
    store.close()


def test_changes_of_another_process_are_seen(path, forbid):
    writer = SqliteStore(path)
    put(writer, make_document("notes/b.md", "three"))
    connection = writer._connections
    forbid(path)
    store = SqliteStore(path)
    assert contents(store)["counts"] == {"notes": (2, 3)}, "it is in the log only"
    with connection.overwriter() as open_already:
        open_already.execute("DELETE FROM documents WHERE path = 'notes/a.md'")
        open_already.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert contents(store)["counts"] == {"notes": (1, 1)}
    store.close()
    writer.close()


def test_the_log_of_a_dead_process_is_read(path, tmp_path, forbid):
    writer = SqliteStore(path)
    put(writer, make_document("notes/b.md", "three"))
    shutil.copytree(path.parent, tmp_path / "left")
    writer.close()
    left = tmp_path / "left" / "klaw.db"
    forbid(left)
    store = SqliteStore(left)
    assert contents(store)["counts"] == {"notes": (2, 3)}
    store.close()
    left.parent.chmod(0o700)


@pytest.mark.promise("D51")
def test_a_log_without_shared_memory_is_an_error_with_a_hint(path, tmp_path, forbid):
    writer = SqliteStore(path)
    put(writer, make_document("notes/b.md", "three"))
    shutil.copytree(path.parent, tmp_path / "left")
    writer.close()
    left = tmp_path / "left" / "klaw.db"
    left.with_name("klaw.db-shm").unlink()
    forbid(left)
    with pytest.raises(StoreReadOnlyError, match=r"are in klaw\.db-wal.*copy the directory"):
        SqliteStore(left)
    left.parent.chmod(0o700)


@pytest.mark.promise("D50")
def test_a_read_during_a_change_of_the_file_is_an_error(path, forbid):
    forbid(path)
    store = SqliteStore(path)
    with pytest.raises(StoreLockedError, match=r"was changed while it was read.*try again"), store.read():  # noqa: PT012
        path.chmod(0o600)
        with path.open("r+b") as file:
            begun = file.read(16)
            file.seek(0)
            file.write(begun)  # nothing is damaged, but the date is another
    assert contents(store)["counts"] == {"notes": (1, 2)}
    with store.read() as snapshot:
        assert snapshot.keys(C).size == 2
    store.close()


def test_a_database_without_the_tables_of_this_version_or_configuration_is_an_error_with_a_hint(path, forbid):
    with apsw.Connection(str(path)) as old:
        old.execute("DELETE FROM klaw_migrations WHERE name = (SELECT MAX(name) FROM klaw_migrations)")
    old.close()  # which empties the log
    forbid(path)
    with pytest.raises(StoreReadOnlyError, match="lacks tables of this version or configuration"):
        SqliteStore(path)


def test_the_log_is_read_through_a_link_to_the_file(path, tmp_path):
    writer = SqliteStore(path)
    put(writer, make_document("notes/b.md", "three"))
    link = tmp_path / "link.db"
    link.symlink_to(path)
    store = SqliteStore(link)
    with store.read() as snapshot:
        assert set(snapshot.manifest(C, "notes")) == {"notes/a.md", "notes/b.md"}
    assert store.location == str(path)
    store.close()
    writer.close()
