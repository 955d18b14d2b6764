"""The HTTP side of a connection, with a bound on the time and the size of a request's head."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Of the head of a request: a question in its address may be long. Also of trailers, and of what frames a chunked body.
_HEAD_BYTES = 256 * 1024


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed if the head of a request takes too long or is too large.

    uvicorn waits for it without end, and a client that sends a byte now and then would hold a connection each.
    """

    header_seconds = 10.0
    _waiting: asyncio.TimerHandle | None = None
    _unparsed = 0  # bytes since the parser last passed anything on

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes; refuse a head that is too large."""
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > _HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        """Wait for the rest of the head."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """Start the request."""
        self._unparsed = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._unparsed = 0
        super().on_body(body)

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def protocol(header_seconds: float) -> type[BoundedProtocol]:
    """Return the protocol with this bound; uvicorn makes one of each connection."""
    return type("Protocol", (BoundedProtocol,), {"header_seconds": header_seconds})
