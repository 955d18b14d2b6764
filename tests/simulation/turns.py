"""Two threads of one process that take turns: one goes on while the other stands still, and dice say for how long.

A turn ends after some places (those of ``interrupts.py``), or when its thread would wait for a lock, sleep, or have
SQLite sleep. After a while in which no thread of the process runs, the one that has the turn waits for the other one,
which then has it. So one seed has one schedule. Each order is one that two threads may have.
"""

import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from random import Random
from types import FrameType, SimpleNamespace
from typing import Any

from attrs import define, field
from interrupts import counts

from klaw_core import holds

#: The mean number of places of a turn, of which each pair has one: short ones meet most orders of short calls.
_PLACES = 10, 100, 1000
_LOOK_SECONDS, _IDLE_LOOKS = 0.02, 10
#: After so many idle turns, some five minutes and more, neither will ever go on.
_MOST_FORCED = 1500
#: So many turns without any place passed are a deadlock.
_FRUITLESS = 100_000
#: SQLite gives up after some sixty naps, which should not be before the other thread's transaction ends.
_NAP_PLACES = 300


def _is_any_running() -> bool:
    """Return whether another thread of this process runs, or would if there were a processor for it."""
    me, states = str(threading.get_native_id()), []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it has ended
            states += [(task / "stat").read_text().rpartition(")")[2].split()[0]] * (task.name != me)
    return not {"R", "D"}.isdisjoint(states)


@define(eq=False)
class Turns:
    """The turns of two threads; ``run`` lets both do their work, and returns when both have ended."""

    dice: Random
    #: What is called when neither can go on.
    stuck: Callable[[], None]
    #: The number of turns that were taken.
    taken: int = 0
    _whose: int = 0
    _left: int = 0
    _mean: int = field(init=False)
    _places: int = 0
    _fruitless: int = 0
    _ended: list[bool] = field(factory=lambda: [False, False])
    _gates: list[SimpleQueue[None]] = field(factory=lambda: [SimpleQueue(), SimpleQueue()])
    _numbers: dict[int, int] = field(factory=dict)
    _both: SimpleQueue[None] = field(factory=SimpleQueue)
    #: By the number of a code object, which is kept, so that no other one gets it: its hash is that of its content.
    _known: dict[int, tuple[bool, Any]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._mean = self.dice.choice(_PLACES)
        self._draw()

    def run(self, works: Sequence[Callable[[], object]]) -> None:
        """Let two threads do this."""
        threads = [
            threading.Thread(target=self._live, args=(number, work), name=f"turn-{number}")
            for number, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        self._watch()
        for thread in threads:
            thread.join()

    def _watch(self) -> None:
        """Give the turn to the other one while the one that has it waits for somebody else."""
        idle, forced, before = 0, 0, (-1, 0)
        looked = threading.Event()
        while not all(self._ended):
            looked.wait(_LOOK_SECONDS)  # sleeping is simulated
            now = self._whose, self._places
            if now[1] != before[1]:
                forced = 0
            idle = idle + 1 if now == before and not _is_any_running() else 0
            before = now
            if idle > _IDLE_LOOKS:
                idle, forced = 0, forced + 1
                self._hand_over(self._whose)
            if forced > _MOST_FORCED:
                self.stuck()

    def _live(self, number: int, work: Callable[[], object]) -> None:
        self._numbers[threading.get_ident()] = number
        self._wait(number)
        sys.setprofile(self._looking(number))
        try:
            work()
        finally:
            sys.setprofile(None)
            self._wait(number)
            del self._numbers[threading.get_ident()]  # a later thread may have the same
            self._ended[number] = True
            self._hand_over(number)

    def _draw(self) -> None:
        self._left = 1 + int(self.dice.expovariate(1 / self._mean))

    def _wait(self, number: int) -> None:
        while self._whose != number and not self._ended[1 - number]:
            self._gates[number].get()

    def _hand_over(self, number: int) -> None:
        if self._whose != number or self._ended[1 - number]:
            return
        self.taken += 1
        self._whose = 1 - number
        self._gates[1 - number].put(None)

    def _looking(self, number: int) -> Callable[[FrameType, str, Any], None]:
        """Return what a thread calls at each place."""
        known = self._known

        def look(frame: FrameType, event: str, _called: Any) -> None:
            if event != "call" and event != "c_return":  # noqa: PLR1714  # a set would have to hash it
                return
            code = frame.f_code
            place = known.get(id(code))
            if place is None:
                place = known[id(code)] = counts(code.co_filename), code
            if not place[0]:
                return
            if self._whose != number:  # a lock has let it go on, out of turn
                self._wait(number)
            self._places += 1
            self._fruitless = 0
            self._left -= 1
            if self._left <= 0:
                self._draw()
                self._hand_over(number)
            if self._whose != number:
                self._wait(number)

        return look

    def give_way(self, places: int) -> bool:
        """Let the other thread go on for some places before this one does; return whether it can."""
        number = self._numbers.get(threading.get_ident())
        if number is None or self._ended[1 - number]:
            return False
        self._fruitless += 1
        if self._fruitless > _FRUITLESS:
            self.stuck()
        self._left = max(self._left, places)
        self._hand_over(number)
        self._wait(number)
        return True


#: The turns of this process, if two threads take any now.
_now: list[Turns] = []


def give_way() -> bool:
    """Give way, if two threads take turns and this is one of them. Who sleeps lets the other one do much."""
    return bool(_now) and _now[-1].give_way(_NAP_PLACES)


class _Lock:
    """The lock of a cached property (there is none since Python 3.12): who would wait for it gives way."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not _is_acquired(self._lock):
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _is_acquired(lock: Any) -> bool:
    """Give way until this thread has a lock; return whether it has. It has not if nobody takes turns."""
    while _now:
        if lock.acquire(blocking=False):
            return True
        if not _now[-1].give_way(1):
            break
    return False


def install() -> None:
    """Let a thread that would wait for another one's lock give way, for good.

    Otherwise it would go on as soon as the other one lets the lock go, out of turn, and might take it before that one
    does so again.
    """
    take = holds._LockHold.take

    def taken(hold: Any) -> None:
        lock = hold._of.lock
        is_acquired = _is_acquired(lock)
        try:
            take(hold)
        finally:
            if is_acquired:
                lock.release()

    holds._LockHold.take = taken  # type: ignore[method-assign]
    functools.RLock = _Lock  # type: ignore[attr-defined]
    holds.threading = SimpleNamespace(**{**vars(threading), "RLock": _Lock})  # type: ignore[assignment]
    holds._renew_locks()
    holds.threading = threading


def take_turns(works: Sequence[Callable[[], object]], dice: Random, stuck: int) -> int:
    """Let two threads do this in turns; return how many. The process ends with ``stuck`` if neither can go on."""
    turns = Turns(dice, lambda: os._exit(stuck))
    _now.append(turns)
    try:
        turns.run(works)
    finally:
        _now.clear()
    return turns.taken
