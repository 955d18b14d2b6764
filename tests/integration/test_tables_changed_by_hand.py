"""Tables that somebody else has dropped or written to: named by the doctor, with what makes them right again."""

from contextlib import closing
from datetime import UTC, datetime

import apsw
import pytest
import sqlite_vec

from klaw_core import Chat, Message, StoreCorruptError

WHERE = {"channel": "telegram", "chat_id": "1"}


@pytest.fixture
def home(make_home):
    home = make_home("sqlite")
    for number in range(4):
        home.write(f"{number}.md", f"# Note{number}\n\nharbour number{number}\n")
    with home.open() as memory:
        memory.index(home.notes)
        for number in range(3):
            memory.conversations.append(
                Message("user", f"boat {number}", datetime(2026, 2, 24, 10, number, tzinfo=UTC), meta=WHERE)
            )
        memory.conversations.add_summary(Chat("telegram", "1"), "They spoke of boats.")
        memory.index()
        assert memory.doctor().findings == ()
    return home


@pytest.fixture
def change(home):
    def run(sql):
        with closing(apsw.Connection(str(home.root / "data" / "klaw.db"))) as connection:
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            connection.execute(sql)

    return run


def checks(memory):
    return {finding.check for finding in memory.doctor().findings}


@pytest.mark.parametrize(
    ("sql", "check"),
    [
        ("UPDATE documents SET created_at = 'bogus' WHERE id = 1", "stale"),
        ("UPDATE memory_chunks SET created_at = 'bogus' WHERE id = 1", "damaged-chunks"),
        ("DELETE FROM sessions", "conversation-rows"),
        ("UPDATE sessions SET created_at = 'bogus'", "conversation-rows"),
        ("DELETE FROM summaries", "summary-rows"),
        ("UPDATE summaries SET content = 'They did not.'", "summary-rows"),
    ],
)
def test_manual_changes_of_rows_are_found_and_fixed(home, change, sql, check):
    change(sql)
    with home.open() as memory:
        assert check in checks(memory)
        memory.documents()
        memory.recent()
        memory.search("harbour")
        memory.doctor(fix=True)
        assert memory.doctor().findings == ()


def test_an_index_run_writes_a_document_with_an_invalid_date_again(home, change):
    change("UPDATE documents SET created_at = 'bogus' WHERE id = 1")
    with home.open() as memory:
        assert memory.index().changed == 1
        assert memory.doctor().findings == ()


@pytest.mark.parametrize("table", ["memory_fts", "messages_fts", "sessions", "documents"])
def test_a_missing_table_is_named_with_its_fix(home, change, table):
    change("PRAGMA foreign_keys = off")
    change(f"DROP TABLE {table}")
    home.write("0.md", "# Note0\n\nharbour changed\n")
    with home.open() as memory:
        found = [finding for finding in memory.doctor().findings if table in finding.what]
        assert any("klaw reindex" in finding.hint for finding in found)
        if table.endswith("_fts"):  # without the others a rebuild has nothing to take over
            memory.reindex()
            assert memory.doctor().findings == ()


def test_an_index_run_with_a_missing_table_names_the_fix(home, change):
    change("DROP TABLE memory_fts")
    home.write("0.md", "# Note0\n\nharbour changed\n")
    with home.open() as memory, pytest.raises(StoreCorruptError, match="no such table") as caught:
        memory.index()
    assert "klaw reindex" in caught.value.hint
