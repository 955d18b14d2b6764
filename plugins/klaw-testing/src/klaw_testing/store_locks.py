"""The laws of locks, a part of ``StoreContract``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from klaw_core import Store, StoreError
from klaw_testing.store_cache import put
from klaw_testing.store_collections import InjectedError
from klaw_testing.values import make_document

_TIMEOUT_SECONDS = 30.0  # for another thread


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
