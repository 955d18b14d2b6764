"""The protocols of a connection, with limits on their number, and on the time and the size of a request's head."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from functools import partial
from typing import Any

from attrs import define, field
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

_LOG = logging.getLogger("klaw")
# The limit for the head of a request (a question in the URL may be long), for trailers, and for chunk headers.
_HEAD_BYTES = 256 * 1024
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: 33\r\n"
    b'connection: close\r\n\r\n{"error":"too many connections"}\n'
)


@define(eq=False)
class Connections:
    """The open connections of one listener, at most ``limit``.

    A connection that waits for a request, or for the rest of its head, is closed if another needs its place: the oldest
    of the address that has most of them. So a program that opens connections and sends nothing locks nobody out, also
    on a loopback address, where all programs have the same address.
    """

    limit: int
    _open: set[asyncio.Protocol] = field(factory=set, init=False)
    _waiting: dict[BoundedProtocol, str] = field(factory=dict, init=False)  # the oldest first

    def enter(self, connection: asyncio.Protocol) -> bool:
        """Add a connection. Return whether there was a place for it."""
        if len(self._open) >= self.limit and not self._make_place():
            return False
        self._open.add(connection)
        return True

    def leave(self, connection: asyncio.Protocol) -> None:
        """Remove a connection."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)  # type: ignore[call-overload]  # a WebSocket never waits

    def wait(self, connection: BoundedProtocol) -> None:
        """Say that a connection waits for a request."""
        if connection in self._open:
            self._waiting.setdefault(connection, connection.client[0] if connection.client else "")

    def work(self, connection: BoundedProtocol) -> None:
        """Say that a connection has a request."""
        self._waiting.pop(connection, None)

    def _make_place(self) -> bool:
        if not self._waiting:
            return False
        ((crowded, _),) = Counter(self._waiting.values()).most_common(1)
        oldest = next(connection for connection, address in self._waiting.items() if address == crowded)
        self.leave(oldest)
        oldest.transport.abort()
        return True


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed if the head of a request takes too long or is too large.

    uvicorn waits for a head without a limit, so a client that sends one byte now and then could hold many connections.
    """

    header_seconds = 10.0
    pool = Connections(512)
    _waiting: asyncio.TimerHandle | None = None
    _unparsed = 0  # bytes since the last callback of the parser

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the time limit of the first head."""
        super().connection_made(transport)
        self.ws_protocol_class = partial(BoundedSocket, pool=self.pool)  # type: ignore[assignment]  # it is only called
        if not self.pool.enter(self):
            transport.write(_FULL)
            transport.close()
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self.pool.leave(self)
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and refuse a head that is too large or that uvicorn cannot read."""
        if self.transport.is_closing():
            return
        self._unparsed += len(data)
        try:
            super().data_received(data)
        except Exception as error:  # noqa: BLE001  # of a parser, for bytes that anybody may send
            _LOG.debug("a request cannot be read: %s: %s", type(error).__name__, error)
            self.transport.abort()
            return
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

    def handle_websocket_upgrade(self) -> None:
        """Give the place of this connection to the WebSocket that it becomes."""
        self.pool.leave(self)
        super().handle_websocket_upgrade()

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

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self.pool.wait(self)

    def _wait(self) -> None:
        self.pool.wait(self)
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        self.pool.work(self)
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class BoundedSocket(WebSocketsSansIOProtocol):
    """A WebSocket that has a place among the connections."""

    def __init__(self, *arguments: Any, pool: Connections, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._pool = pool

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the place."""
        super().connection_made(transport)
        self._pool.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place."""
        self._pool.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and end the connection if they cannot be read."""
        try:
            super().data_received(data)
        except Exception as error:  # noqa: BLE001  # of a parser, for bytes that anybody may send
            _LOG.debug("a WebSocket cannot be read: %s: %s", type(error).__name__, error)
            self.transport.abort()


def protocol(header_seconds: float, connections: int) -> type[BoundedProtocol]:
    """Return the protocol class with these limits; uvicorn creates an instance for each connection."""
    return type("Protocol", (BoundedProtocol,), {"header_seconds": header_seconds, "pool": Connections(connections)})


#: What uvicorn logs about faults of clients. Anybody can make as many as they like.
_FAULTS = ("Invalid HTTP request", "Unsupported upgrade request", "No supported WebSocket", "Invalid UTF-8 sequence")
# How the traceback of an application ends that was not waited for.
_CANCELLED = "asyncio.exceptions.CancelledError"


def quiet() -> None:
    """Leave the faults of clients out of the log, which they could fill otherwise, and what a second Ctrl-C ends."""
    logging.getLogger("uvicorn.error").addFilter(_is_ours)


def _is_ours(record: logging.LogRecord) -> bool:
    told = record.getMessage()
    return not (told.startswith(_FAULTS) or told.rstrip().endswith(_CANCELLED))
