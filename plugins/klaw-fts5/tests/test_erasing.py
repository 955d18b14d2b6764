"""Erasing costs what the segments with deleted rows hold, and leaves nothing of them, whatever came before."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from klaw_core import Query
from klaw_fts5.erasing import erase_words
from klaw_fts5.index import Fts5Index
from klaw_fts5.sql import statements
from klaw_testing.index import stored

INDEX = Fts5Index(search_by="exact")
SQL = statements("memory")
COMMON = "harbour"


def secret(key: int) -> str:
    """Return a word of one chunk; FTS5 shares the beginnings of neighbouring words, and this one's end is its own."""
    return f"{key:05}xylophonium{key:05}"


def text_of(key: int) -> str:
    chance = Random(key)
    return " ".join((COMMON, secret(key), *(f"word{chance.randint(1, 300)}" for _ in range(30))))


def prepared(connection: apsw.Connection) -> apsw.Connection:
    connection.pragma("secure_delete", 1)  # as the store has it
    for migration in INDEX.migrations():
        migration.apply(connection)
    return connection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "klaw.db"


@pytest.fixture
def connection(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", "off")
    yield prepared(connection)
    connection.close()


def add(connection: apsw.Connection, *keys: int) -> None:
    INDEX.add(connection, "memory", [stored(key, text_of(key)) for key in keys], None)


def fill(connection: apsw.Connection, bulk: int, single: int) -> None:
    """Add chunks 1 to ``bulk``, merged to one segment by a first erasing, and so many more one by one."""
    for first in range(1, bulk + 1, 50):
        with connection:
            add(connection, *range(first, first + 50), 100_000 + first)
    INDEX.remove(connection, "memory", range(100_001, 100_001 + bulk, 50))
    INDEX.erase(connection, "memory")
    for key in range(bulk + 1, bulk + single + 1):
        add(connection, key)


def segments(connection: apsw.Connection) -> dict[int, int]:
    """Return how many pages each segment has: its number is in the upper bits of theirs."""
    sql = "SELECT id >> 37, COUNT(*) FROM memory_fts_data WHERE id > 10 GROUP BY 1"
    rows: list[Any] = connection.execute(sql).fetchall()
    return dict(rows)


def biggest(connection: apsw.Connection) -> int:
    held = segments(connection)
    return max(held, key=lambda number: held[number])


def assert_as_if_new(connection: apsw.Connection, keys: set[int]) -> None:
    """Assert that FTS5 answers as a table does to which only these were added."""
    fresh = prepared(apsw.Connection(":memory:"))
    with fresh:
        add(fresh, *sorted(keys))
    for question in (COMMON, "word7 word19 harbour", '"word3 word4"', "word29*"):
        query = Query(question)
        expected = {hit.key: hit.score for hit in INDEX.search(fresh, query, 2000)}
        assert {hit.key: hit.score for hit in INDEX.search(connection, query, 2000)} == pytest.approx(expected)
    assert INDEX.keys(connection, "memory").tolist() == sorted(keys)
    assert list(INDEX.check(connection, "memory", None)) == []


@pytest.mark.parametrize("age", [1, 5, 20])
def test_erasing_a_recent_row_does_not_rewrite_the_main_segment(
    connection: apsw.Connection, path: Path, age: int
) -> None:
    fill(connection, 1000, 30)
    bulk, key = biggest(connection), 1031 - age
    INDEX.remove(connection, "memory", [key])
    assert secret(key).encode()[6:] in path.read_bytes(), "removing alone leaves it"
    INDEX.erase(connection, "memory")
    assert secret(key).encode()[6:] not in path.read_bytes()
    assert biggest(connection) == bulk
    assert_as_if_new(connection, {*range(1, 1031)} - {key})


@pytest.mark.promise("D44")
def test_erasing_an_old_row_merges_all_segments(connection: apsw.Connection, path: Path) -> None:
    fill(connection, 1000, 30)
    INDEX.remove(connection, "memory", [500, 1020])
    INDEX.erase(connection, "memory")
    assert len(segments(connection)) == 1
    for key in (500, 1020):
        assert secret(key).encode()[6:] not in path.read_bytes()
    assert_as_if_new(connection, {*range(1, 1031)} - {500, 1020})


def test_erasing_nothing_writes_nothing(connection: apsw.Connection) -> None:
    fill(connection, 100, 5)
    before = segments(connection)
    INDEX.erase(connection, "memory")
    assert segments(connection) == before
    assert len(before) > 1


def test_a_row_added_and_removed_in_one_transaction_is_erased(connection: apsw.Connection, path: Path) -> None:
    fill(connection, 200, 3)
    with connection:
        add(connection, 301, 302)
        INDEX.remove(connection, "memory", [301, 202])
        INDEX.erase(connection, "memory")
    for key in (301, 202):
        assert secret(key).encode()[6:] not in path.read_bytes()
    assert_as_if_new(connection, {*range(1, 204), 302} - {202})


def test_rows_that_were_removed_earlier_are_erased(connection: apsw.Connection, path: Path) -> None:
    fill(connection, 1000, 10)
    INDEX.remove(connection, "memory", [17, 400])
    add(connection, 2000)
    INDEX.remove(connection, "memory", [2000])
    INDEX.erase(connection, "memory")
    for key in (17, 400, 2000):
        assert secret(key).encode()[6:] not in path.read_bytes()
    assert_as_if_new(connection, {*range(1, 1011)} - {17, 400})


@pytest.mark.parametrize("record", [b"", b"\0\0\0\1\xff\0\0\1\x80", b"\0\0\0\1\1\1\1", "text", None])
def test_erasing_works_with_an_unknown_record_of_segments(
    connection: apsw.Connection, path: Path, record: bytes | str | None
) -> None:
    fill(connection, 100, 5)
    INDEX.remove(connection, "memory", [104])
    value = "NULL" if record is None else f"'{record}'" if isinstance(record, str) else f"X'{record.hex()}'"
    unread = copy(SQL)
    unread.structure = f"SELECT {value}"
    erase_words(connection, unread)
    assert secret(104).encode()[6:] not in path.read_bytes()


@pytest.mark.parametrize("seed", range(6))
def test_after_any_changes_an_erased_table_equals_a_new_one(connection: apsw.Connection, path: Path, seed: int) -> None:
    chance, keys, gone, following = Random(seed), set[int](), set[int](), 1
    for _ in range(40):
        size = chance.choice((1, 1, 1, 1, 3, 40, 300)) if len(keys) < 1500 else 1
        with connection:
            add(connection, *range(following, following + size))
            keys |= {*range(following, following + size)}
            following += size
            if chance.random() < 0.5 and keys:
                lately = sorted(keys)[-chance.choice((1, 1, 8, 64, len(keys))) :]
                removed = set(chance.sample(lately, min(len(lately), chance.choice((1, 1, 1, 5)))))
                INDEX.remove(connection, "memory", sorted(removed))
                keys -= removed
                gone |= removed
                if chance.random() < 0.6:
                    INDEX.erase(connection, "memory")
    INDEX.erase(connection, "memory")
    held = path.read_bytes()
    assert [key for key in gone if secret(key).encode()[6:] in held] == []
    assert_as_if_new(connection, keys)
