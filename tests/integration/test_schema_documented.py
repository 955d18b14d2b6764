"""Every table of klaw.db, and every column, stands in the documentation."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "database-schema.md"
_SHADOW = re.compile(r"(messages_fts|memory_fts|docs_fts|vec_memory|vec_docs)_\w+|sqlite_\w+")


@pytest.fixture
def columns(make_home):
    home = make_home("sqlite")
    home.write("a.md", "one")
    with home.open() as memory:
        memory.index(home.notes)
        with memory._assembly.store.read() as snapshot:
            tables = [
                name for (name,) in snapshot.resource.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
            ]
            return {
                table: [row[1] for row in snapshot.resource.execute(f"PRAGMA table_info({table})")]
                for table in tables
                if not _SHADOW.fullmatch(table)
            }


def test_every_table_and_column_is_documented(columns):
    page = PAGE.read_text("utf-8")
    sections = re.split(r"^##", page, flags=re.MULTILINE)
    assert {"messages", "messages_fts", "sessions", "summaries", "memory_chunks", "vec_memory", "doc_chunks"} <= set(
        columns
    )
    inherited = next(section for section in sections if section.startswith("# `memory_chunks`"))
    for table, names in columns.items():
        section = next((part for part in sections if f"`{table}`" in part.split("\n")[0]), None)
        assert section, f"{table} has no section"
        where = section + (inherited if table == "doc_chunks" else "")
        known = [name for name in names if name != "rowid" and not table.endswith("_fts")]
        assert [name for name in known if f"`{name}`" not in where] == [], table
