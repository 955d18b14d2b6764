"""The HTTP protocol of a connection, with limits on the time and the size of a request's head."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

# The limit for the head of a request (a question in the URL may be long), for trailers, and for chunk headers.
_HEAD_BYTES = 256 * 1024


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed if the head of a request takes too long or is too large.

    uvicorn waits for a head without a limit, so a client that sends one byte now and then could hold many connections.
    """

    header_seconds = 10.0
    _waiting: asyncio.TimerHandle | None = None
    _unparsed = 0  # bytes since the last callback of the parser

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the time limit of the first head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and refuse a head that is too large."""
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > _HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, which uvicorn does not say
        if (
            cycle
            and cycle.response_complete
            and not self.transport.is_closing()
            and self.transport.get_protocol() is self
        ):
            # Any byte ends uvicorn's own limit for an idle connection, also one that begins no request.
            self._wait()

    def on_message_begin(self) -> None:
        """Start the time limit of the rest of the head."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """Start the request."""
        self._unparsed = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
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
    """Return the protocol class with this limit; uvicorn creates an instance for each connection."""
    return type("Protocol", (BoundedProtocol,), {"header_seconds": header_seconds})
