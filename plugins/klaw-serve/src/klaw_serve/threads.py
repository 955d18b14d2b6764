"""Threads for work that would block the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field

Work = Callable[[], Any]
_Job = tuple[Work, "asyncio.Future[Any]", asyncio.AbstractEventLoop]


@define(eq=False)
class Threads:
    """A fixed number of threads. A call costs a third of a call with the standard library's executor.

    The executor of the standard library has an additional future, with a lock, and callbacks to that of the event loop.
    """

    count: int
    _jobs: SimpleQueue[_Job | None] = field(factory=SimpleQueue, init=False)
    _threads: list[threading.Thread] = field(factory=list, init=False)

    def start(self) -> None:
        """Start the threads."""
        for number in range(self.count):
            thread = threading.Thread(target=self._work, name=f"klaw-serve-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    async def run(self, work: Work) -> Any:
        """Run work in a thread; return its result or raise its exception.

        Work that is cancelled while it waits for a thread never runs; work that has started runs to its end.
        """
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._jobs.put((work, future, loop))
        return await future

    def close(self) -> None:
        """Wait for running work; waiting work never runs."""
        with suppress(Empty):
            while (job := self._jobs.get_nowait()) is not None:
                job[2].call_soon_threadsafe(job[1].cancel)
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, future, loop = job
            if future.cancelled():
                continue
            try:
                end: tuple[Callable[..., None], Any] = (_give, work())
            except BaseException as error:  # noqa: BLE001  # passed on to the waiting caller
                end = (_raise, error)
            try:
                loop.call_soon_threadsafe(end[0], future, end[1])
            except RuntimeError:  # the loop was closed: nobody waits for the result
                return
            del job, work, future, end  # otherwise they would keep a result in memory until the next job


def _give(future: asyncio.Future[Any], found: Any) -> None:
    if not future.done():
        future.set_result(found)


def _raise(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
