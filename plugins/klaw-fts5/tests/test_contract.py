"""The whole contract, on a real SQLite: in a file and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import apsw
import pytest
from sqlite_index import SqliteIndexTests

from klaw_core import KeyDigest, Query
from klaw_fts5.index import Fts5Index
from klaw_testing.index import stored


class TestInMemory(SqliteIndexTests):
    @pytest.fixture
    def index(self) -> Fts5Index:
        return Fts5Index()


@pytest.mark.one_of(3)
class TestInAFile(TestInMemory):
    @pytest.fixture
    def connection(self, tmp_path: Path) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(tmp_path / "klaw.db"))
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        yield connection
        connection.close()


class TestPacked(TestInMemory):
    @pytest.fixture
    def index(self) -> Fts5Index:
        return Fts5Index(search_by="packed")


@pytest.mark.parametrize("search_by", ["exact", "packed"])
@pytest.mark.parametrize("merged", [False, True])
def test_erased_words_leave_the_pages_and_the_rest_stays(
    tmp_path: Path, search_by: Literal["exact", "packed"], *, merged: bool
) -> None:
    path, index = tmp_path / "klaw.db", Fts5Index(search_by=search_by)
    connection = apsw.Connection(str(path))
    connection.pragma("secure_delete", 1)  # as the store has it
    for migration in index.migrations():
        migration.apply(connection)
    for key in range(1, 31):
        index.add(connection, "memory", [stored(key, f"harbour {'xylophonium' if key == 7 else 'gull'}")], None)
    if merged:
        index.erase(connection, "memory")
    index.remove(connection, "memory", [7])
    assert b"ophonium" in path.read_bytes(), "removing alone leaves it, or nothing is tested here"
    index.erase(connection, "memory")
    assert b"ophonium" not in path.read_bytes()
    assert len(index.search(connection, Query("harbour"), 50)) == 29
    assert index.keys(connection, "memory").tolist() == [*range(1, 7), *range(8, 31)]
    connection.close()


def _tables(connection: apsw.Connection) -> dict[str, str]:
    return dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall())


def test_every_collection_has_tables_like_those_of_memory(connection: apsw.Connection) -> None:
    before = set(_tables(connection))
    Fts5Index().add(connection, "facts", [stored(1, "harbour")], None)
    after = _tables(connection)
    made = {name.replace("c5_facts", "memory"): sql.replace("c5_facts", "memory") for name, sql in after.items()
            if name not in before}  # fmt: skip
    kept = {name: sql for name, sql in after.items() if name.startswith(("memory_fts", "memory_words"))}
    assert _plain(made) == _plain(kept)
    automerge = "SELECT v FROM {}_fts_config WHERE k = 'automerge'"
    assert connection.execute(automerge.format("c5_facts")).get == connection.execute(automerge.format("memory")).get


def _plain(tables: dict[str, str]) -> dict[str, str]:
    return {name: " ".join(sql.split()) for name, sql in tables.items()}


def test_reading_an_unknown_collection_writes_nothing(connection: apsw.Connection) -> None:
    before = _tables(connection)
    connection.pragma("query_only", 1)
    for index in (Fts5Index(), Fts5Index(search_by="packed"), Fts5Index(search_by="exact")):
        assert index.search(connection, Query("harbour", "facts"), 5) == ()
        assert index.keys(connection, "facts").size == index.outdated(connection, "facts").size == 0
        assert index.key_digest(connection, "facts") == KeyDigest()
        assert list(index.check(connection, "facts", None)) == []
        index.remove(connection, "facts", [1])
        index.erase(connection, "facts")
    assert _tables(connection) == before
