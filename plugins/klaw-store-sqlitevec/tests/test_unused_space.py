"""Nothing that was deleted is in the space that no row uses: copies that SQLite left when it moved rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from klaw_core import Closing, StoreError, StoreLockedError
from klaw_store_sqlitevec import connections, unused_space
from klaw_store_sqlitevec.salvage import DatabaseFile
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.unused_space import clear_unused_space
from klaw_testing.store import put
from klaw_testing.values import make_document

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB);
CREATE INDEX t_a ON t (a);
CREATE TABLE w (k TEXT, n INT, v TEXT, PRIMARY KEY (k, n)) WITHOUT ROWID;
CREATE VIRTUAL TABLE f USING fts5 (x);
"""
# So long are the parts of a row: on its page, or on others.
PADS = (0, 1, 5, 30, 200, 900, 3000, 9000)
COPY = b"a copy of something that is forgotten"


def word(chance: Random) -> str:
    return "".join(chance.choices("bcdfghjklmnpqrstvwxz", k=12))


def opened(path: Path, size: int, *, vacuum: bool) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", size)
    connection.pragma("auto_vacuum", int(vacuum))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "off")
    connection.pragma("secure_delete", "on")
    connection.execute(SCHEMA)
    return connection


def change(connection: apsw.Connection, chance: Random, live: dict[int, tuple[str, str]], number: int) -> set[str]:
    """Insert, update or delete a row of each table; return the words that were deleted."""
    pad = chance.choice("yz") * chance.choice(PADS)
    what = chance.random() if live else 0.0
    if what < 0.55:
        new = word(chance)
        live[number] = new, new[::-1] + pad[:300]
        connection.execute("INSERT INTO t VALUES (?, ?, ?)", (number, new + pad[:50], 2 * (pad + new)))
        connection.execute("INSERT INTO w VALUES (?, ?, ?)", (live[number][1], number, pad + new))
        connection.execute("INSERT INTO f (rowid, x) VALUES (?, ?)", (number, f"{new} common"))
        return set()
    key = chance.choice(list(live))
    name, place = live[key]
    if what < 0.7:
        connection.execute("UPDATE t SET b = ? WHERE id = ?", (pad + name, key))
        connection.execute("UPDATE w SET v = ? WHERE k = ? AND n = ?", (name + pad, place, key))
        return set()
    del live[key]
    connection.execute("DELETE FROM t WHERE id = ?", (key,))
    connection.execute("DELETE FROM w WHERE k = ? AND n = ?", (place, key))
    connection.execute("DELETE FROM f WHERE rowid = ?", (key,))
    return {name, name[::-1]}


def lived(connection: apsw.Connection, chance: Random) -> set[bytes]:
    """Change rows, empty the log, and return the deleted words."""
    live: dict[int, tuple[str, str]] = {}
    gone: set[str] = set()
    for step in range(250):
        with connection:
            for part in range(chance.choice((1, 1, 5, 15))):
                number = chance.choice((100 * step + part, 10**9 + 100 * step + part, chance.getrandbits(60)))
                gone |= change(connection, chance, live, number)
    connection.execute("INSERT INTO f (f) VALUES ('optimize')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return {each.encode() for each in gone}


def content(connection: apsw.Connection) -> list[list[Any]]:
    queries = "SELECT * FROM t", "SELECT * FROM w", "SELECT rowid, x FROM f", "SELECT * FROM sqlite_schema"
    return [list(connection.execute(query)) for query in queries]


def in_bytes(path: Path, words: set[bytes]) -> list[bytes]:
    held = path.read_bytes()
    return [each for each in words if each in held]


@pytest.mark.promise("D53")
@pytest.mark.parametrize("vacuum", [False, True], ids=["", "auto-vacuum"])
@pytest.mark.parametrize(("size", "seed"), [(512, 9), (1024, 2), (4096, 0), (4096, 7), (65536, 5)])
def test_after_any_changes_no_deleted_word_is_left_and_no_row_is_changed(
    tmp_path: Path, *, size: int, seed: int, vacuum: bool
) -> None:
    path = tmp_path / "klaw.db"
    connection = opened(path, size, vacuum=vacuum)
    gone = lived(connection, Random(seed))
    before = content(connection)
    assert clear_unused_space(path) > 0
    assert in_bytes(path, gone) == []
    connection.close()
    connection = apsw.Connection(str(path))  # it has no page in memory
    assert content(connection) == before
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert clear_unused_space(path) == 0
    connection.close()


def test_sqlite_leaves_deleted_words_in_unused_space(tmp_path: Path) -> None:
    """Otherwise the other tests show nothing, and the module can go."""
    left = []
    for seed in range(20):
        connection = opened(tmp_path / f"{seed}.db", 4096, vacuum=False)
        left += in_bytes(tmp_path / f"{seed}.db", lived(connection, Random(seed)))
        connection.close()
        if left:
            return
    pytest.fail("no deleted word was left")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "klaw.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path, busy_timeout_seconds=0.05)
    put(store, make_document("notes/a.md", "one"))
    yield store
    store.close()


def plant(path: Path) -> int:
    """Write a copy of a row into the unused space of every page that has room; return how many. The log is empty."""
    planted = 0
    with DatabaseFile(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB) as file:
        for first in range(4096, file.xFileSize(), 4096):
            page = file.xRead(4096, first)
            begin = (8 if page[0] in (10, 13) else 12) + 2 * int.from_bytes(page[3:5], "big")
            if page[0] in (2, 5, 10, 13) and int.from_bytes(page[5:7], "big") - begin > 2 * len(COPY):
                file.xWrite(COPY, first + begin + len(COPY))
                planted += 1
    return planted


def prepare(store: SqliteStore, path: Path) -> None:
    """Let every page with room have a copy, also in the memory of the store's connections."""
    store._connections.erase()
    store._connections.renew()
    assert plant(path) > 5
    with store.write() as transaction:
        transaction.resource.execute("SELECT COUNT(*) FROM documents, memory_chunks, klaw_migrations").fetchall()


def forget(store: SqliteStore) -> None:
    with store.write() as transaction:
        transaction.forget_vectors([])


def touch(store: SqliteStore) -> None:
    """Write to pages that were in memory before."""
    put(store, make_document("notes/a.md", "two"))
    with store.write() as transaction:
        transaction.resource.execute("INSERT INTO klaw_migrations (owner, name) VALUES ('x', 'y')")
        transaction.resource.execute("DELETE FROM klaw_migrations WHERE owner = 'x'")


def left(path: Path) -> list[str]:
    return [file.name for file in path.parent.iterdir() if COPY in file.read_bytes()]


@pytest.mark.promise("D53", "D9")
@pytest.mark.parametrize("remembers", ["the same", "another"])
def test_copies_leave_with_what_is_forgotten_and_do_not_return_from_memory(
    store: SqliteStore, path: Path, remembers: str
) -> None:
    """The pages that a connection keeps in memory still have the copies."""
    with Closing(lambda: SqliteStore(path)) as other:
        remembering = store if remembers == "the same" else other
        prepare(remembering, path)
        assert left(path) == ["klaw.db"]
        forget(store)
        assert left(path) == []
        touch(remembering)
        remembering._connections.erase()
        assert left(path) == []
    assert store.erases_later == ""


@pytest.mark.promise("D10", "D53")
@pytest.mark.parametrize("nth", range(4))
def test_killed_while_it_clears_it_is_continued(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    prepare(store, path)
    writes: list[int] = []
    original = apsw.VFSFile.xWrite

    class Dying(apsw.VFSFile):
        def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  # SQLite's name
            writes.append(offset)
            if len(writes) > nth:
                original(self, data[: len(data) // 2], offset)
                raise KeyboardInterrupt
            original(self, data, offset)

    with monkeypatch.context() as context:
        context.setattr(apsw, "VFSFile", Dying)
        with pytest.raises(KeyboardInterrupt):
            forget(store)
    store.close()
    with Closing(lambda: SqliteStore(path)) as again:
        with again.read() as snapshot:
            assert snapshot.resource.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert again.erases_later
        again.tidy()  # as the next `klaw index` does
        assert left(path) == []
        assert not again.erases_later


@pytest.mark.parametrize("later", ["a change", "an index run", "the doctor"])
def test_what_a_reader_of_an_older_state_prevents_is_said_and_done_later(
    store: SqliteStore, path: Path, later: str
) -> None:
    prepare(store, path)
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    reader.execute("SELECT COUNT(*) FROM documents").fetchall()
    put(store, make_document("notes/b.md", "two"))
    forget(store)
    assert left(path)
    assert "another program" in store.erases_later
    put(store, make_document("notes/c.md", "three"))
    assert store.erases_later, "the reader is still there"
    reader.close()
    if later == "a change":
        put(store, make_document("notes/d.md", "four"))
    elif later == "an index run":
        store.tidy()
    else:
        store.check(fix=True)
    assert left(path) == []
    assert store.erases_later == ""


@pytest.mark.promise("D53")
def test_a_writer_between_emptying_and_clearing_delays_it(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has written is in the log, as the pages were before."""
    prepare(store, path)
    waiting = ["x"]
    original = connections._empty_log

    def empty_and_write(connection: apsw.Connection) -> bool:
        emptied = original(connection)
        if waiting:
            add_migration(path, waiting.pop())
        return emptied

    monkeypatch.setattr(connections, "_empty_log", empty_and_write)
    monkeypatch.setattr(store._connections, "_busy_timeout_ms", 5000)
    forget(store)
    assert left(path) == []
    with store.read() as snapshot:
        assert snapshot.resource.execute("SELECT owner FROM klaw_migrations WHERE name = 'x'").get == "x"


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What was read to clear its unused space, once for each time."""
    done: list[Path] = []

    def scan(path: Path) -> int:
        done.append(path)
        return clear_unused_space(path)

    monkeypatch.setattr(unused_space, "clear_unused_space", scan)
    return done


def test_the_file_is_read_once_while_nothing_changes(store: SqliteStore, path: Path, scans: list[Path]) -> None:
    prepare(store, path)
    scans.clear()
    forget(store)
    forget(store)
    with store.read() as snapshot:
        snapshot.resource.execute("SELECT COUNT(*) FROM documents").fetchall()
    forget(store)
    assert scans == [path]
    assert left(path) == []
    assert store.erases_later == ""


def write_here(store: SqliteStore, _path: Path) -> None:
    put(store, make_document("notes/a.md", "two"))


def drop_here(store: SqliteStore, _path: Path) -> None:
    with store.write() as transaction:
        transaction.resource.execute("CREATE TABLE passing (x)")
    with store.write() as transaction:
        transaction.resource.execute("DROP TABLE passing")


def write_elsewhere(_store: SqliteStore, path: Path) -> None:
    add_migration(path, "x")


def write_in_another_process(_store: SqliteStore, path: Path) -> None:
    script = """if True:
        import apsw, sys
        apsw.Connection(sys.argv[1]).execute("INSERT INTO klaw_migrations (owner, name) VALUES ('x', 'x')")"""
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)


def renew(store: SqliteStore, _path: Path) -> None:
    store._connections.renew()


@pytest.mark.promise("D53")
@pytest.mark.parametrize("change", [write_here, drop_here, write_elsewhere, write_in_another_process, renew])
def test_after_any_change_it_is_read_again(
    store: SqliteStore, path: Path, scans: list[Path], change: Callable[[SqliteStore, Path], None]
) -> None:
    """Also if what is forgotten now was removed by that change, so that the transaction changes nothing."""
    forget(store)
    change(store, path)
    store._connections.erase()
    assert plant(path) > 5
    scans.clear()
    forget(store)
    assert scans == [path]
    assert left(path) == []


def test_what_changes_in_the_forgetting_transaction_itself_is_cleared(
    store: SqliteStore, path: Path, scans: list[Path]
) -> None:
    forget(store)
    with store.write() as transaction:
        transaction.forget_vectors([])
        transaction.resource.execute("CREATE TABLE passing (x)")
    assert scans == [path, path]


@pytest.mark.promise("D44", "D53")
@pytest.mark.parametrize("ends", ["well", "with an error"])
def test_a_block_that_erases_once_erases_at_its_end(
    store: SqliteStore, path: Path, scans: list[Path], ends: str
) -> None:
    """Also if an error ends it: what was forgotten before is not kept."""
    prepare(store, path)
    scans.clear()
    with suppress(ZeroDivisionError), store.erasing_once():
        for name in ("notes/b.md", "notes/c.md"):
            with store.erasing_once():
                put(store, make_document(name, "two"))
                forget(store)
        assert scans == []
        assert store.erases_later
        if ends == "with an error":
            raise ZeroDivisionError
    assert scans == [path]
    assert left(path) == []
    assert store.erases_later == ""


def test_such_a_block_delays_no_other_thread(store: SqliteStore, path: Path, scans: list[Path]) -> None:
    prepare(store, path)
    scans.clear()
    with store.erasing_once(), ThreadPoolExecutor(1) as other:
        other.submit(forget, store).result()
        assert scans == [path]
        assert left(path) == []
    assert scans == [path]


def save(store: SqliteStore) -> None:
    put(store, make_document("notes/c.md", "three"))


def replace_all(store: SqliteStore) -> None:
    with store.rebuild() as fresh:
        put(fresh, make_document("notes/c.md", "three"))


@pytest.mark.parametrize("write", [save, replace_all])
def test_a_writer_waits_longer_than_usual_for_a_clearing(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[SqliteStore], None]
) -> None:
    """A large file takes longer than the usual wait; the header says that it is being cleared."""
    put(store, make_document("notes/b.md", "two"))
    waits: list[float] = []
    clearing = apsw.Connection(str(path))
    clearing.execute("BEGIN IMMEDIATE")
    clearing.pragma("user_version", 1)
    clearing.execute("COMMIT")
    clearing.execute("BEGIN IMMEDIATE")

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            clearing.execute("COMMIT")

    monkeypatch.setattr(connections, "_CLEARED_BYTES_A_SECOND", 1)
    monkeypatch.setattr(connections.time, "sleep", sleep)
    write(store)
    assert len(waits) >= 3
    with store.read() as snapshot:
        assert snapshot.record("memory", "notes", "notes/c.md")
    clearing.close()


def test_a_writer_does_not_wait_longer_for_another_change(store: SqliteStore, path: Path) -> None:
    writing = apsw.Connection(str(path))
    writing.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLockedError):
        put(store, make_document("notes/c.md", "three"))
    writing.close()


def test_a_writer_gives_up_on_a_clearing_that_does_not_end(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_CLEARED_BYTES_A_SECOND", 1 << 40)
    writing = apsw.Connection(str(path))
    writing.pragma("user_version", 1)
    writing.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLockedError):
        put(store, make_document("notes/c.md", "three"))
    writing.close()


def add_migration(path: Path, name: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO klaw_migrations (owner, name) VALUES (?, ?)", (name, name))
    connection.close()


def test_a_page_whose_counts_do_not_agree_is_left_as_it_is(path: Path) -> None:
    connection = opened(path, 4096, vacuum=False)
    lived(connection, Random(3))
    connection.close()
    held = bytearray(path.read_bytes())
    for first in range(4096, len(held), 4096):
        if held[first] in (2, 5, 10, 13) and (count := int.from_bytes(held[first + 3 : first + 5], "big")):
            held[first + 3 : first + 5] = (count - 1).to_bytes(2, "big")
    path.write_bytes(held)
    assert clear_unused_space(path) == 0
    assert path.read_bytes() == held


def test_a_failure_to_clear_after_another_change_does_not_fail_that(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(store, path)

    def fail(_path: Path) -> int:
        raise apsw.IOError("disk I/O error")

    with monkeypatch.context() as context:
        context.setattr("klaw_store_sqlitevec.unused_space.clear_unused_space", fail)
        with pytest.raises(StoreError):
            forget(store)
        put(store, make_document("notes/b.md", "two"))
    put(store, make_document("notes/c.md", "three"))
    assert left(path) == []
