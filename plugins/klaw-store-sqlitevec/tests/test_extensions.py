"""Tables of extensions: told by name, nobody else's, and in every detail what they were after a rebuild."""

from pathlib import Path

import apsw
import pytest

from klaw_core import Migration, StoreError
from klaw_store_sqlitevec.store import SqliteStore
from klaw_testing.store import put
from klaw_testing.values import make_document

SCHEMA = """
CREATE TABLE x_facts_links (a INTEGER REFERENCES x_facts_rows (id), b INTEGER, PRIMARY KEY (b, a)) WITHOUT ROWID;
CREATE TABLE x_facts_rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, "odd ""name" TEXT, value REAL,
    length INTEGER GENERATED ALWAYS AS (length(value)) STORED
);
CREATE TABLE x_facts_plain (value);
CREATE INDEX x_facts_by_value ON x_facts_rows (value);
CREATE VIEW x_facts_view AS SELECT value FROM x_facts_rows;
CREATE TABLE x_facts_log (what TEXT);
CREATE TRIGGER x_facts_trigger AFTER INSERT ON x_facts_rows BEGIN INSERT INTO x_facts_log VALUES (new.value); END;
CREATE VIRTUAL TABLE x_facts_words USING fts5 (text);
"""
ROWS = """
INSERT INTO x_facts_rows (id, "odd ""name", value) VALUES (1, 'a', 1.5), (7, NULL, 2), (9, 'gone', 3);
DELETE FROM x_facts_rows WHERE id = 9;
INSERT INTO x_facts_links VALUES (7, 1);
INSERT INTO x_facts_plain (rowid, value) VALUES (40, x'00ff'), (41, 'text'), (43, 5);
INSERT INTO x_facts_words (text) VALUES ('harbour lights'), ('gull');
"""
QUERIES = (
    "SELECT * FROM x_facts_rows ORDER BY id",
    "SELECT * FROM x_facts_links",
    "SELECT rowid, value, typeof(value) FROM x_facts_plain ORDER BY rowid",
    "SELECT * FROM x_facts_view ORDER BY 1",
    "SELECT what FROM x_facts_log",
    "SELECT rowid, text FROM x_facts_words WHERE x_facts_words MATCH 'harbour'",
    "SELECT seq FROM sqlite_sequence WHERE name = 'x_facts_rows'",
    "SELECT type, name, sql FROM sqlite_schema WHERE name GLOB 'x_*' ORDER BY 1, 2",
    "SELECT owner, name FROM klaw_migrations WHERE owner GLOB 'ext*'",
)


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    yield store
    store.close()


def step(sql, name="0001"):
    return Migration(name, lambda connection: connection.execute(sql))


def everything(store):
    with store.read() as snapshot:
        return [snapshot.resource.execute(sql).fetchall() for sql in QUERIES]


def test_a_rebuild_keeps_all_tables_of_an_extension(store):
    store.migrate("facts", [step(SCHEMA), step(ROWS, "0002")])
    before = everything(store)
    for interrupted in (True, False):
        try:
            with store.rebuild() as fresh:
                assert everything(fresh) == before
                put(fresh, make_document("notes/a.md", "new"))
                with fresh.write() as transaction:
                    transaction.resource.execute("INSERT INTO x_facts_words (text) VALUES ('harbour again')")
                    transaction.resource.execute("DELETE FROM x_facts_words WHERE text = 'harbour again'")
                assert not interrupted or 1 / 0
        except ZeroDivisionError:
            continue
    assert everything(store) == before
    assert list(store.check()) == []
    with store.write() as transaction:
        transaction.resource.execute("INSERT INTO x_facts_rows (value) VALUES (4)")
        assert transaction.resource.last_insert_rowid() == 10
        transaction.resource.execute("INSERT INTO x_facts_words (text) VALUES ('harbour three')")
        found = "SELECT COUNT(*) FROM x_facts_words WHERE x_facts_words MATCH 'harbour'"
        assert transaction.resource.execute(found).get == 2


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE facts (x)",
        "CREATE TABLE x_figures_rows (x)",
        "CREATE INDEX x_facts_i ON documents (origin); CREATE INDEX i ON memory_chunks (content)",
        "ALTER TABLE documents ADD COLUMN x",
        "DROP TABLE messages_fts",
        "CREATE TRIGGER t AFTER DELETE ON documents BEGIN SELECT 1; END",
        "CREATE TABLE x_facts_rows (document INTEGER REFERENCES documents (id))",
    ],
)
def test_migrations_that_change_foreign_tables_are_rejected_and_rolled_back(store, sql):
    with store.read() as snapshot:
        before = snapshot.resource.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    with pytest.raises(StoreError, match="'facts'"):
        store.migrate("facts", [step(sql)])
    with store.read() as snapshot:
        assert snapshot.resource.execute("SELECT name, sql FROM sqlite_schema").fetchall() == before


def test_an_extension_can_have_the_name_of_an_index_or_hyphens(store):
    store.migrate("sqlite", [step("CREATE TABLE x_sqlite_rows (x)")])
    store.migrate("two-words", [step("CREATE TABLE x_two_words_rows (x)")])
    with SqliteStore(Path(store.location)).read() as snapshot:
        made = {name for (name,) in snapshot.resource.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'x_*'")}
    assert made == {"x_sqlite_rows", "x_two_words_rows"}


@pytest.mark.parametrize("owner", ["", "Facts", "a b", "x;", "ф", "a" * 41])
def test_an_invalid_extension_name_is_rejected(store, owner):
    with pytest.raises(StoreError, match="invalid extension name"):
        store.migrate(owner, [])


def test_migrations_of_a_newer_version_of_an_extension_are_rejected(store):
    store.migrate("facts", [step("CREATE TABLE x_facts_rows (x)"), step("SELECT 1", "0002")])
    with pytest.raises(StoreError, match="newer version of 'facts'"):
        store.migrate("facts", [step("CREATE TABLE x_facts_rows (x)")])


def test_an_extension_that_is_up_to_date_needs_no_write(store, tmp_path):
    steps = [step("CREATE TABLE x_facts_rows (x)")]
    store.migrate("facts", steps)
    other = apsw.Connection(str(tmp_path / "klaw.db"))
    other.execute("BEGIN IMMEDIATE")
    before = other.pragma("schema_version")
    store.migrate("facts", steps)
    assert other.pragma("schema_version") == before
    other.close()


def test_the_embedding_locks_are_where_older_versions_expect_them(store, tmp_path):
    for name, place in (
        ("embedding", "embedding.lock"),
        ("embedding-moving", "embedding.lock/moving"),
        ("facts", "locks/facts"),
    ):
        with store.lock(name):
            assert (tmp_path / place).is_dir()
