"""What a search fails with is Klaw's error, which says what to do; everything else of SQLite's is for the store."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from klaw_core import ChunkSelection, Query, QueryError, RetrievalError, reinstall_command
from klaw_fts5.index import Fts5Index
from klaw_testing.index import selection, stored

INDEX = Fts5Index()
ROWS = [stored(key, "harbour tide") for key in range(1, 200)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "klaw.db")
    connection = apsw.Connection(path)
    connection.execute("PRAGMA synchronous = OFF; BEGIN")
    for migration in INDEX.migrations():
        migration.apply(connection)
    INDEX.add(connection, "memory", ROWS, None)
    connection.execute("COMMIT")
    connection.close()
    return path


def test_a_missing_table() -> None:
    connection = apsw.Connection(":memory:")
    with pytest.raises(RetrievalError, match="klaw reindex") as caught:
        INDEX.search(connection, Query("tide"), 5)
    assert isinstance(caught.value.__cause__, apsw.Error)
    with pytest.raises(apsw.SQLError, match="no such table"):
        INDEX.keys(connection, "memory")
    with pytest.raises(apsw.SQLError, match="no such table"):
        INDEX.add(connection, "memory", ROWS, None)
    with pytest.raises(apsw.SQLError, match="no such table"):
        INDEX.reset(connection, "memory", None)


def test_a_name_that_no_collection_can_have(connection: apsw.Connection) -> None:
    with pytest.raises(QueryError, match="invalid collection name"):
        INDEX.search(connection, Query("tide", collection="memory; --"), 5)


def test_a_closed_connection(path: str) -> None:
    connection = apsw.Connection(path)
    connection.close()
    with pytest.raises(RetrievalError):
        INDEX.search(connection, Query("tide"), 5)
    with pytest.raises(apsw.ConnectionClosedError):
        INDEX.remove(connection, "memory", [1])


@pytest.mark.parametrize("within", [None, selection([1, 2])])
def test_an_interrupted_search(path: str, within: ChunkSelection | None) -> None:
    connection = apsw.Connection(path)
    connection.set_progress_handler(lambda: True, 1)
    with pytest.raises(RetrievalError, match="interrupt"):
        INDEX.search(connection, Query("tide", within=within), 5)
    connection.set_progress_handler(None)
    assert INDEX.search(connection, Query("tide", within=within), 5)
    connection.close()


def test_a_locked_file(path: str) -> None:
    owner, other = apsw.Connection(path), apsw.Connection(path)
    owner.execute("BEGIN EXCLUSIVE")
    with pytest.raises(RetrievalError, match="locked"):
        INDEX.search(other, Query("tide"), 5)
    with pytest.raises(apsw.BusyError):
        INDEX.remove(other, "memory", [1])
    owner.execute("ROLLBACK")
    assert INDEX.search(other, Query("tide"), 5)
    owner.close()
    other.close()


def test_a_file_that_cannot_be_written(path: str) -> None:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    with pytest.raises(apsw.ReadOnlyError):
        INDEX.remove(connection, "memory", [1])
    assert len(INDEX.search(connection, Query("tide"), 5)) == 5
    connection.close()


def test_a_full_disk(path: str) -> None:
    connection = apsw.Connection(path)
    pages = connection.pragma("page_count")
    connection.pragma("max_page_count", pages)
    with pytest.raises(apsw.FullError):
        INDEX.add(connection, "memory", [stored(1000, " ".join(f"word{n}" for n in range(20_000)))], None)
    connection.close()


def test_a_damaged_table_is_reported_until_it_is_reset(path: str) -> None:
    connection = apsw.Connection(path)
    connection.execute("UPDATE memory_fts_data SET block = x'ffffffffffffffffff' WHERE id = 10")
    connection.close()
    connection = apsw.Connection(path)
    connection.execute("PRAGMA synchronous = OFF")
    with pytest.raises(RetrievalError, match="klaw reindex"):
        INDEX.search(connection, Query("tide"), 5)
    with pytest.raises(apsw.CorruptError):
        INDEX.remove(connection, "memory", [1])
    with pytest.raises(apsw.CorruptError):
        INDEX.keys(connection, "memory")
    INDEX.reset(connection, "memory", None)
    INDEX.add(connection, "memory", ROWS, None)
    assert len(INDEX.search(connection, Query("tide"), 5)) == 5
    connection.close()


@pytest.mark.parametrize("option", ["ENABLE_FTS5", "ENABLE_CARRAY"])
def test_an_sqlite_that_lacks_what_is_needed(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setattr(apsw, "compile_options", tuple(name for name in apsw.compile_options if name != option))
    with pytest.raises(RetrievalError, match=f"SQLITE_{option}") as caught:
        INDEX.prepare(apsw.Connection(":memory:"))
    assert caught.value.hint == reinstall_command("apsw")
