"""Batches come back in order, are computed while further ones are made, and are dropped when a call is stopped."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_models.onnx import compute_batches, usable_processors


@given(st.lists(st.integers(), max_size=20), st.integers(1, 4))
def test_results_have_the_order_of_the_batches(batches: list[int], threads: int) -> None:
    assert compute_batches(str, iter(batches), threads) == [str(batch) for batch in batches]


@pytest.mark.parametrize(("batches", "threads"), [([1], 4), ([1, 2, 3], 1)], ids=["one batch", "one thread"])
def test_a_single_batch_is_computed_in_the_calling_thread(batches: list[int], threads: int) -> None:
    used = compute_batches(lambda _: threading.current_thread(), batches, threads)
    assert set(used) == {threading.current_thread()}


def test_as_many_batches_as_threads_are_computed_at_once() -> None:
    together = threading.Barrier(3)
    assert len(compute_batches(lambda _: together.wait(300), range(3), 3)) == 3


def test_the_next_batch_is_made_while_the_first_is_computed() -> None:
    asked = threading.Event()

    def batches() -> Iterator[int]:
        yield from (1, 2)
        assert asked.wait(300), "nothing is computed before every batch is made"
        yield 3

    def compute(batch: int) -> int:
        asked.set()
        return batch

    assert compute_batches(compute, batches(), 2) == [1, 2, 3]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError("no more")], ids=repr)
def test_after_a_stop_no_further_batch_starts(stop: BaseException) -> None:
    asked, released = threading.Event(), threading.Event()
    computed: list[int] = []

    def compute(batch: int) -> None:
        asked.set()
        assert released.wait(300)
        computed.append(batch)

    def batches() -> Iterator[int]:
        yield from range(100)
        assert asked.wait(300)
        released.set()
        raise stop

    with pytest.raises(type(stop)):
        compute_batches(compute, batches(), 2)
    assert len(computed) < 100
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("klaw-onnx")]


def test_after_an_error_no_further_batch_starts() -> None:
    computed: list[int] = []

    def compute(batch: int) -> None:
        computed.append(batch)
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        compute_batches(compute, range(5), 1)
    assert computed == [0]


def test_the_affinity_of_the_process_limits_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7}, raising=False)
    assert usable_processors() == 3


@pytest.mark.parametrize(("count", "expected"), [(6, 6), (None, 1)])
def test_without_an_affinity_all_processors_are_used(
    monkeypatch: pytest.MonkeyPatch, count: int | None, expected: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert usable_processors() == expected
