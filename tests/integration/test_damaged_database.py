"""A damaged database: the error names the command that repairs it, and that command does."""

import os
import random
from contextlib import closing

import apsw
import pytest

from klaw_core import DatabaseCorruptError, EmbeddingError, KlawError, PluginError
from klaw_testing.values import MOMENT

PAGE = 4096


@pytest.fixture
def home(make_home):
    home = make_home("sqlite")
    for number in range(40):
        home.write(f"{number}.md", f"# Note{number}\n\nharbour number{number}\n")
    with home.open() as memory:
        memory.index(home.notes)
        memory.save("the harbour code is 4711", created_at=MOMENT)
    home.recorder.take()
    return home


@pytest.fixture
def database(home):
    return home.root / "data" / "klaw.db"


def root_page(database, table):
    with closing(apsw.Connection(str(database))) as connection:
        return connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get - 1


def overwrite(database, page, content):
    with database.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(content)


def spoil(database, table):
    """Write rubbish over the first page of a table."""
    overwrite(database, root_page(database, table), os.urandom(PAGE))


def cut(database):
    os.truncate(database, 10 * PAGE)


def zero_the_first_page(database):
    overwrite(database, 0, bytes(PAGE))


def zero_the_documents(database):
    overwrite(database, root_page(database, "documents"), bytes(PAGE))


def swap(database):
    data = database.read_bytes()
    pages = [root_page(database, name) for name in ("documents", "embedding_cache")]
    for page, other in (pages, reversed(pages)):
        overwrite(database, page, data[other * PAGE : (other + 1) * PAGE])


def flip_the_identification(database):
    overwrite(database, 0, database.read_bytes()[:68] + b"wolk")


def flip_the_magic(database):
    overwrite(database, 0, b"SQLite formas 3\0")


def flip_the_page_size(database):
    overwrite(database, 0, database.read_bytes()[:16] + b"\x02\x00")


def flip_the_format(database):
    overwrite(database, 0, database.read_bytes()[:44] + b"\xff\xff\xff\xff")


def be_no_database(database):
    database.write_bytes(b"nothing like a database" * 400)


def be_tiny(database):
    database.write_bytes(b"tiny")


def be_zeros(database):
    database.write_bytes(bytes(database.stat().st_size))


def be_a_directory(database):
    database.unlink()
    database.mkdir()
    (database / "mine").write_text("keep this")


def have_a_directory_for_its_log(database):
    database.with_name("klaw.db-wal").mkdir()


def have_a_directory_for_its_lock(database):
    database.with_name("klaw.db.lock").unlink()
    database.with_name("klaw.db.lock").mkdir()


def have_lost_a_migration(database):
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE klaw_migrations SET name = '0001-dobuments' WHERE name LIKE '0001-documents%'")


def have_lost_the_owner_of_migrations(database):
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE klaw_migrations SET owner = 'x' WHERE name NOT LIKE '0001%'")


def have_lost_a_table(database):
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("PRAGMA foreign_keys = off; DROP TABLE documents")


REFUSED = [
    *(cut, zero_the_first_page, flip_the_identification, flip_the_magic, flip_the_page_size, flip_the_format),
    *(be_no_database, be_tiny, be_zeros, be_a_directory, have_a_directory_for_its_log, have_a_directory_for_its_lock),
    *(have_lost_a_migration, have_lost_the_owner_of_migrations),
]
OPENED = [zero_the_documents, swap, have_lost_a_table]


def hints_of(call):
    """Return the hints of the error of a call, or nothing."""
    try:
        call()
    except KlawError as error:
        return [error.hint]
    return []


@pytest.mark.one_of(3)
@pytest.mark.parametrize("damage", [*REFUSED, *OPENED], ids=lambda damage: damage.__name__)
def test_every_hint_is_a_reindex_which_repairs_the_damage(home, database, check, dump, damage):
    with home.open() as memory:
        expected = dump(memory)
    damage(database)
    if damage in REFUSED:
        with pytest.raises(DatabaseCorruptError, match=r"klaw\.db") as caught:
            home.open()
        assert caught.value.hint == "klaw reindex"
    else:
        with home.open() as memory:
            hints = [*hints_of(memory.index), *hints_of(memory.status), *hints_of(lambda: memory.search("harbour"))]
            assert set(hints) <= {"klaw reindex"}
            assert "klaw reindex" in {finding.hint for finding in memory.doctor().findings}
    with home.open(replace_damaged=True) as memory:
        memory.reindex()
        check(memory)
        assert dump(memory) == expected
        assert [finding for finding in memory.doctor().findings if finding.severity != "note"] == []
        assert memory.index().unchanged == 41


@pytest.mark.promise("D13", "D38")
@pytest.mark.parametrize("damage", [zero_the_documents, have_lost_a_table], ids=lambda damage: damage.__name__)
def test_an_open_memory_replaces_the_database_itself(home, database, check, damage):
    damage(database)
    with home.open() as memory:
        report = memory.reindex()
        assert any("klaw.db.broken-1 is a copy of it" in notice for notice in report.notices)
        check(memory)
        memory.save("saved afterwards", created_at=MOMENT)
        assert memory.search("afterwards", mode="fts")
    assert len([text for text in home.recorder.take() if "harbour" in text]) == 0, "the cached vectors were copied"


@pytest.mark.parametrize("table", ["memory_chunks", "memory_fts_data", "vec_memory_vector_chunks00"])
def test_damage_that_a_reindex_need_not_read_is_replaced_in_place(home, database, check, table):
    spoil(database, table)
    with home.open() as memory:
        (found,) = [finding for finding in memory.doctor().findings if finding.check == "integrity"]
        assert found.hint == "klaw reindex"
        assert memory.reindex().notices == ()
        check(memory)
        assert memory.doctor().findings == ()
    assert not [text for text in home.recorder.take() if "harbour" in text]
    assert not list(database.parent.glob("*.broken-*"))


@pytest.mark.parametrize("table", ["embedding_cache", "vector_spaces", "documents"])
def test_only_the_vectors_of_the_damaged_page_are_computed_again(home, database, check, table):
    spoil(database, table)
    with home.open(replace_damaged=True) as memory:
        memory.reindex()
        check(memory)
    again = [text for text in home.recorder.take() if "harbour" in text]
    assert len(again) == {"embedding_cache": 0, "vector_spaces": 41, "documents": 0}[table]


def test_a_deleted_or_empty_database_is_noticed_and_filled_by_an_index_run(home, database, check):
    for change in (database.unlink, lambda: database.write_bytes(b"")):
        change()
        with home.open() as memory:
            assert memory.search("harbour").hints == ("the index is empty: klaw index",)
            warnings = [finding for finding in memory.doctor().findings if finding.severity == "warning"]
            assert {finding.hint for finding in warnings} == {"klaw index"}
            memory.index()
            check(memory)


@pytest.mark.promise("D9", "D40", "D45")
def test_what_was_set_aside_is_kept_twice_and_leaves_with_what_is_forgotten(home, database):
    dice = random.Random(1)
    for number in range(4):
        be_no_database(database)
        with database.open("ab") as file:
            file.write(dice.randbytes(10))
        with home.open(replace_damaged=True) as memory:
            assert any(f"klaw.db.broken-{number + 1} is a copy" in notice for notice in memory.reindex().notices)
    assert sorted(path.name for path in database.parent.glob("*.broken-*")) == ["klaw.db.broken-3", "klaw.db.broken-4"]
    with home.open() as memory:
        (note,) = [finding for finding in memory.doctor().findings if finding.check == "damaged-copy"]
        assert note.severity == "note"
        (saved,) = memory.documents(prefix="saved/")
        memory.forget(saved.path)
    assert not list(database.parent.glob("*.broken-*"))


def test_a_directory_in_its_place_is_moved_and_kept(home, database):
    be_a_directory(database)
    with home.open(replace_damaged=True) as memory:
        assert any("klaw.db.broken-1" in notice for notice in memory.reindex().notices)
        memory.forget(memory.documents(prefix="saved/")[0].path)
    assert (database.with_name("klaw.db.broken-1") / "mine").read_text() == "keep this"


def test_another_programs_database_is_not_replaced(home, database):
    database.unlink()
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    with pytest.raises(KlawError, match="another program"):
        home.open(replace_damaged=True)
    with closing(apsw.Connection(str(database))) as connection:
        assert connection.execute("SELECT name FROM sqlite_schema").get == "theirs"


def test_a_failed_embedder_leaves_the_words_and_the_report_says_both(home, database):
    spoil(database, "vector_spaces")
    be_no_database(database)
    home.recorder.fail_at = home.recorder.calls + 1
    with home.open(replace_damaged=True) as memory:
        report = memory.reindex()
        assert report.lacking == 41
        assert any("broken-1" in notice for notice in report.notices)
        assert memory.search("number7", mode="fts")


def test_an_error_of_the_following_run_says_what_was_set_aside(home, database):
    be_no_database(database)
    (home.root / "data" / "workspaces.json").write_text("[")
    with home.open(replace_damaged=True) as memory, pytest.raises(KlawError, match=r"broken-1.*workspaces\.json"):
        memory.reindex()


def test_an_error_without_damage_replaces_nothing(home, database, monkeypatch):
    with home.open() as memory:
        home.recorder.fail_at = home.recorder.calls + 1
        with pytest.raises(EmbeddingError):
            memory.reindex("counting:another")

        def fail(*_arguments):
            raise PluginError("a plugin failed")

        with monkeypatch.context() as patch:
            patch.setattr("klaw_core.maintenance.reindex.reindex", fail)
            with pytest.raises(PluginError):
                memory.reindex()
    assert not list(database.parent.glob("*.broken-*"))


def test_a_second_reindex_builds_next_to_the_current_index_again(home, database):
    be_no_database(database)
    with home.open(replace_damaged=True) as memory:
        memory.reindex()
        home.notes.rename(home.root / "elsewhere")
        (skipped,) = memory.reindex().skipped
        assert (skipped.path, skipped.keep) == ("notes", True)
        assert memory.search("number7", mode="fts")


@pytest.mark.parametrize("damage", [zero_the_first_page, be_no_database, zero_the_documents, cut, be_tiny])
def test_another_program_that_has_it_open_goes_on_with_the_new_content(home, database, check, damage):
    other = home.open()
    with home.open() as memory:
        memory.search("harbour")
    damage(database)
    with home.open(replace_damaged=True) as memory:
        memory.reindex()
        memory.save("saved afterwards", created_at=MOMENT)
        check(memory)
    assert other.search("afterwards", mode="fts")
    other.save("saved by the other", created_at=MOMENT)
    check(other)
    other.close()


def test_damaged_words_stop_an_index_run_with_a_hint(home, database, check):
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("UPDATE memory_fts_data SET block = x'ffffffffffffffffff' WHERE id >= 10")
    home.write("3.md", "# Another\n\ntext\n")
    with home.open() as memory:
        with pytest.raises(DatabaseCorruptError, match=r"klaw\.db is not a valid SQLite database.*klaw reindex"):
            memory.index()
        assert memory.search("harbour").results
        found = [finding.what for finding in memory.doctor().findings]
        assert [what for what in found if "fts5" in what] != []
        memory.reindex()
        check(memory)
        assert memory.doctor().findings == ()


@pytest.mark.promise("D37")
def test_words_that_no_page_leads_to_are_a_finding(home, database):
    with home.open() as memory:
        memory.save(" ".join(f"word{number}" for number in range(2000)), created_at=MOMENT)
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("DELETE FROM memory_fts_idx")
    with home.open() as memory:
        found = [finding for finding in memory.doctor().findings if "words cannot be found" in finding.what]
        assert [finding.check for finding in found] == ["index-content"]
        memory.doctor(fix=True)
        assert memory.doctor().findings == ()
