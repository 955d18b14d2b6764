"""Requests that no client should send: each is refused without a defect, and none writes into the log.

``KLAW_MALFORMED=5000`` sends that many instead of a sample. A failure names the number of the request.
"""

from __future__ import annotations

import asyncio
import base64
import os
import random
import re
import socket

import pytest
from attrs import define

COUNT = int(os.environ.get("KLAW_MALFORMED", "250"))
_AT_ONCE = 40
_STATUS = re.compile(rb"^HTTP/1\.1 (\d{3})", re.MULTILINE)

METHODS = [*b"POST PUT DELETE OPTIONS HEAD TRACE CONNECT PROPFIND get G\0T".split(b" "), b""]
TARGETS = [
    *b"/ /api/search?query=x /rpc /mcp /page/app.js /openapi.json /metrics /api/status /agents/ann/api/status".split(
        b" "
    ),
    *b"* // ///x /.. /% /%zz /%00 /%ff%fe /\xff\xfe /api/search?query=%ff&query ?query=1 #x /agents /agents/".split(
        b" "
    ),
    *b"http://evil.example/health http://[::1/health evil.example:80 /agents/-bad/api/status /agents//api/x".split(
        b" "
    ),
    *b"/agents/%2e%2e/api/status /agents/\xe9/api/status /agents/%00/mcp /agents/-bad/mcp /api/tools/\x7f".split(b" "),
    *b"/api/document?path=../../etc/passwd /api/core/user/%2f%2e%2e /api/chats/%ed%a0%80".split(b" "),
    *(b"", b"/a b", b"/x?" + b"a" * 9_000, b"/" + b"a" * 300_000),
]
SOCKETS = b"/ws /agents/-bad/ws /agents//ws /agents/ann/ws /agents/\xe9/ws /agents/%00/ws /agents/%ff/ws /x".split(b" ")
VERSIONS = [*b"HTTP/1.0 HTTP/0.9 HTTP/2.0 HTTP/9.9 HTTP/1. HTTP HTTPS/1.1".split(b" "), b""]
HEADERS = {
    b"Host": [*b"localhost:1 evil.example [::1 [::1]x \xff 127.0.0.1\0 :80 @".split(b" "), b"", b"a" * 3_000],
    b"Origin": [
        *b"http://[::1 http://[evil null :// http:// http://127.0.0.1 http://a@127.0.0.1 \xff\xfe file://".split(b" "),
        *b"http://[v1.x] http://[::1%25]:x http://127.0.0.1:99999999999999999999 http://\xe2\x84\xac".split(b" "),
        b"",
    ],
    b"Content-Length": [*b"0 5 -1 +5 0x5 \xb2 1e3 99999999".split(b" "), b"", b"5, 5", b"5 5", b"9" * 400],
    b"Authorization": [
        b"Bearer ",
        b"Bearer  x",
        b"Basic x",
        b"Bearer \xff",
        b"Bearer " + b"x" * 70_000,
        b"bearer",
        b"\0",
    ],
    b"Transfer-Encoding": [b"chunked", b"gzip", b"chunked, chunked", b"\xff", b""],
    b"Expect": [b"100-continue", b"\xff", b"200-ok"],
    b"Content-Type": [b"application/json", b"text/plain", b"\xff", b"application/json; charset=\xff"],
    b"Accept": [b"application/json, text/event-stream", b"*/*", b"\xff", b""],
    b"X-Forwarded-For": [b"1.2.3.4", b"\xff", b"::", b"a" * 5_000],
    b"Connection": [b"close", b"keep-alive", b"upgrade", b"\xff", b",", b""],
    b"Upgrade": [b"websocket", b"h2c", b"\xff", b""],
    b"": [b"x"],
    b"X A": [b"x"],
    b"X\0": [b"x"],
    b"\xff": [b"\xff"],
    b"X" * 70_000: [b"x"],
    b"X": [b"\0", b"\r", b"a" * 300_000],
}
OF_SOCKETS = {
    b"Sec-WebSocket-Version": [b"8", b"", b"\xff"],
    b"Sec-WebSocket-Key": [b"", b"x", b"\xff", b"=" * 24, base64.b64encode(bytes(15))],
    b"Sec-WebSocket-Extensions": [b"permessage-deflate", b"x;y=\xff", b";"],
    b"Sec-WebSocket-Protocol": [b"a,b", b"\xff", b","],
}
FRAMES = [
    *(b"\x81\x82\0\0\0\0\xff\xfe", b"\x81\x05hello", b"\xff" * 4, b"\x88\x80\0\0\0\0", bytes(64), b"\x89\xff"),
    *(b"\x81\xfe\xff\xff\0\0\0\0", b"\x81\xff" + b"\xff" * 8 + bytes(4), b"\x88\x82\0\0\0\0\0\1", b"\x8f\x80\0\0\0\0"),
    *(b"\x81\x82\0\0\0\0{}", b"\1\x81\0\0\0\0{\x81\x81\0\0\0\0}", b"\xc1\x82\0\0\0\0\xff\xff"),
]
BODIES = [
    b"{",
    b"[]",
    b"\xff\xfe",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"zz\r\n",
    b"-1\r\n\r\n",
    b"f" * 20 + b"\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
]


@define
class Draft:
    """A request that is not written yet."""

    rng: random.Random
    is_socket: bool
    line: list[bytes]
    pairs: list[tuple[bytes, bytes]]
    end: bytes = b"\r\n"
    colon: bytes = b": "
    rest: bytes = b""

    @classmethod
    def of(cls, rng, token):
        is_socket = rng.random() < 0.3
        pairs = [(b"Host", b"127.0.0.1"), (b"Authorization", b"Bearer " + token)]
        if is_socket:
            pairs += [(b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"), (b"Sec-WebSocket-Version", b"13")]
            pairs.append((b"Sec-WebSocket-Key", base64.b64encode(bytes(16))))
        return cls(rng, is_socket, [b"GET", b"/ws" if is_socket else b"/health", b"HTTP/1.1"], pairs)

    def method(self):
        self.line[0] = self.rng.choice(METHODS)

    def target(self):
        self.line[1] = self.rng.choice(SOCKETS if self.is_socket else TARGETS)

    def version(self):
        self.line[2] = self.rng.choice(VERSIONS)

    def header(self):
        odd = HEADERS | OF_SOCKETS if self.is_socket else HEADERS
        name = self.rng.choice(list(odd))
        self.pairs = [pair for pair in self.pairs if pair[0] != name] + [(name, self.rng.choice(odd[name]))]

    def missing(self):
        self.pairs.pop(self.rng.randrange(len(self.pairs)))
        self.pairs = self.pairs or [(b"X", b"x")]

    def twice(self):
        self.pairs.append(self.rng.choice(self.pairs))

    def many(self):
        self.pairs += [(b"X-%d" % index, b"x") for index in range(500)]

    def line_ends(self):
        self.end = self.rng.choice((b"\n", b"\r", b"\r\n ", b"\r\n\t"))

    def colons(self):
        self.colon = self.rng.choice((b":", b" : ", b"", b"\t:"))

    def body(self):
        self.rest = self.rng.choice(FRAMES if self.is_socket else BODIES)

    def written(self):
        head = [b" ".join(self.line), *(name + self.colon + value for name, value in self.pairs), b"", b""]
        return bytearray(self.end.join(head) + self.rest)


FAULTS = {
    Draft.header: 10,
    Draft.target: 6,
    Draft.body: 4,
    Draft.method: 3,
    Draft.missing: 2,
    **dict.fromkeys((Draft.version, Draft.twice, Draft.many, Draft.line_ends, Draft.colons), 1),
}


def request(number, token):
    """Return a request with one to three faults: the same for the same number."""
    rng = random.Random(number)
    draft = Draft.of(rng, token)
    for fault in rng.choices(list(FAULTS), list(FAULTS.values()), k=rng.randint(1, 3)):
        fault(draft)
    data = draft.written()
    for _ in range(rng.choice((0, 0, 0, 0, 1, 4))):
        place = rng.randrange(len(data))
        data[place : place + rng.choice((0, 1, 1))] = bytes([rng.randrange(256)])
    return bytes(data[: rng.randrange(1, len(data))] if rng.random() < 0.05 else data)


async def answer(port, data):
    """Send a request and return what the server sends until it closes the connection or says nothing more."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionError:
        return b""
    found = b""
    try:
        writer.write(data)
        async with asyncio.timeout(5):  # more than the time limit of a head
            found = await reader.read(65_536)
        if found.startswith(b"HTTP/1.1 101"):
            async with asyncio.timeout(0.5):
                found += await reader.read(65_536)
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.close()
    return found


async def send(port, token, numbers):
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(number):
        async with gate:
            return number, await answer(port, request(number, token))

    return await asyncio.gather(*map(one, numbers))


def test_no_malformed_request_causes_a_defect_or_a_line_in_the_log(home):
    with home.serving(limits={"header_seconds": 1, "requests_per_second": 1e9}) as running:
        before = len((home.path / "server.log").read_bytes())
        found = asyncio.run(send(running.port, running.token.encode(), range(COUNT)))
        statuses = {number: [int(status) for status in _STATUS.findall(said)] for number, said in found}
        assert running.get("/health").status == 200
    defects = {number: found for number, found in statuses.items() if any(status >= 500 for status in found)}
    assert not defects
    seen = {status for found in statuses.values() for status in found}
    assert {400, 401, 403, 421, 101, 200} <= seen, "the requests are not as they should be"
    log = (home.path / "server.log").read_bytes()[before:].decode("utf-8", "replace")
    assert log == "", log[-3_000:]


@pytest.mark.parametrize(
    "origin", ["http://[::1", "http://[evil", "null", "", "http://", "://", "http://[v1.x]", "\xff"]
)
@pytest.mark.parametrize("path", ["/health", "/api/status", "/rpc", "/ws", "/none"])
def test_a_malformed_origin_is_another_origin(server, origin, path):
    """It is refused before the token is looked at, and before it is counted."""
    for token in ("", server.token):
        assert server.get(path, headers={"Origin": origin}, token=token).status == 403


def test_a_target_that_is_no_path_is_refused(server):
    for target in ("*", "127.0.0.1:80"):
        with server.raw() as connection:
            head = f"OPTIONS {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
            connection.sendall(head.encode())
            assert connection.recv(1_000).startswith(b"HTTP/1.1 400")


def test_a_connection_that_is_reset_while_it_sends_is_no_defect(home):
    with home.serving() as running:
        before = len((home.path / "server.log").read_bytes())
        bodies = (
            b"Content-Length: 10\r\n\r\nx",
            b"Transfer-Encoding: chunked\r\n\r\n5\r\nx",
            b"Transfer-Encoding: chunked\r\n\r\nzz",
        )
        heads = [
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s" % (path, token)
            for path in (b"/rpc", b"/mcp", b"/api/memories", b"/agents/ann/rpc")
            for token in (b"", f"Authorization: Bearer {running.token}\r\n".encode())
        ]
        for data in (b"GET / HT", *(head + body for head in heads for body in bodies)):
            for resets in (True, False):
                connection = running.raw()
                if resets:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.sendall(data)
                connection.close()
        assert running.get("/health").status == 200
    assert (home.path / "server.log").read_bytes()[before:] == b""
