"""Defects to put into the process that dies: a test that cannot see them is worthless."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

from klaw_core import Memory, StoreError
from klaw_core.indexing.flow import Indexer
from klaw_core.values.runs import IndexReport
from klaw_journals.record_journal import FileJournal
from klaw_store_sqlitevec import store
from klaw_store_sqlitevec.connections import Connections
from klaw_store_sqlitevec.transaction import SqliteTransaction

#: By name.
BUGS: dict[str, Callable[[], None]] = {}


def _bug(function: Callable[[], None]) -> Callable[[], None]:
    BUGS[function.__name__.replace("_", "-")] = function
    return function


@_bug
def acknowledge_before_commit() -> None:
    """What is saved is written when the memory is closed."""
    keep, add, close = FileJournal.add, Indexer.put, Memory.close
    waiting: list[Callable[[], object]] = []
    FileJournal.add = lambda *arguments: waiting.append(lambda: keep(*arguments)) or frozenset()
    Indexer.put = lambda *arguments: waiting.append(lambda: add(*arguments)) or IndexReport()

    def close_late(memory: Memory) -> None:
        while waiting:
            with suppress(StoreError):  # of another memory, which was closed
                waiting.pop(0)()
        close(memory)

    Memory.close = close_late


@_bug
def missing_transaction() -> None:
    """Every statement is a transaction of its own."""

    @contextmanager
    def no_transaction(self: Connections) -> Iterator[object]:
        self._writer = self._writer or self._open()
        yield self._writer

    Connections._transaction = no_transaction


@_bug
def two_transactions() -> None:
    """The rows are replaced in one transaction, the indexes follow in another."""
    replace = SqliteTransaction.replace

    def replace_and_commit(self: SqliteTransaction, *arguments: object, **options: object) -> object:
        change = replace(self, *arguments, **options)
        self.resource.execute("COMMIT")
        self.resource.execute("BEGIN IMMEDIATE")
        return change

    SqliteTransaction.replace = replace_and_commit


@_bug
def forget_without_journal() -> None:
    """The journal keeps what was forgotten."""
    FileJournal.forget = lambda _self, ids: len(ids)


@_bug
def forget_without_purge() -> None:
    """What was forgotten goes from the rows, and stays in the write-ahead log."""
    Connections.erase = lambda _self, **_options: None


@_bug
def swap_in_pieces() -> None:
    """The new index takes the old one's place table by table, each in a transaction of its own."""

    def become(self: store.SqliteStore, other: store.SqliteStore) -> None:
        with self._connections.overwriter() as target:
            target.execute("PRAGMA foreign_keys = off")
            target.execute("ATTACH ? AS other", (other.location,))
            sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            for (table,) in target.execute(f"{sql} AND name NOT LIKE 'sqlite%'").fetchall():
                target.execute(f"DELETE FROM main.{table}")
                target.execute(f"INSERT INTO main.{table} SELECT * FROM other.{table}")
            target.execute("DETACH other")

    store.SqliteStore._replace_content = become


@_bug
def commits_not_flushed() -> None:
    """SQLite flushes its log when it is copied back, and not at each commit."""
    prepare = store.SqliteStore._prepare

    def prepare_and_relax(self: store.SqliteStore, connection: apsw.Connection) -> None:
        prepare(self, connection)
        connection.pragma("synchronous", "normal")

    store.SqliteStore._prepare = prepare_and_relax


@_bug
def journal_not_flushed() -> None:
    """What is appended to a journal is left to the system to write."""
    os.fdatasync = lambda _descriptor: None
