"""Tables that are missing, changed or damaged: the error names `klaw reindex`, which replaces them."""

import os
import signal
from contextlib import closing
from uuid import uuid4

import numpy as np
import pytest

from klaw_core import (
    DatabaseCorruptError,
    LiveComponent,
    Memory,
    NewDocument,
    RetrievalError,
    StoreCorruptError,
    StoreError,
    VectorSpace,
    load_config,
)
from klaw_store_postgres.options import PostgresOptions
from klaw_store_postgres.schema import TABLES
from klaw_store_postgres.store import PostgresStore
from klaw_testing.values import MOMENT

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def schema(server):
    """A schema of its own, which a test may damage."""
    name = f"klaw_{uuid4().hex[:8]}"
    yield name
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "{name}" CASCADE')


@pytest.fixture
def run(server, schema):
    """Run a statement in the schema as the owner of its tables."""

    def run(sql):
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f'SET search_path = "{schema}"')
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    return run


class Lengths:
    """An embedder whose vectors depend on the length of a text."""

    max_tokens = 1_000_000
    space = VectorSpace("lengths", "1", 4)

    def embed_documents(self, texts, /):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        vector = np.array([1, len(text) % 7, len(text) % 3, len(text) % 2], np.float32)
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return [len(text.split()) for text in texts]


def opener(server, schema, data_dir):
    """Return a function that opens a memory in a schema."""

    def open_memory(**options):
        table = {"type": "postgres", "dsn": server.dsn, "schema": schema}
        overrides = {"memory": {"store": table, "embedding": {"type": "lengths"}}}
        config = load_config(data_dir=data_dir, environment={"KLAW_CONFIG": "/dev/null"}, overrides=overrides)
        return Memory.open(config, components=[LiveComponent("embedder", "lengths", Lengths())], **options)

    return open_memory


def fill(open_memory):
    with open_memory() as memory:
        memory.save("the harbour code is 4711", created_at=MOMENT)
        memory.add([NewDocument(f"doc{number}", f"docword{number} a chart") for number in range(5)])


@pytest.fixture
def open_memory(server, schema, tmp_path):
    return opener(server, schema, tmp_path)


@pytest.fixture
def tables(open_memory, run, schema):
    """Fill a memory; return the names of its tables."""
    fill(open_memory)
    sql = f"SELECT table_name::text FROM information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1"
    return [name for (name,) in run(sql)]


PRIMARY = {"tenants", "journals", "journal_records", "logs", "log_records", "owned_texts", "owned_copies"}


def test_the_list_of_tables_is_complete(tables):
    assert set(tables) == {*TABLES, "vectors", "vector_tables"}
    assert set(tables) > PRIMARY


def repair(open_memory):
    """The errors name a reindex, and after it everything is found."""
    try:
        with open_memory() as memory:
            for use in (memory.index, lambda: memory.search("harbour"), memory.status):
                try:
                    use()
                except StoreError as error:  # some tables are not used here
                    assert error.hint in {"klaw reindex", "klaw doctor"}  # noqa: PT017
                except RetrievalError as error:
                    assert error.hint == "klaw reindex"  # noqa: PT017
            assert any("klaw reindex" in finding.hint for finding in memory.doctor().findings)
    except DatabaseCorruptError as error:
        assert error.hint == "klaw reindex"  # noqa: PT017
    with open_memory(replace_damaged=True) as memory:
        assert "was damaged" in memory.reindex().notices[0]
        assert memory.search("harbour", mode="vector").results
        assert memory.search("harbour", mode="fts").results
        for number in range(5):
            assert memory.search(f"docword{number}").results
        assert [finding for finding in memory.doctor().findings if finding.severity == "error"] == []
        memory.index()
        memory.status()


def test_missing_and_changed_tables_are_replaced_by_a_reindex(open_memory, tables, run):
    for table in ("message_files", "documents", "migrations", "word_segments", "vectors"):
        run(f"DROP TABLE {table} CASCADE")
        repair(open_memory)
    derived = sorted(set(tables) - PRIMARY)
    run(f"DROP TABLE {', '.join(derived)} CASCADE; DROP SEQUENCE chunk_keys, generations CASCADE")
    repair(open_memory)
    run("ALTER TABLE chunks DROP COLUMN content CASCADE; ALTER TABLE word_segments DROP COLUMN keys CASCADE")
    repair(open_memory)


def test_damaged_pages_are_replaced_by_a_reindex(tmp_path):
    """A server of its own, because the pages are damaged while it does not run."""
    from klaw_testing.doubles.postgres import PostgresServer

    server = PostgresServer(durable=True)
    server.start()
    open_memory = opener(server, "klaw", tmp_path)
    try:
        fill(open_memory)
        with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
            names = ("chunks", "documents_created")
            paths = [connection.execute(f"SELECT pg_relation_filepath('klaw.{name}')").fetchone()[0] for name in names]
            connection.execute("CHECKPOINT")
        os.kill(server.pid, signal.SIGKILL)
        for path in paths:
            with (server.directory / path).open("r+b") as file:
                file.write(b"\x07" * 8192)
        server.restart()
        repair(open_memory)
    finally:
        server.stop()


@pytest.mark.usefixtures("tables")
def test_missing_primary_data_is_an_error_and_nothing_is_changed(open_memory, run, schema):
    objects = f"SELECT relname, oid FROM pg_class WHERE relnamespace = '{schema}'::regnamespace ORDER BY 1"
    for table in ("journal_records", "tenants"):
        run(f"DROP TABLE {table} CASCADE")
        before = run(objects)
        with pytest.raises(StoreCorruptError, match=table) as caught, open_memory(replace_damaged=True) as memory:
            memory.reindex()
        assert caught.value.hint == "restore a backup of the server"
        assert run(objects) == before


def test_what_was_made_for_tables_of_extensions_is_removed(server, schema, run):
    """Earlier versions kept a record of tables of extensions, which no extension had."""
    options = PostgresOptions(server.dsn, schema=schema)
    PostgresStore(options).close()
    made = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
    new = sorted(run(made))
    run("CREATE TABLE extension_migrations (tenant integer, generation integer, owner text, name text)")
    run("ALTER TABLE tenants ADD COLUMN extended boolean NOT NULL DEFAULT false")
    run("DELETE FROM migrations WHERE name = '0008-no-tables-of-extensions'")
    assert sorted(run(made)) != new
    with closing(PostgresStore(options)) as store:
        assert sorted(run(made)) == new
        assert list(store.check()) == []


@pytest.mark.parametrize("writes", ["tenant = 0", "true"])
def test_doctor_finds_a_server_that_hides_what_was_just_written(server, schema, run, writes):
    """As a cluster does that does not get the settings: it refuses to write, or it writes, and shows nothing."""
    with closing(PostgresStore(PostgresOptions(server.dsn, schema=schema), agent="ada")) as store:
        assert list(store.check()) == []
        run(f"ALTER POLICY own ON collections USING (tenant = 0) WITH CHECK ({writes})")
        (finding,) = store.check()
    assert (finding.check, finding.severity) == ("visibility", "error")
    assert "searches find nothing" in finding.what
    assert run("SELECT COUNT(*) FROM collections") == [(0,)]


@pytest.fixture
def others(server):
    """Tables of another program in ``public``, owned by the same role, with the names of all tables of Klaw."""
    names = sorted({*TABLES, "vectors", "vector_tables", "extension_migrations"})
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE TABLE public.{name} AS SELECT 'of another program' AS content")

        def content():
            rows = [connection.execute(f"SELECT * FROM public.{name}").fetchall() for name in names]
            return {row for each in rows for row in each}, len(rows)

        yield content
        for name in names:
            connection.execute(f"DROP TABLE IF EXISTS public.{name}")


UNTOUCHED = {("of another program",)}, len(TABLES) + 3


def test_tables_of_another_program_in_public_are_not_used(others, tables, open_memory):
    """Tables are made in Klaw's schema although a statement without a schema would find those of ``public``."""
    assert set(tables) == {*TABLES, "vectors", "vector_tables"}
    with open_memory() as memory:
        assert memory.search("harbour code")
        assert [finding.what for finding in memory.doctor().findings if finding.check == "integrity"] == []
    assert others() == UNTOUCHED


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("table", sorted({*TABLES, "vectors", "vector_tables"} - PRIMARY - {"migrations"}))
def test_a_missing_table_is_not_replaced_by_that_of_another_program_in_public(others, open_memory, run, table):
    """Neither is it used, nor does the repair drop it."""
    run(f"DROP TABLE {table} CASCADE")
    with pytest.raises(DatabaseCorruptError, match=f"public.{table}") as raised:
        open_memory()
    assert raised.value.hint == "klaw reindex"
    with open_memory(replace_damaged=True) as memory:
        memory.reindex()
        assert memory.search("harbour code")
    assert others() == UNTOUCHED
