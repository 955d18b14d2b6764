"""The only module that imports httpx2: a client whose every wait on the network ends at one deadline.

The timeouts of httpx2 apply to each read, so a server that sends a byte now and then blocks a synchronous client for
ever (https://github.com/encode/httpx/issues/1450), and checking a clock between parts of the body does not cover the
headers. Here the deadline applies where the socket waits, in the documented network backend of httpcore2
(https://www.encode.io/httpcore/network-backends/). Only name resolution is not covered; the system's resolver limits
it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2

from klaw_http.deadline import Deadline

if TYPE_CHECKING:
    import ssl

# Bytes per send, because each send of a large body may take its whole timeout.
_PIECE_BYTES = 64 * 1024

#: Failures that may be temporary: no connection, or a broken one.
TRANSIENT = (httpcore2.NetworkError, httpcore2.RemoteProtocolError, httpcore2.ConnectTimeout)
#: Those of them before anything was sent.
UNCONNECTED = (httpcore2.ConnectError, httpcore2.ConnectTimeout)
#: Failures that mean that the server is silent.
TIMEOUTS = (httpcore2.TimeoutException,)
#: Exceptions for an invalid address, also of a redirect, which httpx2 parses even if it does not follow it.
UNUSABLE = (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError)


def open_client(deadline: Deadline, ssl_context: ssl.SSLContext | None, timeout: tuple[float, float]) -> httpx2.Client:
    """Return a client for one call; ``timeout`` is (connect, read) in seconds.

    It follows no redirect, which would send ``x-goog-api-key`` and the body to another origin. It has no cookies of
    other calls, and reads neither proxies nor ``.netrc`` from the environment.
    """
    connect, read = timeout
    return httpx2.Client(
        transport=_Transport(deadline, ssl_context),
        timeout=httpx2.Timeout(read, connect=connect),
        follow_redirects=False,
        trust_env=False,
    )


def default_ssl_context() -> ssl.SSLContext:
    """Return a context that verifies certificates; making one takes tens of milliseconds."""
    return httpx2.create_ssl_context()


class _Transport(httpx2.BaseTransport):
    """A transport on the pool of httpcore2 with our network backend, which httpx2 has no parameter for."""

    def __init__(self, deadline: Deadline, ssl_context: ssl.SSLContext | None) -> None:
        self._pool = httpcore2.ConnectionPool(ssl_context=ssl_context, network_backend=_Backend(deadline))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._pool.handle_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(response.status, headers=response.headers, stream=_Body(response))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _Backend(httpcore2.NetworkBackend):
    """TCP connections whose waits never exceed the remaining time."""

    def __init__(self, deadline: Deadline) -> None:
        self._backend = httpcore2.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

        def connect(address: str) -> httpcore2.NetworkStream:
            limit = self._deadline.limit(timeout)
            return _Stream(
                self._backend.connect_tcp(address, port, limit, local_address, socket_options), self._deadline
            )

        # One by one, because with a name the standard library gives every address the whole timeout.
        *others, last = dict.fromkeys(_address(place) for *_, place in found)
        for address in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return connect(address)
        return connect(last)


def _address(place: tuple[Any, ...]) -> str:
    """Return the address from a result of getaddrinfo, with the interface for a link-local address."""
    match place:
        case (address, _port, _flow, interface) if interface:
            return f"{address}%{interface}"
    return str(place[0])


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._deadline.limit(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):
            self._stream.write(buffer[start : start + _PIECE_BYTES], self._deadline.limit(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        limit = self._deadline.limit(timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, limit), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        self._stream.close()
