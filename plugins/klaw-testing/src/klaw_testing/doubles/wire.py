"""A server that sends exactly the bytes of a test, which real HTTP servers do not allow."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

#: Bytes to send before closing, or a function that uses the connection.
Script = bytes | Callable[[socket.socket], None]


class Wire:
    """A TCP server that answers the n-th connection with the n-th script, the last one from then on.

    A context manager. ``url`` is its address, ``requests`` has the bytes of every request. ``deaf_seconds`` is how long
    it does not read from an accepted connection, ``deaf`` whether it has read nothing so far.
    """

    def __init__(self, *scripts: Script, deaf_seconds: float = 0.0) -> None:
        self.requests: list[bytes] = []
        self.released = threading.Event()
        self._scripts = scripts
        self._deaf_seconds = deaf_seconds
        self.deaf = True
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)

    def play(self, *scripts: Script) -> None:
        """Replace the scripts, by ones that may need this server (:meth:`drip`)."""
        self._scripts = scripts

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.released.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                self.released.wait(self._deaf_seconds)
                self.deaf = False
                self.requests.append(_read_request(connection))
                script = self._scripts[min(len(self.requests), len(self._scripts)) - 1]
                if isinstance(script, bytes):
                    connection.sendall(script)
                else:
                    script(connection)

    def drip(self, head: bytes, drop: bytes, *, drops: int = 200) -> Script:
        """Return a script that sends ``head``, then ``drop`` every 50 ms until the server is closed."""

        def script(connection: socket.socket) -> None:
            connection.sendall(head)
            for _ in range(drops):
                if self.released.wait(0.05):
                    return
                connection.sendall(drop)

        return script


def _read_request(connection: socket.socket) -> bytes:
    request = bytearray()
    while b"\r\n\r\n" not in request:
        request += _some(connection)
    end = request.index(b"\r\n\r\n")
    length = re.search(rb"^content-length: *(\d+)", request[:end], re.IGNORECASE | re.MULTILINE)
    while len(request) < end + 4 + int(length[1] if length else 0):
        request += _some(connection)
    return bytes(request)


def _some(connection: socket.socket) -> bytes:
    piece = connection.recv(65536)
    if not piece:
        raise ConnectionError("the client went away")
    return piece


def reply(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole HTTP/1.1 response; ``retry_after="2"`` becomes ``retry-after: 2``."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
