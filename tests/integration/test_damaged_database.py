"""A database with damaged pages, or one that is none: what is said to fix it does."""

import os
from contextlib import closing

import apsw
import pytest

from klaw_core import StoreCorruptError


@pytest.fixture
def home(make_home):
    home = make_home("sqlite")
    for number in range(40):
        home.write(f"{number}.md", f"# Note{number}\n\nharbour number{number}\n")
    with home.open() as memory:
        memory.index(home.notes)
    return home


@pytest.fixture
def database(home):
    return home.root / "data" / "klaw.db"


def spoil(database, table):
    """Write rubbish over the first page of a table."""
    with closing(apsw.Connection(str(database))) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
        size = connection.pragma("page_size")
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(os.urandom(size))


@pytest.mark.parametrize("table", ["memory_chunks", "memory_fts_data", "vec_memory_vector_chunks00"])
def test_damaged_pages_are_replaced_by_a_reindex_which_keeps_the_vectors(home, database, check, table):
    spoil(database, table)
    home.recorder.take()
    with home.open() as memory:
        (found,) = [finding for finding in memory.doctor().findings if finding.check == "integrity"]
        assert found.hint.startswith("`klaw reindex`; if that fails too, move it away")
        memory.reindex()
        check(memory)
        assert memory.doctor().findings == ()
    assert not [text for text in home.recorder.take() if "harbour" in text]


@pytest.mark.parametrize("table", ["documents", "embedding_cache"])
def test_a_reindex_that_reads_damaged_pages_says_to_build_the_database_again(home, database, check, table):
    spoil(database, table)
    with home.open() as memory, pytest.raises(StoreCorruptError) as caught:
        memory.reindex()
    assert caught.value.hint.endswith(
        "if that fails too, move it away and run `klaw index`; it will be rebuilt from your files"
    )
    database.unlink()
    with home.open() as memory:
        memory.index()
        check(memory)
        assert [finding.check for finding in memory.doctor().findings] in ([], ["leftovers"])


def test_an_invalid_database_is_reported_with_its_fix(home, database, check):
    database.write_bytes(b"nothing like a database" * 400)
    with pytest.raises(StoreCorruptError) as caught:
        home.open()
    assert caught.value.hint == "move it away and run `klaw index`; it will be rebuilt from your files"
    database.unlink()
    with home.open() as memory:
        memory.index()
        check(memory)


def test_damaged_words_stop_an_index_run_with_a_hint(home, database, check):
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE memory_fts_data SET block = x'ffffffffffffffffff' WHERE id >= 10")
    home.write("3.md", "# Another\n\ntext\n")
    with home.open() as memory:
        with pytest.raises(StoreCorruptError, match=r"klaw\.db is not a valid SQLite database.*`klaw reindex`"):
            memory.index()
        assert memory.search("harbour").results
        assert any("fts5 cannot report its content" in problem for problem in memory.status().problems)
        memory.reindex()
        check(memory)
        assert memory.doctor().findings == ()
