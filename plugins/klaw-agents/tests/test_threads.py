"""Work in threads: its result, its error, and a caller that is cancelled."""

import asyncio
import threading

import pytest

from klaw_agents.threads import in_thread


def test_results_and_errors_of_a_thread_are_passed_on():
    def fail():
        raise ValueError("of the work")

    async def main():
        assert await in_thread(divmod, 7, 2) == (3, 1)
        with pytest.raises(ValueError, match="of the work"):
            await in_thread(fail)

    asyncio.run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_cancelled_caller_waits_for_its_running_call(fails):
    began, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work():
        began.set()
        go_on.wait()
        ended.set()
        if fails:
            raise ValueError("nobody asks for it")

    async def main():
        task = asyncio.create_task(in_thread(work))
        await asyncio.to_thread(began.wait)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(main())
