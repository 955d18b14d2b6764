"""Synchronisation inside a server: an application that starts and stops with it, and answers no requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from klaw_core import KlawError, Memory
from klaw_sync.background import Synchroniser
from klaw_sync.extension import SyncExtension

Message = Mapping[str, Any]


def make(memory: Memory, *, read_only: bool = False) -> Callable[..., Awaitable[None]]:
    """Return the application for a memory. A read-only server, or one without configured places, does nothing."""

    async def app(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "lifespan":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        running = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                running = None if read_only else await asyncio.to_thread(start, memory)
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if running is not None:
                    await asyncio.to_thread(running.stop)
                await send({"type": "lifespan.shutdown.complete"})
                return

    return app


def start(memory: Memory) -> Synchroniser | None:
    """Start to synchronise a memory; return None if it is not shared, or nothing is configured."""
    try:
        extension = memory.extension(SyncExtension)
    except KlawError:
        return None
    options = extension.options
    if not options.remotes or not options.interval_seconds or not extension.is_shared:
        return None
    running = Synchroniser(extension.run, options.interval_seconds)
    running.start()
    return running
