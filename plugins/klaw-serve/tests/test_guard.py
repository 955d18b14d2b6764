"""What the guard keeps out."""

from __future__ import annotations

import http.client
import shutil
import ssl
import stat
import subprocess
from contextlib import suppress

import pytest
from starlette.exceptions import HTTPException

from klaw_serve import guard
from klaw_serve.options import Limits, Listening


@pytest.mark.parametrize("host", ["evil.example", "klaw.evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.7"])
def test_another_host_name_is_rejected(server, host):
    """A site can make its own name point at this machine (DNS rebinding): its pages are then same-origin."""
    assert server.get("/api/status", headers={"Host": host}).status == 421
    assert server.get("/", headers={"Host": host}).status == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:80", "LOCALHOST:8490"])
def test_names_of_this_machine_are_accepted(server, host):
    assert server.get("/api/collections", headers={"Host": host}).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:1"])
def test_another_origin_is_rejected_even_with_the_token(server, origin):
    answer = server.get("/api/collections", headers={"Origin": origin})
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_only_the_own_origin_is_allowed(server):
    own = f"http://127.0.0.1:{server.port}"
    answer = server.get("/api/collections", headers={"Origin": own})
    assert answer.status == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert server.ask("OPTIONS", "/api/collections", headers={"Origin": own}).status == 405


@pytest.mark.parametrize("token", ["", "wrong", "x" * 100_000])
@pytest.mark.parametrize("path", ["/api/status", "/metrics", "/rpc", "/api/events", "/agents/bob/api/status", "/none"])
def test_every_request_needs_the_token(server, path, token):
    answer = server.get(path, token=token)
    assert answer.status in {400, 401}  # 400: uvicorn takes no such long header
    assert answer.status == 400 or answer.headers["www-authenticate"] == "Bearer"


def test_the_file_of_the_token_is_private(home):
    with home.serving() as running:
        assert stat.S_IMODE((home.data / "serve.token").stat().st_mode) == 0o600
        assert stat.S_IMODE((home.data / "server.json").stat().st_mode) == 0o600
        assert stat.S_IMODE((home.data / "serve.sock").stat().st_mode) == 0o600
        assert len(running.token) >= 40
    assert home.run("serve", "token").stdout.strip() == running.token
    (home.data / "serve.token").chmod(0o644)
    refused = home.run("serve", "--port", "0")
    assert refused.returncode == 1
    assert "others can read" in refused.stderr


def test_the_size_of_a_request_is_limited(home):
    with home.serving(limits={"body_bytes": 1_000}) as running:
        assert running.ask("POST", "/rpc", b"x" * 2_000).status == 413
        chunked = iter([b"x" * 600, b"x" * 600])
        assert _chunked(running, chunked) == 413


def test_the_duration_of_a_request_is_limited(home):
    with home.serving(limits={"header_seconds": 0.3, "request_seconds": 0.1}) as running:
        with running.raw() as slow:  # a head that never ends: the server closes the connection
            slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")
            assert slow.recv(1_000) == b""
        for request, rest in (("", b"\r\n"), ("Content-Length: 10\r\n", b"x")):  # bytes that begin no request
            with _answered(running, f"GET /health HTTP/1.1\r\nHost: localhost\r\n{request}\r\n", 200) as idle:
                idle.sendall(rest)
                assert _is_ended(idle)
        head = f"POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {running.token}\r\n"
        _answered(running, f"{head}Content-Length: 10\r\n\r\n", 408).close()  # a body that never comes


def _answered(running, request, status):
    """Send a request until it is answered so: on a busy machine it may come too late for limits that are so small."""
    for _ in range(100):
        connection = running.raw()
        with suppress(ConnectionError):
            connection.sendall(request.encode())
            if connection.recv(4_000).startswith(f"HTTP/1.1 {status}".encode()):
                return connection
        connection.close()
    raise AssertionError(f"no answer is {status}")


def test_the_rate_of_requests_from_an_address_is_limited(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(guard.time, "monotonic", lambda: now[0])
    counting = guard.Guard(None, Listening(), Limits(requests_per_second=3), None, None)

    def accepted(address, times):
        taken = 0
        for _ in range(times):
            with suppress(HTTPException):
                counting._count({"client": (address, 1), "klaw.authorised": False})
                taken += 1
        return taken

    assert accepted("192.0.2.1", 10) == 6, "a burst of twice as many"
    assert accepted("192.0.2.2", 1) == 1, "another address has its own"
    now[0] += 1
    assert accepted("192.0.2.1", 10) == 3
    now[0] += 3600
    assert accepted("192.0.2.1", 10) == 6


def test_too_many_requests_are_answered_with_429(home):
    with home.serving(limits={"requests_per_second": 0.001}) as running:
        assert running.get("/health").status == 429


@pytest.mark.parametrize("part", ["X-A: ", "X-A: a\r\nX-B: ", "X-A: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-C: "])
def test_an_endless_head_or_trailer_is_rejected(server, part):
    """The parser itself has no limit, and keeps everything until the line ends."""
    with server.raw() as endless:
        head = f"POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n{part}"
        answered = b""
        try:
            endless.sendall(head.encode())
            for _ in range(200):
                endless.sendall(b"x" * 10_000)
            answered = endless.recv(1_000)
        except ConnectionError:  # closed while we were still sending
            pass
        assert not answered or answered.startswith(b"HTTP/1.1 400")
    assert server.get("/health").status == 200


@pytest.mark.parametrize(
    "framing", ["Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 6"]
)
def test_a_body_with_two_lengths_is_refused(server, framing):
    """A proxy in front might take the other one, and the rest of the body for a request."""
    with server.raw() as ambiguous:
        head = f"POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n{framing}\r\n\r\n"
        ambiguous.sendall(head.encode() + b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        assert ambiguous.recv(1_000).startswith(b"HTTP/1.1 400")


def _chunked(running, parts):
    connection = http.client.HTTPConnection(running.host, running.port, timeout=running.patience)
    connection.request("POST", "/rpc", parts, {"Authorization": f"Bearer {running.token}"}, encode_chunked=True)
    status = connection.getresponse().status
    connection.close()
    return status


def test_other_machines_need_encryption(home):
    refused = home.run("serve", "--host", "0.0.0.0")
    assert refused.returncode == 2
    assert "--tls-cert" in refused.stderr
    assert "--behind-proxy" in refused.stderr
    assert home.run("serve", "--tls-key", home.data / "serve.token").returncode == 2
    with home.serving("--host", "0.0.0.0", "--behind-proxy", "--allow-host", "memory.example") as running:
        assert running.get("/health", headers={"Host": "memory.example"}).status == 200
        assert running.get("/health", headers={"Host": "10.0.0.7:8490"}).status == 200
        assert running.get("/health", headers={"Host": "evil.example"}).status == 421


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate with")
def test_with_a_certificate_only_tls_is_accepted(home):
    key, certificate = home.path / "key.pem", home.path / "cert.pem"
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = [*request, *names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    with home.serving("--tls-cert", str(certificate), "--tls-key", str(key)) as running:
        trusted = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", running.port, timeout=running.patience, context=trusted)
        connection.request("GET", "/health")
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            running.get("/health")


def _is_ended(connection):
    """Return whether the server closes a connection, before or after the rest of an answer."""
    with suppress(ConnectionError):
        while connection.recv(4_000):
            pass
    return True
