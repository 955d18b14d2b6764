"""What an interrupted rebuild left is gone on with, or is in nobody's way; and the lock that a rebuild holds."""

import fcntl
import os
import re

import apsw
import pytest

from klaw_core import StoreCorruptError, StoreError, StoreLockedError, VectorSpace, update_command
from klaw_core.values.text import text_hash
from klaw_store_sqlitevec.rebuild_lock import RebuildLock
from klaw_store_sqlitevec.snapshot import SqliteSnapshot
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.store import SPACE, put, vector
from klaw_testing.values import make_document

OTHER = VectorSpace("other", "1", 4)


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


@pytest.mark.promise("D11")
def test_nothing_of_the_replaced_content_is_left_in_any_file(store, path):
    put(store, make_document("notes/b.md", "zebra"))
    with store.rebuild() as fresh:
        put(fresh, make_document("notes/a.md", "walrus"))
    found = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    assert [name for name, data in found.items() if b"zebra" in data] == []
    assert b"walrus" in found["klaw.db"]
    assert store.statistics()["log_bytes"] == 0


def test_what_an_interrupted_rebuild_left_is_removed_and_its_vectors_of_present_documents_stay(store, path):
    known, unknown = text_hash("one"), text_hash("two")
    with pytest.raises(KeyboardInterrupt), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
        put(fresh, make_document("notes/b.md", "zebra"))
        with fresh.write() as transaction:
            transaction.cache_vectors(OTHER, dict.fromkeys([known, unknown], vector(1, 2, 3, 4)))
            transaction.note_documents(OTHER, {("memory", "notes/a.md"): [known], ("memory", "notes/b.md"): [unknown]})
        raise KeyboardInterrupt
    assert fresh._path.exists()
    store.tidy()
    assert [file.name for file in path.parent.iterdir() if b"zebra" in file.read_bytes()] == []
    assert not [file for file in path.parent.iterdir() if "rebuild" in file.name]
    with store.read() as snapshot:
        assert list(snapshot.cached_vectors(OTHER, [known, unknown])) == [known]
    store.tidy()


def test_a_running_rebuild_is_not_removed(store):
    with store.rebuild() as fresh:
        with pytest.raises(StoreLockedError):
            store.tidy()
        assert fresh._path.exists()
        put(fresh, make_document("notes/b.md", "two"))
    assert documents(store) == ["notes/b.md"]


@pytest.mark.parametrize("become", [be_rubbish, be_another_programs], ids=["rubbish", "another program's"])
def test_an_unusable_leftover_is_removed(store, become):
    left = interrupt(store)
    become(left)
    store.tidy()
    assert not left.exists()
    assert documents(store) == ["notes/a.md"]


@pytest.mark.parametrize("how", ["replaced", "forgotten", "tidied"])
def test_the_removal_of_a_rebuild_is_flushed(store, path, monkeypatch, how):
    """Also if nothing is there to remove: whoever removed it may have been killed before it was flushed."""
    if how == "tidied":
        interrupt(store)
    flushed = []
    original = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino) or original(descriptor)
    )
    if how == "replaced":
        with store.rebuild() as fresh:
            put(fresh, make_document("notes/a.md", "one"))
    elif how == "forgotten":
        with store.write() as transaction:
            transaction.forget_vectors([text_hash("one")])
    else:
        store.tidy()
    assert path.parent.stat().st_ino in flushed


@pytest.mark.parametrize(
    "become",
    [be_rubbish, be_another_programs, be_of_a_newer_version("sqlite"), be_of_a_newer_version("sqlite-vec")],
    ids=["rubbish", "another program's", "a newer store's", "a newer index's"],
)
def test_an_unusable_leftover_is_started_again(store, become):
    become(interrupt(store))
    with store.rebuild() as fresh:
        assert documents(fresh) == []
        put(fresh, make_document("notes/c.md", "three"))
    assert documents(store) == ["notes/c.md"]


def test_a_leftover_that_another_program_uses_is_kept(store):
    left = interrupt(store)
    be_of_a_newer_version("sqlite")(left)
    holder = apsw.Connection(str(left))
    holder.pragma("locking_mode", "exclusive")
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreLockedError), store.rebuild():
        pass
    holder.close()
    assert left.exists()


def hashes(about):
    return [text_hash(f"{about} {number}") for number in range(200)]


def cache(store, about):
    with store.write() as transaction:
        transaction.cache_vectors(SPACE, dict.fromkeys(hashes(about), vector(1, 2, 3, 4)))


def cached_in(path, about):
    """Return how many of these vectors a database holds that nobody has open."""
    store = SqliteStore(path)
    with store.read() as snapshot:
        count = len(snapshot.cached_vectors(SPACE, hashes(about)))
    store.close()
    return count


def damage_cache(path, leaf):
    """Overwrite a page of vectors; rows are in the order they were written in."""
    with apsw.Connection(str(path)) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'embedding_cache' AND pagetype = 'leaf' ORDER BY path"
        ).fetchall()
        size = connection.pragma("page_size")
    connection.close()
    assert len(pages) > 2
    with path.open("r+b") as file:
        file.seek((pages[leaf][0] - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("leaf", [0, -1], ids=["among those compared", "among those taken along"])
def test_damage_in_the_database_is_reported_and_the_new_vectors_stay(path, leaf):
    store = SqliteStore(path)
    cache(store, "old")
    with pytest.raises(KeyboardInterrupt), store.rebuild() as fresh:  # noqa: PT012  # the block is the subject
        cache(fresh, "new")
        raise KeyboardInterrupt
    store.close()
    damage_cache(path, leaf)
    store = SqliteStore(path)
    with pytest.raises(StoreCorruptError, match=re.escape(f"{path} is not a valid SQLite database")), store.rebuild():
        pass
    store.close()
    assert cached_in(fresh._path, "new") == 200


def test_a_leftover_with_a_damaged_page_is_started_again(store):
    cache(store, "old")
    left = interrupt(store)
    damage_cache(left, 0)
    with store.rebuild() as fresh:
        assert documents(fresh) == []
        with fresh.read() as snapshot:
            assert len(snapshot.cached_vectors(SPACE, hashes("old"))) == 200


@pytest.mark.parametrize("suffix", ["", ".rebuild"])
def test_a_temporary_read_error_keeps_the_new_vectors(store, path, monkeypatch, suffix):
    cache(store, "old")
    left = interrupt(store)
    read = SqliteSnapshot.cached_vectors

    def fail(snapshot, *asked):
        if snapshot.resource.filename == f"{path}{suffix}":
            raise apsw.IOError("disk I/O error")
        return read(snapshot, *asked)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteSnapshot, "cached_vectors", fail)
        with pytest.raises(StoreError, match=re.escape(f"{path}{suffix}: IOError")), store.rebuild():
            pass
    assert cached_in(left, "old") == 200
    with store.rebuild() as fresh:
        assert documents(fresh) == ["notes/b.md"]


def test_damage_found_at_the_swap_is_reported_for_the_database(store, path, monkeypatch):
    read = SqliteSnapshot.space

    def fail(snapshot, collection):
        if snapshot.resource.filename == str(path):
            raise apsw.CorruptError("database disk image is malformed")
        return read(snapshot, collection)

    monkeypatch.setattr(SqliteSnapshot, "space", fail)
    with pytest.raises(StoreCorruptError, match=re.escape(f"{path} is not a valid SQLite database")), store.rebuild():
        pass


@pytest.mark.parametrize("owner", ["sqlite", "sqlite-vec"])
def test_a_newer_database_is_an_error_with_commands(store, path, owner):
    be_of_a_newer_version(owner)(path)
    store.close()
    with pytest.raises(StoreError, match="newer version") as caught:
        SqliteStore(path).enlist("sqlite-vec", VectorIndex())
    assert re.findall("`(.*?)`", caught.value.hint) == [update_command(), "klaw plugins"]
    assert repr(owner) in caught.value.hint


@pytest.mark.promise("D36")
@pytest.mark.parametrize("bad", ["x''", "'abcdefgh'", "CAST(x'ff' AS TEXT)", "zeroblob(8)"])
def test_a_damaged_cached_vector_is_not_copied(store, bad):
    good, damaged = text_hash("good"), text_hash("damaged")
    with store.write() as transaction:
        transaction.cache_vectors(SPACE, dict.fromkeys([good, damaged], vector(1, 2, 3, 4)))
        transaction.resource.execute(
            f"UPDATE embedding_cache SET vector = {bad} WHERE hash = ?", (bytes.fromhex(damaged),)
        )
    with store.rebuild() as fresh, fresh.read() as snapshot:
        hashes = [digest.hex() for (digest,) in snapshot.resource.execute("SELECT hash FROM embedding_cache")]
    assert hashes == [good]


def test_a_writer_at_the_end_of_a_rebuild_succeeds(path, monkeypatch):
    held = RebuildLock(path, exclusive=True)
    held.__enter__()
    flock = fcntl.flock

    def flock_then_end(descriptor, kind):
        try:
            flock(descriptor, kind)
        except BlockingIOError:
            monkeypatch.setattr(fcntl, "flock", flock)
            held.__exit__(None, None, None)
            raise

    monkeypatch.setattr(fcntl, "flock", flock_then_end)
    with RebuildLock(path):
        assert fcntl.flock is flock, "the lock was awaited"


def test_a_rebuild_without_a_process_id_is_named_without_it(path):
    with RebuildLock(path, exclusive=True) as descriptor:
        os.ftruncate(descriptor, 0)
        with pytest.raises(StoreLockedError, match="another process is rebuilding it"), RebuildLock(path):
            pass


def test_a_rebuild_names_the_current_writer_and_not_an_earlier_rebuild(path):
    with RebuildLock(path) as descriptor:
        os.pwrite(descriptor, b"12345\n", 0)
        with (
            pytest.raises(StoreLockedError, match="another process is writing to it"),
            RebuildLock(path, exclusive=True),
        ):
            pass
