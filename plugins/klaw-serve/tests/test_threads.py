"""Work in threads, for an event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from klaw_serve.threads import Threads


@pytest.fixture
def threads():
    made = Threads(2)
    made.start()
    yield made
    made.close()


def test_results_and_errors_of_work_are_passed_on(threads):
    def fail():
        raise LookupError("lost")

    async def run():
        assert await asyncio.gather(*(threads.run(lambda number=number: number * 2) for number in range(50))) == list(
            range(0, 100, 2)
        )
        with pytest.raises(LookupError, match="lost"):
            await threads.run(fail)
        assert await threads.run(threading.get_ident) != threading.get_ident()

    asyncio.run(run())


def test_waiting_work_that_is_cancelled_never_runs(threads):
    ran, free = [], threading.Event()

    async def run():
        busy = [asyncio.ensure_future(threads.run(free.wait)) for _ in range(2)]
        waiting = asyncio.ensure_future(threads.run(lambda: ran.append("given up")))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        free.set()
        await asyncio.gather(*busy)
        await threads.run(lambda: ran.append("after"))

    asyncio.run(run())
    assert ran == ["after"]


def test_running_work_that_is_cancelled_affects_nothing(threads):
    free = threading.Event()

    async def run():
        running = asyncio.ensure_future(threads.run(free.wait))
        await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait({running})
        free.set()
        assert await threads.run(lambda: "next") == "next"

    asyncio.run(run())


def test_closing_waits_for_running_work_and_cancels_waiting_work():
    threads = Threads(1)
    threads.start()
    began, free, ran = threading.Event(), threading.Event(), []

    def work():
        began.set()
        free.wait()
        ran.append("first")

    async def run():
        first = asyncio.ensure_future(threads.run(work))
        second = asyncio.ensure_future(threads.run(lambda: ran.append("second")))
        await asyncio.to_thread(began.wait)
        closing = asyncio.ensure_future(asyncio.to_thread(threads.close))
        with pytest.raises(asyncio.CancelledError):
            await second
        free.set()
        await asyncio.gather(first, closing)

    asyncio.run(run())
    assert ran == ["first"]
