"""``distributed = "citus"``: the kit passes, and every statement that it sends is one that Citus sends to one worker.

With ``KLAW_TEST_CITUS_DSN``, an ordinary role's connection string, the kit runs on that cluster. Without it, it runs on
a server that notes which tables Klaw distributes.
"""

import importlib
import os
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from attrs import evolve
from postgres_store import (
    ServerLogsTests,
    ServerMessagesTests,
    ServerRecordsTests,
    ServerStoreTests,
    ServerTextsTests,
    run_store_machine,
)

from klaw_core import Agents, LiveComponent, Memory, Query, StoreError, VectorSpace, load_config
from klaw_core.plugins.discover import discover
from klaw_store_postgres.connections import Connections
from klaw_store_postgres.options import PgVectorOptions, PostgresOptions
from klaw_store_postgres.schema import TABLES
from klaw_store_postgres.store import PostgresStore
from klaw_store_postgres.vectors import VectorIndex
from klaw_store_postgres.words.index import WordIndex
from klaw_testing.index import IndexContract, stored, unit_vector, unit_vectors
from klaw_testing.store_isolation import IsolationContract

CLUSTER = os.environ.get("KLAW_TEST_CITUS_DSN", "")
SCHEMA = "klaw_citus"
SHARED = {*TABLES, "vectors", "vector_tables"} - {"migrations", "tenants"}


def rules():
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        return importlib.import_module("citus_rules")
    finally:
        sys.path.pop(0)


def test_a_cluster_runs_the_kit():
    if not CLUSTER:
        pytest.skip("KLAW_TEST_CITUS_DSN names no cluster; the statements were checked by their rules")


@pytest.fixture(scope="module")
def dsn(server):
    """A database of the test server with what Klaw uses of Citus, or the cluster."""
    if CLUSTER:
        yield CLUSTER
        return
    name = f"citus_{uuid4().hex[:8]}"
    with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} OWNER klaw")
    with psycopg.connect(server.superuser_dsn.replace("/klaw?", f"/{name}?"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(rules().STUB)
    yield server.dsn.replace("/klaw?", f"/{name}?")


@pytest.fixture
def options(dsn):
    return PostgresOptions(dsn, schema=SCHEMA, distributed="citus")


@pytest.fixture(autouse=True)
def recorded(monkeypatch):
    """Check each statement of a test by the rules, but those of migrations, which run for all agents."""
    found, exempt, lock = {}, threading.local(), threading.Lock()
    check = rules()

    def note(sql):
        if isinstance(sql, str) and not getattr(exempt, "is_migrating", False) and sql not in found:
            wrong = check.faults(sql, SHARED)
            with lock:
                found[sql] = wrong

    execute, executemany = psycopg.Connection.execute, psycopg.Cursor.executemany
    monkeypatch.setattr(psycopg.Connection, "execute", lambda self, sql, *rest, **more: (
        note(sql), execute(self, sql, *rest, **more))[1])  # fmt: skip
    monkeypatch.setattr(psycopg.Cursor, "executemany", lambda self, sql, *rest, **more: (
        note(sql), executemany(self, sql, *rest, **more))[1])  # fmt: skip
    for name in ("_migrate", "_check_tables", "_repair"):
        monkeypatch.setattr(PostgresStore, name, exempted(getattr(PostgresStore, name), exempt))
    yield found
    assert {sql: wrong for sql, wrong in found.items() if wrong} == {}


def exempted(method, exempt):
    def run(*arguments):
        exempt.is_migrating = True
        try:
            done = method(*arguments)
            return list(done) if hasattr(done, "__next__") else done
        finally:
            exempt.is_migrating = False

    return run


class TestStore(ServerStoreTests):
    pass


class TestMessages(ServerMessagesTests):
    pass


class TestRecords(ServerRecordsTests):
    pass


class TestLogs(ServerLogsTests):
    pass


class TestTexts(ServerTextsTests):
    pass


class TestIsolation(IsolationContract):
    @pytest.fixture
    def open_for(self, options):
        names = {name: f"{name}-{uuid4().hex}" for name in ("victim", "thief")}
        return lambda name: PostgresStore(options, agent=names[name])


def test_it_does_what_the_store_in_memory_does(make_opener):
    run_store_machine(make_opener, 10)


class Undone(Exception):  # noqa: N818  # no error: it ends a transaction without a commit
    pass


class OnCluster(IndexContract):
    """A session of the store, inside a transaction of which a part is undone."""

    @pytest.fixture
    def connection(self, index, options, agent):
        store = PostgresStore(options, agent=agent)
        store.enlist("pgwords" if isinstance(index, WordIndex) else "pgvector", index)
        with suppress(Undone), store._session("BEGIN") as session:
            yield session
            raise Undone
        store.close()

    @pytest.fixture
    def migrated(self, connection):
        return connection

    def begin(self, resource):
        resource.run("SAVEPOINT undone")

    def rollback(self, resource):
        resource.run("ROLLBACK TO SAVEPOINT undone")


class TestVectors(OnCluster):
    @pytest.fixture
    def index(self):
        return VectorIndex()


class TestVectorsByHnsw(OnCluster):
    @pytest.fixture
    def index(self):
        return VectorIndex(PgVectorOptions(exact_up_to=0))


class TestWords(OnCluster):
    @pytest.fixture
    def index(self):
        return WordIndex()


def test_every_table_with_a_tenant_is_distributed_by_it(options, agent):
    """Also the table of a collection with an index; every unique and foreign key has the tenant."""
    store, index = PostgresStore(options, agent=agent), VectorIndex(PgVectorOptions(exact_up_to=0))
    store.enlist("pgvector", index)
    with store.write() as transaction:
        session = transaction.resource
        index.reset(session, "memory", VectorSpace("test", "1", len(unit_vector("a"))))
        index.add(session, "memory", [stored(1, "text")], unit_vectors([stored(1, "text")]))
        own = index._own_table(session, "memory")
        psycopg.Cursor(session.connection).execute(rules().TABLES)
        wrong = psycopg.Cursor(session.connection).execute(rules().TABLES).fetchall()
        listed = (
            psycopg.Cursor(session.connection).execute("SELECT logicalrelid::text FROM pg_dist_partition").fetchall()
        )
    assert wrong == []
    assert {own, *SHARED} <= {name.rpartition(".")[2] for (name,) in listed}
    with store.read() as snapshot:
        assert [hit.key for hit in index.search(snapshot.resource, Query("", vector=unit_vector("text")), 3)] == [1]
    assert store.statistics()["database_bytes"] > 0
    store.close()


def test_a_transaction_begins_by_sending_its_settings_to_the_workers(open_store, monkeypatch):
    store, begun = open_store(), []
    transaction = Connections.transaction

    @contextmanager
    def noted(connections, *statements):
        begun.append(statements)
        with transaction(connections, *statements) as given:
            yield given

    monkeypatch.setattr(Connections, "transaction", noted)
    with store.read(), store.write():
        pass
    assert store.journals.names() == []
    assert len(begun) == 3
    assert [rules().beginning_faults(statements) for statements in begun] == [[], [], []]


@pytest.mark.skipif(bool(CLUSTER), reason="the tables of a cluster are not made without Citus")
def test_tables_with_rows_are_distributed_when_the_option_is_set_and_stay_known(dsn, agent, recorded):
    plain = PostgresOptions(dsn, schema=f"klaw_{uuid4().hex[:8]}")
    store = PostgresStore(plain, agent=agent)
    store.journals.records("saved").append([{"id": "a", "text": "kept"}])
    index = VectorIndex(PgVectorOptions(exact_up_to=0))
    store.enlist("pgvector", index)
    with store.write() as transaction:
        index.reset(transaction.resource, "memory", VectorSpace("test", "1", len(unit_vector("a"))))
        index.add(transaction.resource, "memory", [stored(1, "text")], unit_vectors([stored(1, "text")]))
        own = index._own_table(transaction.resource, "memory")
        earlier = f"ALTER TABLE {own} DROP CONSTRAINT {own}_pkey, ADD PRIMARY KEY (key)"
        psycopg.Cursor(transaction.resource.connection).execute(earlier)
    assert not store._connections.one_by_one
    store.close()
    recorded.clear()
    for options in (PostgresOptions(dsn, schema=plain.schema, distributed="citus"), plain):
        store = PostgresStore(options, agent=agent)
        assert store._connections.one_by_one, "without the setting too: searches would find nothing otherwise"
        assert store.journals.records("saved").get(["a"])["a"]["text"] == "kept"
        with store.read() as snapshot:
            assert psycopg.Cursor(snapshot.resource.connection).execute(rules().TABLES).fetchall() == []
        store.close()


def test_a_cluster_and_a_replica_are_not_combined(options):
    """The log of the coordinator does not say what the replicas of the workers have."""
    with pytest.raises(StoreError, match="cannot be combined"):
        PostgresStore(evolve(options, read_dsn=options.dsn), agent="ada")


def test_a_server_without_citus_is_named(server, agent):
    with pytest.raises(StoreError, match="has no Citus") as caught:
        PostgresStore(PostgresOptions(server.dsn, distributed="citus"), agent=agent)
    assert "CREATE EXTENSION citus" in caught.value.hint


def test_a_worker_that_does_not_answer_is_a_reason_to_try_again(open_store):
    store = open_store()
    with pytest.raises(StoreError, match="a node that does not answer") as caught, store.write() as transaction:
        transaction.resource.run("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '08006', MESSAGE = 'gone'; END $$")
    assert "worker" in caught.value.hint


class Lengths:
    """An embedder whose vectors depend on the length of a text."""

    max_tokens, texts_per_call = 1_000_000, 64
    space = VectorSpace("lengths", "1", 4)

    def embed_documents(self, texts, /):
        import numpy as np

        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        import numpy as np

        vector = np.array([len(text), 1, 2, 3], np.float32)
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return [len(text.split()) for text in texts]


def test_a_memory_is_migrated_to_a_cluster_and_used_there(options, tmp_path):
    from klaw_store_postgres.command import config_of
    from klaw_store_postgres.migrating import migrate

    registry = discover().whole.with_live([LiveComponent("embedder", "lengths", Lengths())])
    environment = {"KLAW_CONFIG": "/dev/null", "KLAW_EMBEDDER": "lengths"}
    kept = {"type": "postgres", "dsn": options.dsn, "schema": f"klaw_{uuid4().hex[:8]}", "distributed": "citus"}
    config = load_config(data_dir=tmp_path, environment=environment, overrides={"memory": {"store": kept}})
    source = config_of(config, f"sqlite://{tmp_path}/klaw.db", is_source=True)
    with Memory.open(source, registry=registry) as memory:
        memory.save("The ferry leaves at seven.")
    with ExitStack() as stack:
        first = stack.enter_context(Memory.open(source, registry=registry))
        second = stack.enter_context(Memory.open(config_of(config, options.dsn), registry=registry))
        report = migrate(first, second)
        assert report.vectors == 1
        assert not report.differing
        assert [found.content for found in second.search("ferry")] == ["The ferry leaves at seven."]
        second.save("A lantern hangs at the pier.")
        second.reindex()
        assert len(second.search("lantern")) > 0
        assert [finding for finding in second.doctor().findings if finding.severity == "error"] == []
    assert "distributed" not in config_of(config, options.dsn, is_source=True).store.options


def test_agents_of_a_cluster_are_kept_apart(options, tmp_path):
    tables = {"store": {"type": "postgres", "dsn": options.dsn, "schema": SCHEMA, "distributed": "citus"}}
    tables["embedding"] = {"type": "none"}
    config = load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": "/dev/null"}, overrides={"memory": tables})
    with Agents(config, registry=discover()) as agents:
        ada, bob = (agents.memory(f"{name}-{uuid4().hex}") for name in ("ada", "bob"))
        saved = ada.save("the lantern is at the pier")
        assert list(bob.search("lantern")) == []
        assert ada.get(saved.path).content == "the lantern is at the pier"


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("SELECT key FROM chunks WHERE generation = %s", "chunks without a tenant"),
        ("DELETE FROM vectors_7_12 WHERE key = %s", "vectors_7_12 without a tenant"),
        ("INSERT INTO logs (folder, tenant) VALUES (%s, %s)", "rows of logs without a tenant"),
        ("INSERT INTO logs (tenant) VALUES (%s) ON CONFLICT (tenant) DO UPDATE SET x = nextval('y')", "DO UPDATE"),
        ("INSERT INTO logs (tenant, folder) SELECT %s, new.* FROM unnest(%s::text[]) AS new", "becomes a COPY"),
        ("COPY chunks (tenant) FROM STDIN", "COPY"),
        ("SET klaw.tenant = '7'", "does not reach the workers"),
        ("SELECT set_config('klaw.tenant', '7', true)", "does not reach the workers"),
        ("SET LOCAL a.b = '1'; SET LOCAL a.c = '2'", "several statements"),
    ],
)
def test_the_rules_find_what_citus_refuses(sql, wrong):
    assert any(wrong in each for each in rules().faults(sql, SHARED))


def test_the_rules_leave_what_citus_accepts():
    for sql in (
        "SELECT key FROM chunks WHERE tenant = %s AND generation = %s",
        "INSERT INTO logs (tenant, folder) SELECT %s, new.* FROM unnest(%s::text[]) AS new RETURNING tenant",
        "SET LOCAL klaw.tenant = '7'",
        "SELECT generation FROM tenants WHERE id = 7",
    ):
        assert rules().faults(sql, SHARED) == [], sql
