"""The watcher inside a server: an application that starts and stops with the server, and answers no requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from klaw_core import KlawError, Memory
from klaw_watch.watcher import Watcher

Message = Mapping[str, Any]


def make(memory: Memory, *, read_only: bool = False) -> Callable[..., Awaitable[None]]:
    """Return the application for a memory. A read-only server watches nothing."""

    async def app(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "lifespan":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        watcher = None if read_only else Watcher(memory)
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send(await asyncio.to_thread(_start, watcher))
            elif message["type"] == "lifespan.shutdown":
                if watcher is not None:
                    await asyncio.to_thread(watcher.stop)
                await send({"type": "lifespan.shutdown.complete"})
                return

    return app


def _start(watcher: Watcher | None) -> Message:
    """Start the watcher, unless another one is running for this data directory."""
    try:
        if watcher is not None:
            watcher.start()
    except KlawError as error:
        return {"type": "lifespan.startup.failed", "message": str(error)}
    return {"type": "lifespan.startup.complete"}
