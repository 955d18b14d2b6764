"""The laws of an extension's own tables and of locks, a part of ``StoreContract``.

A subclass defines three methods that create, fill and read a table of the extension ``notes-kept``. The name of the
table must follow the store's rules for tables of extensions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from klaw_core import Migration, Store, StoreError
from klaw_testing.store_cache import put
from klaw_testing.store_collections import InjectedError
from klaw_testing.values import make_document

OWNER = "notes-kept"

_TIMEOUT_SECONDS = 30.0  # for another thread


class ExtensionLaws:
    """The laws of an extension's tables; the subclass defines the fixture ``store`` and the methods below."""

    def make_table(self, resource: Any) -> None:
        """Create a table of the extension."""
        raise NotImplementedError

    def add_row(self, resource: Any, text: str) -> None:
        """Add a row to the table, in the current transaction."""
        raise NotImplementedError

    def rows(self, resource: Any) -> list[str]:
        """Return the texts of the table's rows, in the order in which they were added."""
        raise NotImplementedError

    @pytest.fixture
    def extended(self, store: Store[Any]) -> Store[Any]:
        """Return the store with a table of the extension that has one row."""
        store.migrate(OWNER, [Migration("0001", self.make_table)])
        self.keep(store, "one")
        return store

    def keep(self, store: Store[Any], text: str) -> None:
        with store.write() as transaction:
            self.add_row(transaction.resource, text)

    def kept(self, store: Store[Any]) -> list[str]:
        with store.read() as snapshot:
            return self.rows(snapshot.resource)

    def test_each_migration_of_an_extension_is_applied_once(self, extended: Store[Any]) -> None:
        steps = [Migration("0001", self.make_table), Migration("0002", lambda resource: self.add_row(resource, "two"))]
        for _ in range(2):
            extended.migrate(OWNER, steps)
            assert self.kept(extended) == ["one", "two"]

    def test_a_failed_migration_changes_nothing(self, extended: Store[Any]) -> None:
        def fail(resource: Any) -> None:
            self.add_row(resource, "three")
            raise InjectedError

        first = Migration("0001", self.make_table)
        added = Migration[Any]("0002", lambda resource: self.add_row(resource, "two"))
        with pytest.raises(InjectedError):
            extended.migrate(OWNER, [first, added, Migration("0003", fail)])
        assert self.kept(extended) == ["one"]
        extended.migrate(OWNER, [first, added])
        assert self.kept(extended) == ["one", "two"]

    def test_rows_of_an_extension_are_part_of_the_transaction(self, extended: Store[Any]) -> None:
        with pytest.raises(InjectedError), extended.write() as transaction:  # noqa: PT012  # the block is the subject
            self.add_row(transaction.resource, "two")
            assert self.rows(transaction.resource) == ["one", "two"]
            raise InjectedError
        with extended.read() as snapshot:
            self.keep(extended, "three")
            assert self.rows(snapshot.resource) == ["one"]
        assert self.kept(extended) == ["one", "three"]

    def test_a_rebuild_keeps_the_rows_of_extensions(self, extended: Store[Any]) -> None:
        put(extended, make_document("notes/a.md", "old"))
        with extended.rebuild() as fresh:
            assert self.kept(fresh) == ["one"]
            fresh.migrate(OWNER, [Migration("0001", self.make_table)])
            self.keep(fresh, "two")
            assert self.kept(extended) == ["one"]
        assert self.kept(extended) == ["one", "two"]
        extended.migrate(OWNER, [Migration("0001", self.make_table)])
        self.keep(extended, "three")
        assert self.kept(extended) == ["one", "two", "three"]

    def test_a_rebuild_after_a_failed_one_starts_with_the_current_rows(self, extended: Store[Any]) -> None:
        with pytest.raises(InjectedError), extended.rebuild() as fresh:  # noqa: PT012  # the block is the subject
            self.keep(fresh, "lost")
            raise InjectedError
        self.keep(extended, "two")
        with extended.rebuild() as fresh:
            assert self.kept(fresh) == ["one", "two"]
        assert self.kept(extended) == ["one", "two"]


class LockLaws:
    """The laws of locks; the subclass defines the fixture ``store``."""

    def test_a_lock_excludes_others_with_the_same_name(self, store: Store[Any]) -> None:
        self.assert_excludes(store, store)

    def assert_excludes(self, store: Store[Any], other: Store[Any]) -> None:
        """Check that ``other`` waits for a lock that ``store`` holds."""
        with store.lock("facts"):
            with _waiting(other, "facts") as entered:
                assert not entered.is_set()
            with other.lock("figures"), other.lock("facts-2"):
                assert not entered.is_set(), "other names are other locks"
        assert entered.wait(_TIMEOUT_SECONDS)

    def test_a_lock_is_released_after_an_exception(self, store: Store[Any]) -> None:
        waits: list[str] = []
        for name in ("facts", "embedding", "embedding-moving"):
            with pytest.raises(InjectedError), store.lock(name, on_wait=lambda: waits.append("again")):
                raise InjectedError
            with store.lock(name, on_wait=lambda: waits.append("again")):
                pass
        assert waits == []

    def test_the_two_embedding_locks_are_independent(self, store: Store[Any]) -> None:
        waits: list[str] = []
        with store.lock("embedding"), store.lock("embedding-moving", on_wait=lambda: waits.append("moving")):
            assert waits == []

    def test_a_lock_does_not_block_writers(self, store: Store[Any]) -> None:
        with store.lock("facts"):
            put(store, make_document("notes/a.md", "one"))
            with store.read() as snapshot:
                assert list(snapshot.manifest("memory", "notes")) == ["notes/a.md"]

    @pytest.mark.parametrize("name", ["", "../facts", "facts/a", "Facts", "a b", ".", "a_b", "ф"])
    def test_an_invalid_lock_name_is_rejected(self, store: Store[Any], name: str) -> None:
        with pytest.raises(StoreError), store.lock(name):
            pass


@contextmanager
def _waiting(store: Store[Any], name: str) -> Iterator[threading.Event]:
    """Let another thread wait for the lock; yield an event that is set when that thread gets the lock."""
    waits, entered = threading.Event(), threading.Event()

    def hold() -> None:
        with store.lock(name, on_wait=waits.set):
            entered.set()

    threading.Thread(target=hold, daemon=True).start()
    assert waits.wait(_TIMEOUT_SECONDS), "the other thread does not wait for the lock"
    yield entered
