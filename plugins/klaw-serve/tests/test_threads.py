"""Work in threads, for an event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from klaw_core import Memory, load_config
from klaw_serve.calls import Caller, Calls
from klaw_serve.events import EventHub
from klaw_serve.metrics import Metrics
from klaw_serve.operations import Operation
from klaw_serve.options import Limits
from klaw_serve.tenants import Tenants
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


def test_a_call_that_reads_waits_for_none_that_changes_something(tmp_path):
    """Changes wait for each other: with as many clients as in a soak, all threads waited, and each search for them."""
    free = threading.Event()
    operations = {
        "change": Operation("change", "POST", "/change", "", lambda *_: free.wait(), read_only=False),
        "read": Operation("read", "GET", "/read", "", lambda *_: not free.is_set()),
    }

    async def run():
        loop = asyncio.get_running_loop()
        config = load_config(data_dir=tmp_path, environment={"KLAW_EMBEDDER": "none"})
        tenants = Tenants.of(Memory.open(config), lambda: EventHub(loop))
        calls, owner = Calls(tenants, operations, Limits(), Metrics()), Caller("", "owner")
        changes = [asyncio.ensure_future(calls.call(owner, "change", {})) for _ in range(64)]
        try:
            await asyncio.sleep(0)
            return await calls.call(owner, "read", {})
        finally:
            free.set()
            await asyncio.gather(*changes)
            calls.close()
            tenants.close()

    assert asyncio.run(run()) is True, "the changes have ended first"
