"""Several clients that ask at once: questions of made-up words, texts that hold them, and how long answers take."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from statistics import quantiles
from typing import Any

from klaw_core import NewDocument

#: How many clients ask at once.
CLIENTS = (1, 8, 32)
#: Different words; their frequencies follow Zipf's law.
WORDS = 20_000
#: Words of a text.
LENGTH = 60
_NAMES = [f"w{rank}" for rank in range(WORDS)]
_WEIGHTS = [1 / (rank + 10) for rank in range(WORDS)]

Ask = Callable[[str], Any]


def documents(count: int, rng: random.Random) -> Iterator[NewDocument]:
    """Yield so many documents of one chunk each."""
    for number in range(count):
        yield NewDocument(str(number), " ".join(rng.choices(_NAMES, _WEIGHTS, k=LENGTH)))


def questions(count: int, rng: random.Random) -> Sequence[str]:
    """Return questions of four words, most of which stand in more than a third of the texts."""
    return [" ".join(f"w{int(rng.paretovariate(0.7)) % WORDS}" for _ in range(4)) for _ in range(count)]


def measure(make: Callable[[ExitStack, int], Ask], clients: int, seconds: float, asked: Sequence[str]) -> list[float]:
    """Let clients ask, each in a thread, for so many seconds; return how long each answer took.

    ``make`` gets the number of a client and gives what it asks with.
    """
    took: list[float] = []
    until = time.perf_counter() + seconds

    def run(number: int) -> None:
        rng = random.Random(number)
        with ExitStack() as stack:
            ask = make(stack, number)
            while (began := time.perf_counter()) < until:
                ask(rng.choice(asked))
                took.append(time.perf_counter() - began)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def percentiles(took: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile, in milliseconds. Fewer than two answers end the program."""
    if len(took) < 2:
        raise SystemExit("fewer than two answers came in time: give more --seconds")
    cuts = quantiles(took, n=100)
    return cuts[49] * 1e3, cuts[98] * 1e3
