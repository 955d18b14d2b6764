"""What an interrupted rebuild left is gone on with, or is in nobody's way; and the lock that a rebuild holds."""

import fcntl
import os
import re

import apsw
import pytest

from klaw_core import StoreError, StoreLockedError
from klaw_core.testing.store import SPACE, put, vector
from klaw_core.testing.values import make_document
from klaw_core.values import text_hash
from klaw_store_sqlitevec import rebuilding
from klaw_store_sqlitevec.rebuilding import RebuildLock
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.vectors import VectorIndex


@pytest.fixture
def path(tmp_path):
    return tmp_path / "klaw.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path, busy_timeout_seconds=0.05)
    store.enlist("sqlite-vec", VectorIndex())
    put(store, make_document("notes/a.md", "one"))
    yield store
    store.close()


def documents(store):
    with store.read() as snapshot:
        return list(snapshot.manifest("memory", "notes"))


def interrupt(store):
    """Leave a rebuild that got as far as one document; return its file."""
    with pytest.raises(KeyboardInterrupt), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
        put(fresh, make_document("notes/b.md", "two"))
        raise KeyboardInterrupt
    return fresh._path


def be_rubbish(left):
    left.write_bytes(b"garbage\n")


def be_another_programs(left):
    left.unlink()
    with apsw.Connection(str(left)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def be_of_a_newer_version(owner):
    def write(left):
        with apsw.Connection(str(left)) as connection:
            connection.execute("INSERT INTO klaw_migrations (owner, name) VALUES (?, '9999-future')", (owner,))
        connection.close()

    return write


@pytest.mark.parametrize(
    "become",
    [be_rubbish, be_another_programs, be_of_a_newer_version("sqlite"), be_of_a_newer_version("sqlite-vec")],
    ids=["rubbish", "another program's", "a newer store's", "a newer index's"],
)
def test_a_leftover_that_nobody_can_go_on_with_is_begun_anew(store, become):
    become(interrupt(store))
    with store.rebuild() as fresh:
        assert documents(fresh) == []
        put(fresh, make_document("notes/c.md", "three"))
    assert documents(store) == ["notes/c.md"]


def test_a_leftover_that_another_program_holds_stays(store):
    left = interrupt(store)
    be_of_a_newer_version("sqlite")(left)
    holder = apsw.Connection(str(left))
    holder.pragma("locking_mode", "exclusive")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreLockedError), store.rebuild():
        pass
    holder.close()
    assert left.exists()


@pytest.mark.parametrize("owner", ["sqlite", "sqlite-vec"])
def test_a_newer_database_is_answered_with_commands_that_can_be_pasted(store, path, owner):
    be_of_a_newer_version(owner)(path)
    store.close()
    with pytest.raises(StoreError, match="newer version") as caught:
        SqliteStore(path).enlist("sqlite-vec", VectorIndex())
    assert re.findall("`(.*?)`", caught.value.hint) == ["pip install --upgrade klaw", "klaw plugins"]
    assert repr(owner) in caught.value.hint


@pytest.mark.parametrize("bad", ["x''", "'abcdefgh'", "CAST(x'ff' AS TEXT)", "zeroblob(8)"])
def test_a_damaged_cached_vector_is_not_taken_along(store, bad):
    good, damaged = text_hash("good"), text_hash("damaged")
    with store.write() as transaction:
        transaction.cache_vectors(SPACE, dict.fromkeys([good, damaged], vector(1, 2, 3, 4)))
        transaction.resource.execute(
            f"UPDATE embedding_cache SET vector = {bad} WHERE hash = ?", (bytes.fromhex(damaged),)
        )
    with store.rebuild() as fresh, fresh.read() as snapshot:
        hashes = [digest.hex() for (digest,) in snapshot.resource.execute("SELECT hash FROM embedding_cache")]
    assert hashes == [good]


@pytest.fixture
def locks(path):
    """A writer's handle on the lock and a rebuilder's."""
    writer, rebuilder = RebuildLock(path), RebuildLock(path)
    yield writer, rebuilder
    writer.close()
    rebuilder.close()


def test_a_writer_that_meets_the_end_of_a_rebuild_writes(locks, monkeypatch):
    writer, rebuilder = locks
    held = rebuilder.exclusive()
    held.__enter__()
    flock = fcntl.flock

    def flock_then_end(descriptor, kind):
        try:
            flock(descriptor, kind)
        except BlockingIOError:
            monkeypatch.setattr(rebuilding.fcntl, "flock", flock)
            held.__exit__(None, None, None)
            raise

    monkeypatch.setattr(rebuilding.fcntl, "flock", flock_then_end)
    with writer.shared():
        pass


def test_a_rebuild_whose_number_is_not_written_yet_is_named_without(locks):
    writer, rebuilder = locks
    with rebuilder.exclusive():
        os.truncate(rebuilder._path, 0)
        with pytest.raises(StoreLockedError, match="another process is rebuilding it"), writer.shared():
            pass


def test_a_rebuild_names_writers_as_such_whatever_an_earlier_one_has_left(locks):
    writer, rebuilder = locks
    with writer.shared():
        rebuilder._path.write_text("12345\n")
        with pytest.raises(StoreLockedError, match="another process is writing to it"), rebuilder.exclusive():
            pass
