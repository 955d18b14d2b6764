"""Run blocking work of a memory from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], /, *arguments: P.args, **options: P.kwargs) -> T:
    """Run blocking work in a thread and return what it returns.

    A caller that is cancelled waits for the end of the work first, so that nothing runs on the memory afterwards.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **options))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # asyncio logs an exception that is never retrieved
        raise cancelled
    return task.result()
