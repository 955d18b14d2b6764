"""Send events of a memory to clients. A stream gets the events that happen while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import define, field, frozen

from klaw_core import Event, ForgetEvent, IndexEvent, MessageEvent, to_json

# A stream with more unread events than this is ended; its client can connect again.
_MAX_UNREAD_EVENTS = 1_000


@frozen
class Notice:
    """A message to a client: its kind, and plain JSON."""

    kind: str
    data: Any


@define(eq=False)
class EventHub:
    """Passes notices from any thread to the streams of an event loop."""

    loop: asyncio.AbstractEventLoop
    _streams: set[asyncio.Queue[Notice | None]] = field(factory=set, init=False)
    _closed: bool = field(default=False, init=False)

    def on(self, event: Event) -> None:
        """Send an event of the memory to all streams, except searches, whose questions are private."""
        if isinstance(event, IndexEvent):
            self.send("index", to_json(event))
        elif isinstance(event, ForgetEvent):
            self.send("forget", to_json(event))
        elif isinstance(event, MessageEvent):
            self.send("message", {"chat": event.chat, "id": event.id, "role": event.role})

    def send(self, kind: str, data: Any) -> None:
        """Send a notice to all streams. Call it from any thread."""
        if self._streams and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._pass_on, Notice(kind, data))

    def _pass_on(self, notice: Notice) -> None:
        for stream in list(self._streams):
            if stream.qsize() >= _MAX_UNREAD_EVENTS:
                self._end(stream)
            else:
                stream.put_nowait(notice)

    def _end(self, stream: asyncio.Queue[Notice | None]) -> None:
        self._streams.discard(stream)
        stream.put_nowait(None)

    @contextmanager
    def stream(self) -> Iterator[AsyncIterator[Notice]]:
        """Open a stream of all notices from now on. It ends with the block, or when the server stops."""
        queue: asyncio.Queue[Notice | None] = asyncio.Queue()
        if self._closed:
            queue.put_nowait(None)
        else:
            self._streams.add(queue)
        try:
            yield _read(queue)
        finally:
            self._streams.discard(queue)

    def close(self) -> None:
        """End all streams. Call it in the event loop."""
        self._closed = True
        for stream in list(self._streams):
            self._end(stream)


async def _read(queue: asyncio.Queue[Notice | None]) -> AsyncIterator[Notice]:
    while (notice := await queue.get()) is not None:
        yield notice
