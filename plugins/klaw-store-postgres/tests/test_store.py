"""The store keeps the contracts of stores, of messages and of journals."""

import pytest
from attrs import evolve
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from klaw_core import Condition, Filters, StoreError
from klaw_journals import JournalingStore
from klaw_testing.journal import LogFolderContract, OwnedTextContract, RecordJournalContract
from klaw_testing.laws import scaled
from klaw_testing.messages import MessagesContract
from klaw_testing.store import PersistentStoreContract, StoreMachine
from klaw_testing.values import cut_lines, make_document


def cut(store):
    """Cut every connection that Klaw has to the server, as its superuser."""
    import psycopg

    dsn = store._options.dsn.replace("klaw@", "postgres@", 1)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'klaw'")


class TestPostgresStore(PersistentStoreContract):
    @pytest.fixture
    def open_store(self, open_store):
        return open_store

    def test_an_undamaged_store_has_nothing_to_fix(self, store):
        list(store.check(fix=True))  # rows that other agents' tests have removed are in the same tables
        super().test_an_undamaged_store_has_nothing_to_fix(store)

    def lose_connections(self, store):
        cut(store)


class TestPostgresMessages(MessagesContract):
    @pytest.fixture
    def open_store(self, open_store):
        return open_store


def test_it_does_what_the_store_in_memory_does(make_opener):
    class Machine(StoreMachine):
        pass

    Machine.make_opener = staticmethod(make_opener)
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=scaled(20), stateful_step_count=20, deadline=None)
    )


class TestJournals:
    @pytest.fixture
    def journals(self, open_store):
        store = open_store()
        assert isinstance(store, JournalingStore)
        return store.journals

    class TestRecords(RecordJournalContract):
        @pytest.fixture
        def journal(self, open_store):
            return open_store().journals.records("kept")

    class TestLogs(LogFolderContract):
        @pytest.fixture
        def logs(self, open_store):
            return open_store().journals.logs("said")

    class TestTexts(OwnedTextContract):
        @pytest.fixture
        def text(self, open_store):
            return open_store().journals.text("known")


def test_an_error_of_a_connection_names_the_reason_in_one_line():
    from klaw_store_postgres.options import PostgresOptions
    from klaw_store_postgres.store import PostgresStore

    with pytest.raises(StoreError, match="Connection refused") as caught:
        PostgresStore(PostgresOptions("postgresql://klaw:hidden@127.0.0.1:1/klaw", timeout_seconds=5), agent="a")
    assert "cannot connect" in caught.value.message
    assert not {"\t", "\n"} & set(caught.value.message)
    assert "hidden" not in str(caught.value)


def test_strings_that_are_numbers_are_found_in_the_data_of_an_older_version(options, monkeypatch):
    """The data of every agent are converted by whoever opens the store first, and stay apart."""
    from klaw_store_postgres import store as module
    from klaw_store_postgres.store import PostgresStore

    own = evolve(options, schema="earlier_numbers")
    metadata = {"postal": "02700", "tags": ("2024", "x"), "year": 7}
    with monkeypatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", module.MIGRATIONS[:6])
        for agent in ("a", "b"):
            store = PostgresStore(own, agent=agent)
            with store.write() as transaction:
                document = make_document(f"notes/{agent}.md", "one", metadata=metadata)
                transaction.replace("memory", document, cut_lines(document))
                old = "DELETE FROM document_metadata WHERE number IS NOT NULL AND key != 'year'"
                assert transaction.resource.run(old) == 2
            store.close()
    for agent in ("a", "b"):
        store = PostgresStore(own, agent=agent)
        with store.read() as snapshot:
            for key, value in (("postal", 2700), ("postal", "02700"), ("tags", 2024), ("tags", "x"), ("year", 7)):
                filters = Filters(metadata=(Condition(key, "=", value),))
                assert len(snapshot.select("memory", filters).keys()) == 1, (agent, key, value)
            assert snapshot.resource.value("SELECT count(*) FROM document_metadata") == 6
        store.close()
