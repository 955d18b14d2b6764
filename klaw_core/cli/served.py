"""Use a running server that has this memory open and its model loaded, instead of opening the memory again.

Such a server writes ``server.json`` to the data directory, readable only by its owner: ``socket`` (the path of a Unix
socket), ``token``, and the fingerprint of its ``configuration``. It accepts JSON-RPC as ``POST /rpc``. If there is no
such server, or any check fails, the memory is opened in this process without a notice.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core.cli.warm import connect
from klaw_core.files.atomic import open_regular
from klaw_core.files.layout import DataDirectory
from klaw_core.files.platform import NO_FOLLOW, OTHERS_USE

if TYPE_CHECKING:
    from pathlib import Path

    from klaw_core.values.config import Config
    from klaw_core.values.runs import SourceStatus
    from klaw_core.values.search import SearchRequest, SearchResults

_MAX_FILE_BYTES = 10_000
_TIMEOUT_SECONDS = 20.0
_BLOCK_BYTES = 1 << 16


class NotServedError(Exception):
    """No server answered, or the answer was not valid."""


@frozen(eq=False, repr=False)
class Server:
    """A running server: the address of its socket, and its access token."""

    address: str
    token: str

    @classmethod
    def of(cls, config: Config) -> Server | None:
        """Return the server that has the memory of this configuration open, or None."""
        entry = _read_server_file(DataDirectory(config.data_dir).server)
        address, token = entry.get("socket"), entry.get("token")
        if not isinstance(address, str) or not isinstance(token, str) or not token.isascii() or not token.isprintable():
            return None
        return cls(address, token) if entry.get("configuration") == config.fingerprint else None

    def call(self, method: str, **params: Any) -> Any:
        """Call a method and return its result. Raise NotServedError if there is no valid answer."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            reply = json.loads(self._post(json.dumps(request).encode()))
            return reply["result"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise NotServedError(str(error)) from error

    def _post(self, body: bytes) -> bytes:
        """Send a request; return the body of the response. Raise OSError, ValueError."""
        import socket

        head = (
            f"POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        if sys.platform == "win32":  # there Python has no such sockets
            raise OSError("there are no Unix sockets")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT_SECONDS)
            connect(connection, *os.path.split(self.address))
            connection.sendall(head.encode() + body)
            answer = b"".join(iter(lambda: connection.recv(_BLOCK_BYTES), b""))
        headers, _, content = answer.partition(b"\r\n\r\n")
        if headers.split(b" ", 2)[1:2] != [b"200"]:
            raise ValueError(headers[:_BLOCK_BYTES])
        return content


def _read_server_file(path: Path) -> Mapping[str, Any]:
    """Return the content of a server's file, or nothing if another user may have written it."""
    with suppress(OSError, ValueError, RecursionError), open_regular(path, NO_FOLLOW) as file:
        status = os.fstat(file.fileno())
        if status.st_uid == getattr(os, "geteuid", int)() and not status.st_mode & OTHERS_USE:
            found = json.loads(file.read(_MAX_FILE_BYTES))
            return found if isinstance(found, dict) else {}
    return {}


@frozen(eq=False, repr=False)
class ServedMemory:
    """The methods of ``Memory`` that a search needs, answered by a server. They raise NotServedError."""

    server: Server

    def search_for(self, request: SearchRequest) -> SearchResults:
        """Search as ``Memory.search_for`` does; a server knows neither vectors nor copies of results."""
        from klaw_core.cli.json_forms import to_json
        from klaw_core.cli.result_forms import results_from_json

        asked = {name: value for name, value in to_json(request).items() if name not in {"vector", "duplicates"}}
        asked |= {name: value for name, value in asked.pop("filters").items() if value}
        renamed = {"text": "query", "collections": "collection", "metadata": "where"}  # as in the API
        given = {renamed.get(name, name): value for name, value in asked.items() if value is not None}
        found = self.server.call("memory.search", **given)
        try:
            return results_from_json(found)
        except (KeyError, TypeError, ValueError) as error:
            raise NotServedError(str(error)) from error

    def nearest(self, query: str, texts: Sequence[str]) -> int | None:
        """Return the index of the text nearest to a question, as ``Memory.nearest`` does, or None on any error."""
        try:
            nearest = self.server.call("memory.nearest", query=query, texts=list(texts))["nearest"]
        except (NotServedError, KeyError, TypeError):
            return None
        return nearest if isinstance(nearest, int) and nearest < len(texts) else None

    def sources(self) -> tuple[SourceStatus, ...]:
        """Return every source of documents."""
        from pathlib import Path

        from klaw_core.values.runs import SourceStatus

        try:
            given = self.server.call("memory.sources")["sources"]
            roots = [None if item["root"] is None else Path(item["root"]) for item in given]
            return tuple(SourceStatus(**{**item, "root": root}) for item, root in zip(given, roots, strict=True))
        except (KeyError, TypeError) as error:
            raise NotServedError(str(error)) from error
