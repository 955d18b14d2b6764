"""The laws of concurrent writers and of lost connections, a part of ``StoreContract``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from attrs import evolve

from klaw_core import Document, DocumentRecord, Replacement, RetryableStoreError, Store, Transaction
from klaw_testing.report import lacks
from klaw_testing.store_cache import C, put
from klaw_testing.store_machine import dump
from klaw_testing.values import cut_lines, make_document

WRITERS = 4
_ROUNDS = 6


class WriterLaws:
    """The laws of concurrent writers; the subclass defines the fixture ``store``."""

    @pytest.fixture
    def writers(self, store: Store[Any]) -> Sequence[Store[Any]]:
        """Return one store for each writer, all with the same data."""
        return [store] * WRITERS

    def lose_connections(self, store: Store[Any]) -> None:
        """Close the store's connections to its data from outside. By default the test is skipped."""
        del store
        lacks("connections that can be lost")

    def test_concurrent_writers_of_different_documents_lose_none(
        self, store: Store[Any], writers: Sequence[Store[Any]]
    ) -> None:
        def write(number: int, own: Store[Any]) -> list[int]:
            keys = []
            for turn in range(_ROUNDS):
                document = make_document(f"notes/{number}-{turn}.md", f"one\ntwo {number} {turn}")
                change = _written(own, partial(_replace, document, None))
                keys += [stored.key for stored in change.added]
            return keys

        keys = [key for some in _in_parallel(writers, write) for key in some]
        with store.read() as snapshot:
            assert snapshot.counts(C) == {"notes": (WRITERS * _ROUNDS, 2 * WRITERS * _ROUNDS)}
            assert snapshot.keys(C).tolist() == sorted(keys)

    def test_concurrent_writers_of_one_document_lose_no_change(
        self, store: Store[Any], writers: Sequence[Store[Any]]
    ) -> None:
        path = "notes/a.md"

        def write(number: int, own: Store[Any]) -> None:
            for turn in range(_ROUNDS):
                while True:
                    with own.read() as snapshot:
                        seen = {path: found} if (found := snapshot.record(C, "notes", path)) else {}
                        lines = [stored.chunk.text for stored in snapshot.outline(C, path)]
                    document = make_document(path, "\n".join((*lines, f"{number} {turn}")))
                    change = _written(own, partial(_replace, document, seen))
                    if not change.refused:
                        break

        _in_parallel(writers, write)
        with store.read() as snapshot:
            lines = [stored.chunk.text for stored in snapshot.outline(C, path)]
        assert sorted(lines) == sorted(f"{number} {turn}" for number in range(WRITERS) for turn in range(_ROUNDS))

    def test_a_concurrently_deleted_and_written_document_is_complete_or_absent(
        self, store: Store[Any], writers: Sequence[Store[Any]]
    ) -> None:
        document = make_document("notes/a.md", "one\ntwo\nthree")

        def write(number: int, own: Store[Any]) -> None:
            changed = evolve(document, text=f"{document.text}\n{number}")
            for turn in range(_ROUNDS):
                if (number + turn) % 2:
                    _written(own, lambda transaction: transaction.delete(C, document.path))
                else:
                    _written(own, partial(_replace, changed, None))

        _in_parallel(writers, write)
        with store.read() as snapshot:
            lines = [stored.chunk.text for stored in snapshot.outline(C, document.path)]
            assert lines == [] or (len(lines), lines[:3]) == (4, ["one", "two", "three"])
            assert len(snapshot.keys(C)) == len(lines)
            assert len(snapshot.manifest(C, "notes")) == bool(lines)

    def test_a_lost_connection_rolls_back(self, store: Store[Any]) -> None:
        put(store, make_document("notes/a.md", "one"))
        with store.read() as snapshot:
            before = dump(snapshot)
        new = [make_document(f"notes/{name}.md", "two\nthree") for name in "bc"]
        with pytest.raises(RetryableStoreError), store.write() as transaction:  # noqa: PT012  # the block is the subject
            transaction.replace(C, new[0], cut_lines(new[0]))
            self.lose_connections(store)
            transaction.replace(C, new[1], cut_lines(new[1]))
        with store.read() as snapshot:
            assert dump(snapshot) == before
        put(store, *new)
        with store.read() as snapshot:
            assert len(snapshot.manifest(C, "notes")) == 3


def _replace(
    document: Document, expected: Mapping[str, DocumentRecord] | None, transaction: Transaction[Any]
) -> Replacement:
    return transaction.replace(C, document, cut_lines(document), expected=expected)


def _written(store: Store[Any], work: Callable[[Transaction[Any]], Any]) -> Any:
    """Run ``work`` in a transaction and return its result; retry as long as another writer interrupts it."""
    while True:
        try:
            with store.write() as transaction:
                return work(transaction)
        except RetryableStoreError:
            continue


def _in_parallel(stores: Sequence[Store[Any]], write: Callable[[int, Store[Any]], Any]) -> list[Any]:
    """Run one writer per store, all at the same time; return their results."""
    gate = threading.Barrier(len(stores))

    def run(number: int) -> Any:
        gate.wait()
        return write(number, stores[number])

    with ThreadPoolExecutor(len(stores)) as pool:
        return list(pool.map(run, range(len(stores))))
