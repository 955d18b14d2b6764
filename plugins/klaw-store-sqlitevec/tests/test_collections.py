"""Tables of collections that come with what is first written: as those of ``memory``, and never made by reading."""

import re

import apsw
import pytest

from klaw_core import Filters, KeyDigest, Query
from klaw_store_sqlitevec.names import table_name
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.index import SPACE, crowd, unit_vector, unit_vectors
from klaw_testing.store import put, vector
from klaw_testing.values import make_document


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    yield store
    store.close()


def tables(connection):
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def shape(connection, table):
    """Return columns, foreign keys and indexes of a table, without its name."""
    named = re.compile(rf"\b{table}(?=\b|_)")
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    references = connection.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    indexes = connection.execute("SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type = 'index'", (table,))
    made = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get
    return (
        {column[1]: column[2:] for column in columns},
        references,
        {sql and named.sub("T", sql) for (sql,) in indexes},
        "AUTOINCREMENT" in made,
    )


def test_the_chunks_of_any_collection_are_in_a_table_like_that_of_memory(store):
    put(store, make_document("notes/a.md", "one"), collection="facts")
    with store.read() as snapshot:
        connection = snapshot.resource
        assert shape(connection, "c5_facts_chunks") == shape(connection, "memory_chunks")


def test_quantized_vectors_of_any_collection_are_in_a_table_like_that_of_memory():
    index, connection = VectorIndex("quantized"), apsw.Connection(":memory:")
    index.prepare(connection)
    for migration in index.migrations():
        migration.apply(connection)
    index.reset(connection, "facts", SPACE)
    assert shape(connection, "c5_facts_quantized") == shape(connection, "quantized_memory")
    connection.close()


def test_the_names_of_tables_are_unique_per_collection():
    contents = ("chunks", "vec", "quantized")
    made = ("", "_chunks", "_rowids", "_vector_chunks00", "_info", "_document", "_chunk_id")
    names = ["memory", "docs", "a", "a_vec", "a_vec_chunks", "a_chunks", "c1_a", "1a"[1:] + "_vec_vec", "memory_chunks"]
    every = [f"{table_name(name, content)}{suffix}" for name in names for content in contents for suffix in made]
    assert len(set(every)) == len(every)


def test_reading_an_unknown_collection_writes_nothing(store):
    index = VectorIndex()
    store.enlist("sqlite-vec", index)
    put(store, make_document("notes/a.md", "one"))
    with store.read() as snapshot:
        connection = snapshot.resource
        before = tables(connection)
        connection.pragma("query_only", 1)
        try:
            assert snapshot.is_empty("facts")
            assert snapshot.select("facts", Filters(source="a.md")).is_empty
            assert list(snapshot.outline("facts", "notes/a.md")) == []
            assert dict(snapshot.counts("facts")) == {}
            assert index.search(connection, Query("", "facts", vector(1, 2, 3, 4)), 5) == []
            assert index.keys(connection, "facts").size == index.outdated(connection, "facts").size == 0
            assert index.key_digest(connection, "facts") == KeyDigest()
            assert list(index.check(connection, "facts", None)) == []
            index.remove(connection, "facts", [1])
        finally:
            connection.pragma("query_only", 0)
        assert tables(connection) == before


def test_two_programs_can_create_one_collection(tmp_path):
    stores = [SqliteStore(tmp_path / "klaw.db") for _ in range(2)]
    for number, store in enumerate(stores):
        put(store, make_document(f"notes/{number}.md", "one"), collection="facts")
    for store in stores:
        with store.read() as snapshot:
            assert dict(snapshot.counts("facts")) == {"notes": (2, 2)}
        store.close()


def test_vectors_of_any_collection_change_their_form(tmp_path):
    index, store = VectorIndex("auto", exact_up_to=20), SqliteStore(tmp_path / "klaw.db")
    store.enlist("sqlite-vec", index)
    chunks = crowd(30)
    for part in (chunks[:20], chunks[20:]):
        with store.write() as transaction:
            if part[0].key == 1:
                index.reset(transaction.resource, "facts", SPACE)
            index.add(transaction.resource, "facts", part, unit_vectors(part))
        with store.read() as snapshot:
            assert ("c5_facts_vec" in tables(snapshot.resource)) == (part[0].key == 1)
            query = Query("", "facts", unit_vector(part[0].chunk.text))
            assert index.search(snapshot.resource, query, 1)[0].key == part[0].key
            assert list(index.check(snapshot.resource, "facts", SPACE)) == []
    store.close()


def test_a_database_of_an_older_version_lists_its_collections(tmp_path):
    path = tmp_path / "klaw.db"
    store = SqliteStore(path)
    put(store, make_document("notes/a.md", "one"))
    with store.write() as transaction:
        transaction.delete("memory", "notes/a.md")
    store.close()
    with apsw.Connection(str(path)) as old:
        old.execute("DROP TABLE collections; DELETE FROM klaw_migrations WHERE name = '0007-collections'")
    old.close()
    store = SqliteStore(path)
    with store.read() as snapshot:
        assert list(snapshot.collections()) == ["memory"]
    store.close()
