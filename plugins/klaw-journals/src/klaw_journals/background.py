"""What runs beside a program that has a memory open for long: a watcher, a synchronisation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from klaw_core import Extension, KlawError

T = TypeVar("T")
Event = Mapping[str, Any]
#: An ASGI application.
App = Callable[[Event, Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]]


class RunningExtension(Extension):
    """An extension that does something by itself while `klaw watch` runs: it has a thread of its own."""

    __slots__ = ()

    @abstractmethod
    def start(self) -> Callable[[], object] | None:
        """Start; return what stops it and waits for that, or None if there is nothing to do. Raise KlawError."""


def lifespan_app(start: Callable[[], T | None], stop: Callable[[T], object]) -> App:
    """Return an application for a server that only starts and stops with it, and answers no requests.

    ``start`` and ``stop`` run in a thread, ``stop`` with what ``start`` has returned, unless that is None. A KlawError
    of ``start`` is told the server.
    """

    async def app(
        scope: Event, receive: Callable[[], Awaitable[Event]], send: Callable[[Event], Awaitable[None]]
    ) -> None:
        from asyncio import to_thread  # imported at first use: only a server has it loaded already

        if scope["type"] != "lifespan":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        running: T | None = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    running = await to_thread(start)
                except KlawError as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                else:
                    await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if running is not None:
                    await to_thread(stop, running)
                await send({"type": "lifespan.shutdown.complete"})
                return

    return app
