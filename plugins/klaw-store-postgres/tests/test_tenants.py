"""Nobody sees or changes what is another agent's: tried at every method, and behind the methods' backs."""

from uuid import uuid4

import pytest

from klaw_core import (
    Agents,
    Query,
)
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover
from klaw_testing.index import unit_vectors
from klaw_testing.messages import CHAT, message_dump
from klaw_testing.store import dump
from klaw_testing.store_cache import C, vector
from klaw_testing.store_isolation import HASH, READS, SECRET, SPACE, IsolationContract, fill


class TestIsolation(IsolationContract):
    @pytest.fixture
    def open_for(self, options):
        from klaw_store_postgres.store import PostgresStore

        names = {name: f"{name}-{uuid4().hex}" for name in ("victim", "thief")}
        return lambda name: PostgresStore(options, agent=names[name])


@pytest.fixture
def indexes():
    from klaw_store_postgres.options import PgVectorOptions
    from klaw_store_postgres.vectors import VectorIndex
    from klaw_store_postgres.words.index import WordIndex

    return {
        "pgvector": VectorIndex(),
        "hnsw": VectorIndex(PgVectorOptions(exact_up_to=0)),
        "pgwords": WordIndex(),
    }


@pytest.fixture(params=["pgvector", "hnsw"])
def victim(request, options, indexes):
    """A store that has a row of every kind."""
    from klaw_store_postgres.store import PostgresStore

    store = PostgresStore(options, agent=f"victim-{uuid4().hex}")
    used = {"vectors": indexes[request.param], "words": indexes["pgwords"]}
    store.enlist("pgvector", used["vectors"])
    with store.write() as transaction:
        added = fill(transaction)
        for index in used.values():
            index.reset(transaction.resource, C, SPACE)
            index.add(transaction.resource, C, added, unit_vectors(added))
    journals = store.journals
    journals.records("saved").append([{"id": "a", "text": SECRET}])
    journals.logs("conversations").log(CHAT, "day").append({"text": SECRET})
    with journals.text("core").changing():
        journals.text("core").replace(SECRET)
    store.used = used
    yield store
    store.close()


@pytest.fixture
def thief(options, victim):
    from klaw_store_postgres.store import PostgresStore

    store = PostgresStore(options, agent=f"thief-{uuid4().hex}")
    store.enlist("pgvector", victim.used["vectors"])
    yield store
    store.close()


def everything(store):
    """Return all that a store shows, with its indexes, its cache and its journals."""
    journals = store.journals
    with store.read() as snapshot:
        return {
            "rows": dump(snapshot),
            "indexes": {
                name: (
                    index.keys(snapshot.resource, C).tolist(),
                    index.search(snapshot.resource, Query(SECRET, C, vector(1, 0, 0, 0, 0, 0, 0, 0)), 9),
                )
                for name, index in store.used.items()
            },
            "cached": {key: one.tolist() for key, one in snapshot.cached_vectors(SPACE, [HASH]).items()},
            "messages": message_dump(snapshot.messages),
            "found": snapshot.messages.search(SECRET, 9),
            "records": dict(journals.records("saved").replay().records),
            "log": list(journals.logs("conversations").log(CHAT, "day").read()),
            "text": journals.text("core").read(99),
        }


def test_no_method_shows_the_rows_of_another_agent(victim, thief):
    with victim.read() as snapshot:
        keys = snapshot.keys(C).tolist()
        assert [name for name, read in READS.items() if not read(snapshot, keys)] == ["damaged"]
    with thief.read() as snapshot, thief.write() as transaction:
        for view in (snapshot, transaction):
            assert {name: read(view, keys) for name, read in READS.items() if read(view, keys)} == {}
            for index in victim.used.values():
                assert index.keys(view.resource, C).tolist() == []
                assert not index.search(view.resource, Query(SECRET, C, vector(1, 0, 0, 0, 0, 0, 0, 0)), 9)
    journals = thief.journals
    assert not journals.records("saved").exists
    assert not journals.records("saved").get(["a"])
    assert not journals.logs("conversations").groups()
    assert not list(journals.logs("conversations").log(CHAT, "day").read())
    assert journals.text("core").read(9) is None


def test_no_other_call_reaches_rows_of_another_agent(victim, thief):
    before = everything(victim)
    with victim.read() as snapshot:
        keys = snapshot.keys(C).tolist()
    with thief.write() as transaction:
        for index in victim.used.values():
            index.remove(transaction.resource, C, keys)
            index.reset(transaction.resource, C, SPACE)
    with thief.rebuild():
        pass
    thief.check(fix=True)
    journals = thief.journals
    assert journals.records("saved").forget(["a"]) == 0
    journals.records("saved").append([{"id": "a", "text": "mine"}])
    assert journals.logs("conversations").log(CHAT, "day").remove(lambda _record: True) == 0
    journals.logs("conversations").log(CHAT, "day").delete()
    with journals.text("core").changing():
        journals.text("core").replace("mine")
    assert everything(victim) == before


def test_the_server_itself_hides_rows_from_a_statement_that_names_no_tenant(victim, thief, options):
    import psycopg

    with psycopg.connect(options.dsn, autocommit=True) as connection:
        connection.execute(f"SET search_path = {options.schema}")
        tables = connection.execute(
            """SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class
               WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'migrations'"""
        ).fetchall()
        assert len(tables) > 20
        assert [name for name, is_isolated in tables if not is_isolated] == []
        for setting in ("", str(thief._tenant)):
            connection.execute("SELECT set_config('klaw.tenant', %s, false)", (setting,))
            for name, _ in tables:
                if name != "tenants":
                    sql = f"SELECT COUNT(*) FROM {name} WHERE tenant = {victim._tenant}"
                    assert connection.execute(sql).fetchone() == (0,), name
        assert connection.execute("SELECT COUNT(*) FROM tenants").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO journals (tenant, journal, version) VALUES (%s, 'x', 1)", (victim._tenant,))


def test_agents_of_one_database_are_kept_apart(options, tmp_path):
    tables = {"store": {"type": "postgres", "dsn": options.dsn}, "embedding": {"type": "none"}}
    config = load_config(data_dir=tmp_path, environment={"KLAW_CONFIG": "/dev/null"}, overrides={"memory": tables})
    names = [f"{name}-{uuid4().hex}" for name in ("ada", "bob")]
    with Agents(config, registry=discover()) as agents:
        ada, bob = (agents.memory(name) for name in names)
        saved = ada.save(SECRET)
        assert list(bob.search("lantern")) == []
        bob.save("the boat lies at the quay")
        bob.index()
        bob.reindex()
        assert [found.content for found in ada.search("lantern")] == [SECRET]
        assert ada.get(saved.path).content == SECRET
    with Agents(config, registry=discover()) as agents:
        assert [found.content for found in agents.memory(names[0]).search("lantern")] == [SECRET]
