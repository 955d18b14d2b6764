"""Any value of any column of the database is replaced: only errors of Klaw leave it, and a reindex repairs it.

The columns are read from the schema. ``--campaigns`` (``nox -s campaigns``) tries every column with every value.
"""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing

import apsw
import pytest

from klaw_core import KlawError, Message
from klaw_testing.values import MOMENT

VALUES = ("NULL", "''", "'x'", "12", "-1", "1.5", "x'ff'", "CAST(x'ff' AS TEXT)", "x''", "9223372036854775807")
SAMPLE = 2
# Labels have no checksum: a wrong one that looks right is not noticed (docs/decisions/0035-what-is-checked.md).
LABELS = {"source", "chat_id", "file", "version", "section", "created_at", "updated_at", "title", "metadata", "origin"}
# The tables of FTS5, sqlite-vec and extensions are their owners' to check.
_TABLES = """
SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
AND name NOT LIKE 'sqlite~_%' ESCAPE '~' AND name NOT LIKE '%~_fts~_%' ESCAPE '~' AND name NOT LIKE '%vec~_%' ESCAPE '~'
AND name NOT LIKE 'x~_%' ESCAPE '~'
"""


@pytest.fixture(scope="module")
def good(places, tmp_path_factory):
    """A sound memory, its answers, and the cases: a table, a column and a value."""
    world = places.World(tmp_path_factory.mktemp("values") / "good")
    world.root.mkdir()
    world.fill()
    with world.open() as memory:
        expected, _ = world.ask(memory)
    with closing(apsw.Connection(str(world.database))) as connection:
        tables = [name for (name,) in connection.execute(_TABLES)]
        filled = [name for name in tables if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {name})").get]
        columns = [(name, row[1]) for name in filled for row in connection.execute(f"PRAGMA table_info({name})")]
    assert len(filled) > 12
    return world, expected, [(*column, value) for column in columns for value in VALUES]


def replace_value(database, table, column, value, dice):
    """Replace a column's value in one row; return whether that is possible."""
    with closing(apsw.Connection(str(database))) as connection:
        before = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
        connection.execute("PRAGMA writable_schema = on")
        free = before.replace(" NOT NULL", "")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (free, table))
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("PRAGMA foreign_keys = off; PRAGMA ignore_check_constraints = on")
        key = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5])
        rows = connection.execute(f"SELECT COUNT(*) FROM {table}").get
        chosen = f"(SELECT {key} FROM {table} LIMIT 1 OFFSET {dice.randrange(rows)})"
        try:
            connection.execute(f"UPDATE OR REPLACE {table} SET {column} = {value} WHERE ({key}) = {chosen}")
        except apsw.Error:  # such as a row id that is no integer
            return False
        connection.execute("PRAGMA writable_schema = on")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (before, table))
    return True


def use(world, places):
    """Use the memory in every way; errors of Klaw's are answers."""
    try:
        with world.open() as memory:
            uses = (
                *(lambda: str(memory.context("harbour tide", chat="telegram_1")), memory.conversations.chats),
                *(
                    lambda: memory.conversations.session(places.CHAT),
                    lambda: memory.conversations.summaries(places.CHAT),
                ),
                *(lambda: memory.documents(limit=1000), lambda: memory.documents(collection="others")),
                *(memory.index, lambda: memory.index(verify=True), memory.embed, memory.collections, memory.sources),
                lambda: memory.save("a new text", created_at=MOMENT),
                lambda: memory.conversations.append(Message("user", "something new", MOMENT, meta=places.CHAT.meta)),
                lambda: memory.forget(memory.documents(prefix="saved/")[0].path),
                lambda: memory.forget("notes/note3.md"),
                lambda: memory.delete(["doc1"]),
                lambda: memory.conversations.purge(places.CHAT),
                lambda: memory.doctor(fix=True),
            )
            for each in uses:
                try:
                    each()
                except (KlawError, IndexError):  # IndexError: no saved text is found
                    continue
    except KlawError:
        return


def test_any_value_of_any_column_is_noticed_or_harmless_and_then_repaired(good, places, campaign, cases, tmp_path):
    world, expected, changes = good
    problems, tried = [], 0
    for number in range(cases.number(SAMPLE, len(changes))):
        dice = random.Random(f"values {number}")
        case = changes[number] if cases.whole else dice.choice(changes)
        damaged = places.copy_of(world, tmp_path / str(number))
        if not replace_value(damaged.database, *case, dice):
            continue
        tried += 1
        used = places.copy_of(damaged, tmp_path / f"{number} used")
        report = tmp_path / f"{number}.json"

        def work(damaged=damaged, used=used, report=report):
            report.write_text(json.dumps(places.look(damaged, expected)))
            use(used, places)

        problem = campaign.in_child(work, seconds=600)
        seen = json.loads(report.read_text()) if report.exists() else {"wrong": []}
        if case[1] in LABELS:
            seen["wrong"] = []
        if problem := problem or places.verdict(seen):
            problems.append((number, case, problem[-1500:]))
        shutil.rmtree(damaged.root)
        shutil.rmtree(used.root)
    cases.add(0, len(problems))
    assert tried > SAMPLE // 2
    assert problems == []
