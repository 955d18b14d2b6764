"""Compute several batches in parallel, each on one thread.

On a quiet machine this computed 1.2 to 1.3 times as many texts per second as one batch on all threads
(``docs/decisions/0003-model-precision.md``). No thread waits for another one.
"""

from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Callable, Iterable
from itertools import chain, islice
from queue import SimpleQueue
from typing import Generic, TypeVar

from klaw_core import Hold

B = TypeVar("B")
R = TypeVar("R")


def usable_processors() -> int:
    """Return the number of processors that this process may use: its CPU affinity, if the system supports it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compute_batches(compute: Callable[[B], R], batches: Iterable[B], threads: int) -> list[R]:
    """Return ``compute(batch)`` for each batch, in order, with at most ``threads`` batches in parallel.

    The calling thread reads ``batches`` while earlier batches are computed. After an error in either, or Ctrl-C, no
    other batch is started.
    """
    waiting = iter(batches)
    first = list(islice(waiting, 2))
    if threads == 1 or len(first) < 2:  # noqa: PLR2004  # one batch needs no threads
        return [compute(batch) for batch in chain(first, waiting)]
    workers = _Workers(compute, threads)
    with workers:
        count = sum(1 for _ in map(workers.submit, chain(first, waiting)))
        return workers.results(count)


class _Workers(Hold[None], Generic[B, R]):
    """Threads that compute batches until the end of the block; each starts only when it is needed.

    Not those of ``ThreadPoolExecutor``, whose locks an exception in the calling thread could leave locked for ever.
    """

    __slots__ = ("_compute", "_done", "_ended", "_gone", "_left", "_most", "_started", "_submitted", "_todo")

    def __init__(self, compute: Callable[[B], R], most: int) -> None:
        self._compute = compute
        self._most = most
        self._todo: SimpleQueue[tuple[int, B] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[int, R] | BaseException] = SimpleQueue()
        self._left: SimpleQueue[None] = SimpleQueue()  # an item for each thread that has ended
        self._submitted = self._started = self._gone = 0
        self._ended = False

    def take(self) -> None:
        """Start nothing yet."""

    def submit(self, batch: B) -> None:
        """Let a thread compute a batch."""
        self._todo.put((self._submitted, batch))
        self._submitted += 1
        if self._started < self._most:
            start_new_thread(self._work, ())
            self._started += 1

    def results(self, count: int) -> list[R]:
        """Return the results of the batches, in order. Raise the first error."""
        found: dict[int, R] = {}
        while len(found) < count:
            done = self._done.get()
            if isinstance(done, BaseException):
                raise done
            found[done[0]] = done[1]
        return [found[number] for number in range(count)]

    def _work(self) -> None:
        while not self._ended and (work := self._todo.get()) is not None:
            number, batch = work
            try:
                self._done.put((number, self._compute(batch)))
            except BaseException as error:  # noqa: BLE001  # raised in the calling thread
                self._done.put(error)
        self._left.put(None)

    def give_back(self) -> None:
        """End the threads, and wait for the batches that they are computing."""
        self._ended = True
        for _ in range(self._most):  # also for one that is not counted, because an exception came in between
            self._todo.put(None)
        while self._gone < self._started:
            self._left.get()
            self._gone += 1
