"""The contracts of a store on a server, whose tables hold the rows of every agent; ``open_store`` opens one agent's."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from klaw_testing.journal import LogFolderContract, OwnedTextContract, RecordJournalContract
from klaw_testing.laws import scaled
from klaw_testing.messages import MessagesContract
from klaw_testing.store import PersistentStoreContract, StoreMachine


class ServerStoreTests(PersistentStoreContract):
    @pytest.fixture
    def open_store(self, open_store: Any) -> Any:
        return open_store

    def test_an_undamaged_store_has_nothing_to_fix(self, store: Any) -> None:
        list(store.check(fix=True))  # rows that other agents' tests have removed are in the same tables
        super().test_an_undamaged_store_has_nothing_to_fix(store)

    def dsn_to_cut(self, store: Any) -> str:
        """Return the connection string of a role that may end Klaw's connections."""
        return str(store._options.dsn)

    def lose_connections(self, store: Any) -> None:
        with psycopg.connect(self.dsn_to_cut(store), autocommit=True) as connection:
            sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'klaw'"
            psycopg.Cursor(connection).execute(sql)


class ServerMessagesTests(MessagesContract):
    @pytest.fixture
    def open_store(self, open_store: Any) -> Any:
        return open_store


class ServerRecordsTests(RecordJournalContract):
    @pytest.fixture
    def journal(self, open_store: Any) -> Any:
        return open_store().journals.records("kept")


class ServerLogsTests(LogFolderContract):
    @pytest.fixture
    def logs(self, open_store: Any) -> Any:
        return open_store().journals.logs("said")


class ServerTextsTests(OwnedTextContract):
    @pytest.fixture
    def text(self, open_store: Any) -> Any:
        return open_store().journals.text("known")


def run_store_machine(make_opener: Any, examples: int) -> None:
    """Compare a store with the one in memory, in this number of examples."""

    class Machine(StoreMachine):
        pass

    Machine.make_opener = staticmethod(make_opener)
    few = settings(max_examples=scaled(examples), stateful_step_count=20, deadline=None)
    run_state_machine_as_test(Machine, settings=few)
