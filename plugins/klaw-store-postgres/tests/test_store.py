"""The store keeps the contracts of stores, of messages and of journals."""

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

from klaw_core import Condition, Filters, StoreLockedError
from klaw_journals import JournalingStore
from klaw_testing.values import cut_lines, make_document


class TestPostgresStore(ServerStoreTests):
    def dsn_to_cut(self, store):
        return store._options.dsn.replace("klaw@", "postgres@", 1)


class TestPostgresMessages(ServerMessagesTests):
    pass


def test_it_does_what_the_store_in_memory_does(make_opener):
    run_store_machine(make_opener, 20)


class TestJournals:
    @pytest.fixture
    def journals(self, open_store):
        store = open_store()
        assert isinstance(store, JournalingStore)
        return store.journals

    class TestRecords(ServerRecordsTests):
        pass

    class TestLogs(ServerLogsTests):
        pass

    class TestTexts(ServerTextsTests):
        pass


def test_an_error_of_a_connection_names_the_reason_in_one_line():
    from klaw_store_postgres.options import PostgresOptions
    from klaw_store_postgres.store import PostgresStore

    with pytest.raises(StoreLockedError, match="Connection refused") as caught:  # klaw serve answers 503
        PostgresStore(PostgresOptions("postgresql://klaw:hidden@127.0.0.1:1/klaw", timeout_seconds=5), agent="a")
    assert "cannot connect" in caught.value.message
    assert not {"\t", "\n"} & set(caught.value.message)
    assert "hidden" not in str(caught.value)


def test_strings_are_found_as_numbers_and_without_case_in_the_data_of_an_older_version(options, monkeypatch):
    """The data of every agent are converted by whoever opens the store first, and stay apart."""
    from klaw_store_postgres import store as module
    from klaw_store_postgres.store import PostgresStore

    own = evolve(options, schema="earlier_numbers")
    metadata = {"postal": "02700", "tags": ("2024", "JS"), "year": 7}
    with monkeypatch.context() as patch:
        patch.setattr(module, "MIGRATIONS", module.MIGRATIONS[:6])
        for agent in ("a", "b"):
            store = PostgresStore(own, agent=agent)
            with store.write() as transaction:
                document = make_document(f"notes/{agent}.md", "one", metadata=metadata)
                transaction.replace("memory", document, cut_lines(document))
                old = "DELETE FROM document_metadata WHERE number IS NOT NULL AND key != 'year'"
                assert transaction.resource.run(old) == 2
                old = "UPDATE document_metadata SET value = 'JS', digest = 0 WHERE value = 'js'"
                assert transaction.resource.run(old) == 1
            store.close()
    for agent in ("a", "b"):
        store = PostgresStore(own, agent=agent)
        with store.read() as snapshot:
            for key, value in (("postal", 2700), ("postal", "02700"), ("tags", 2024), ("tags", "js"), ("year", 7)):
                filters = Filters(metadata=(Condition(key, "=", value),))
                assert len(snapshot.select("memory", filters).keys()) == 1, (agent, key, value)
            assert snapshot.resource.value("SELECT count(*) FROM document_metadata") == 6
        store.close()
