"""Any value of the packed form may have become any other: answers stay those of FTS5, or the check says so."""

from __future__ import annotations

import random
from collections.abc import Iterator

import apsw
import pytest

from klaw_core import Query
from klaw_fts5.index import Fts5Index
from klaw_testing.index import stored

EXACT = Fts5Index(search_by="exact", pair_weight=0)
QUESTIONS = ("w1", "w3 w20", "w1 w2 w3 w4 w5", "w150 w199", "w55 w9", "absent w12", "only")

#: A row of each kind, by a condition on its table.
ROWS = {
    "packed_words": ["collection = 'memory'"],
    "memory_words_blocks": ["rows > 500", "rows < 500"],
    "memory_words_dead": ["1"],
    "memory_words_postings": ["term IS NOT NULL", "term IS NULL"],
}
COLUMNS = {
    "packed_words": "collection rows lacking stamp",
    "memory_words_blocks": (
        "id first last rows tokens postings own_at buckets_at buckets check_sum mixes keys lengths"
    ),
    "memory_words_dead": "block tokens positions",
    "memory_words_postings": "id term count check_sum data",
}
#: What a value may have become. Not text that is a number: SQLite makes it one.
VALUES = (
    "{0} + 1",
    "{0} - 1",
    "{0} / 2",
    "-{0}",
    "NULL",
    "'abc'",
    "1.5",
    "x''",
    "x'00ff'",
    "CAST(x'ff' AS TEXT)",
    "1 << 62",
)
CASES = [
    (table, column, row, value)
    for table, columns in COLUMNS.items()
    for column in columns.split()
    for row in ROWS[table]
    for value in VALUES
]


def text_of(source: random.Random) -> str:
    return " ".join(f"w{min(int(source.paretovariate(0.7)), 200)}" for _ in range(source.randrange(1, 60)))


@pytest.fixture(scope="module")
def filled() -> Iterator[apsw.Connection]:
    """An index of 700 chunks in several blocks: terms with lists of their own, and rows that were removed."""
    connection, packed = apsw.Connection(":memory:"), Fts5Index(search_by="packed")
    for migration in packed.migrations():
        migration.apply(connection)
    chunks = [stored(key, f"{text_of(random.Random(key))} {'only' * (key == 12)}") for key in range(1, 701)]
    packed.add(connection, "memory", chunks[:600], None)
    for start in range(600, 700, 20):
        packed.add(connection, "memory", chunks[start : start + 20], None)
    packed.remove(connection, "memory", [5, 9, 650])
    assert packed.check(connection, "memory", None) == []
    yield connection
    connection.close()


@pytest.fixture
def undone(filled: apsw.Connection) -> Iterator[apsw.Connection]:
    """The same, as it was before, after each test."""
    filled.execute("BEGIN")
    yield filled
    filled.execute("ROLLBACK")


def answers(connection: apsw.Connection, index: Fts5Index) -> list[list[tuple[int, float]]]:
    found = [index.search(connection, Query(question), 1000) for question in QUESTIONS]
    return [[(hit.key, round(hit.score, 9)) for hit in hits] for hits in found]


@pytest.fixture(scope="module")
def expected(filled: apsw.Connection) -> list[list[tuple[int, float]]]:
    return answers(filled, EXACT)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("case", CASES, ids=map(" ".join, CASES))
def test_every_changed_value_is_detected(
    undone: apsw.Connection, expected: list[list[tuple[int, float]]], case: tuple[str, str, str, str]
) -> None:
    table, column, row, value = case
    where = row if table == "packed_words" else f"rowid = (SELECT MIN(rowid) FROM {table} WHERE {row})"
    try:
        undone.execute(f"UPDATE {table} SET {column} = {value.format(column)} WHERE {where}")
    except (apsw.ConstraintError, apsw.MismatchError):
        return  # SQLite itself does not keep it
    found = answers(undone, Fts5Index(search_by="packed", pair_weight=0))
    problems = Fts5Index(search_by="packed").check(undone, "memory", None)
    if found != expected:
        assert problems, "it answers wrongly, and nothing says so"
        # Of a term that has become another nothing is left where it would be looked for. SQLite notices a damaged page.
        assert (table, column) == ("memory_words_postings", "term"), "a search should have noticed"
