"""Batches on every processor: one batch on one thread, several batches at once.

On a quiet machine that gave 1.2 to 1.3 times the texts a second of one batch on all threads
(``docs/decisions/0003-model-precision.md``), and no thread waits at a barrier.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import TypeVar

B = TypeVar("B")
R = TypeVar("R")


def usable_processors() -> int:
    """Return how many processors this process may use: its affinity, where the system knows such a thing."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compute_batches(compute: Callable[[B], R], batches: Iterable[B], threads: int) -> list[R]:
    """Return ``compute(batch)`` of each batch, in order; at most ``threads`` are computed at once.

    The calling thread takes the next batches from the iterable while the first are computed. After an error, here or
    there, or Ctrl-C, no further batch is started.
    """
    waiting = iter(batches)
    first = list(islice(waiting, 2))
    if threads == 1 or len(first) < 2:  # noqa: PLR2004  # one batch needs no threads
        return [compute(batch) for batch in chain(first, waiting)]
    from concurrent.futures import ThreadPoolExecutor  # and logging with it, for nothing where there is one batch

    executor = ThreadPoolExecutor(threads, "klaw-onnx")  # it starts a thread when there is work for one
    try:
        futures = [executor.submit(compute, batch) for batch in chain(first, waiting)]
        return [future.result() for future in futures]
    finally:
        executor.shutdown(cancel_futures=True)
