"""Downloads from hubs that redirect, break off, drip, lie and refuse, over real sockets."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from klaw_http import BodyError, NoAnswerError, StatusError
from klaw_http.download import DownloadLimits, download, redirected
from klaw_testing.doubles.wire import Wire, reply

CONTENT = bytes(range(256)) * 4096  # 1 MiB, every piece of it different from its neighbours' places
LIMITS = DownloadLimits(retries=2, pause=lambda _seconds: None)

Fetch = Callable[..., bytes]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    """Return a function that downloads a file and returns its content."""

    def fetched(url: str, *, size: int = len(CONTENT), limits: DownloadLimits = LIMITS, **options: object) -> bytes:
        target = tmp_path / "file"
        target.unlink(missing_ok=True)
        download(url, target, size=size, limits=limits, **options)  # type: ignore[arg-type]  # as each test varies
        return target.read_bytes()

    return fetched


@pytest.fixture
def cdn() -> Iterator[HTTPServer]:
    with HTTPServer() as server:
        yield server


def _ranged(content: bytes) -> Callable[[Request], Response]:
    """Answer as a content network does: ranges are understood."""

    def answer(request: Request) -> Response:
        said = request.headers.get("range")
        if said is None:
            return Response(content)
        begin = int(said.removeprefix("bytes=").removesuffix("-"))
        headers = {"content-range": f"bytes {begin}-{len(content) - 1}/{len(content)}"}
        return Response(content[begin:], 206, headers)

    return answer


def _cut(body: bytes, claimed: int, status: str = "200 OK", *headers: str) -> bytes:
    """Return a response that says it is longer than it is."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {claimed}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_a_file_is_downloaded_completely_with_progress(httpserver: HTTPServer, fetch: Fetch) -> None:
    counts: list[int] = []
    httpserver.expect_request("/f").respond_with_data(CONTENT)
    assert fetch(httpserver.url_for("/f"), on_bytes=counts.append) == CONTENT
    assert counts == sorted(counts)
    assert counts[-1] == len(CONTENT)


def test_a_redirect_to_the_content_network_is_followed(httpserver: HTTPServer, cdn: HTTPServer, fetch: Fetch) -> None:
    cdn.expect_request("/blob", query_string="signature=s").respond_with_data(CONTENT)
    httpserver.expect_request("/f").respond_with_data(
        status=302, headers={"location": cdn.url_for("/blob?signature=s")}
    )
    assert fetch(httpserver.url_for("/f")) == CONTENT
    (asked, _) = cdn.log[0]
    assert {"authorization", "cookie", "referer"} & {name.lower() for name, _ in asked.headers} == set()


def test_a_relative_redirect_is_followed(httpserver: HTTPServer, fetch: Fetch) -> None:
    httpserver.expect_request("/a/f").respond_with_data(status=307, headers={"location": "../b/f"})
    httpserver.expect_request("/b/f").respond_with_data(CONTENT)
    assert fetch(httpserver.url_for("/a/f")) == CONTENT


def test_the_number_of_redirects_is_limited(httpserver: HTTPServer, fetch: Fetch) -> None:
    httpserver.expect_request("/f").respond_with_data(status=302, headers={"location": "/f?secret"})
    with pytest.raises(BodyError, match="redirects more than 5 times") as caught:
        fetch(httpserver.url_for("/f"))
    assert len(httpserver.log) == 6
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("http://cdn.example/f?signature=s", "http://cdn.example, which is not encrypted"),
        ("ftp://cdn.example/f", "ftp://cdn.example, which is not encrypted"),
        ("file:///etc/passwd", "valid address"),
        ("https://user:key@cdn.example/f", "credentials"),
        ("https://[::1/f", "valid address"),
        ("https://cdn.example:99999/f", "valid address"),
        ("https://cdn example/f", "valid address"),
        ("https://xn--0.example/f", "valid address"),
        ("https://[v1.a]/f", "valid address"),
        ("https://cdn.example/" + "x" * 20_000, "valid address"),
        ("https://cdn.example/\x1b[31m", "valid address"),
    ],
)
def test_redirects_to_forbidden_addresses_are_rejected(location: str, message: str) -> None:
    with pytest.raises(BodyError) as caught:
        redirected("https://hub.example/f", location)
    assert message in str(caught.value)
    assert "signature" not in str(caught.value)
    assert "key@" not in str(caught.value)


def test_redirects_to_allowed_addresses_are_followed() -> None:
    assert redirected("https://hub.example/a/f", "../b?x=1#part") == "https://hub.example/b?x=1"
    assert redirected("https://hub.example/f", "//cdn.example/f") == "https://cdn.example/f"
    assert redirected("http://mirror.example/f", "https://cdn.example/f") == "https://cdn.example/f"
    assert redirected("http://mirror.example/f", "http://cdn.example/f") == "http://cdn.example/f"


@pytest.mark.parametrize("location", ["http://xn--a/", "mailto:a@b", "http://[::1", f"http://{'a' * 64}.example/"])
def test_a_redirect_to_nowhere_is_an_error_of_this_library(fetch: Fetch, location: str) -> None:
    with (
        Wire(reply(b"", "302 Away", location=location)) as wire,
        pytest.raises(BodyError, match="valid address"),
    ):
        fetch(wire.url + "/f")


@pytest.mark.parametrize("field", ["connect_timeout_seconds", "read_timeout_seconds", "stretch_seconds"])
@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_an_invalid_timeout_is_rejected(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        DownloadLimits(**{field: value})  # type: ignore[arg-type]  # one of its fields


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_rejected_request_is_not_repeated(httpserver: HTTPServer, fetch: Fetch, status: int) -> None:
    httpserver.expect_request("/f").respond_with_data("why", status=status)
    with pytest.raises(StatusError, match=f"answers {status}") as caught:
        fetch(httpserver.url_for("/f"))
    assert caught.value.status == status
    assert len(httpserver.log) == 1


def test_a_request_to_a_busy_server_is_repeated_when_it_says(fetch: Fetch) -> None:
    pauses: list[float] = []
    limits = DownloadLimits(retries=2, pause=pauses.append)
    busy, late = reply(b"", "503 Busy", retry_after="7"), reply(b"", "429 Slow", retry_after="9999")
    with Wire(busy, late, reply(CONTENT)) as wire:
        assert fetch(wire.url + "/f", limits=limits) == CONTENT
    assert pauses == [7.0, 60.0]


def test_an_interrupted_download_continues(fetch: Fetch) -> None:
    half = len(CONTENT) // 2
    rest = _cut(CONTENT[half:], half, "206 Partial Content", f"content-range: bytes {half}-{len(CONTENT) - 1}/*")
    with Wire(_cut(CONTENT[:half], len(CONTENT)), rest) as wire:
        assert fetch(wire.url + "/f") == CONTENT
    assert f"range: bytes={half}-".encode() in wire.requests[1].lower()


def test_progress_resets_the_number_of_retries(fetch: Fetch) -> None:
    """Ten breaks in a row, each after a good stretch, are no reason to give up."""
    step = len(CONTENT) // 10 + 1
    parts = [
        _cut(CONTENT[at : at + step], len(CONTENT) - at, "206 Partial Content", f"content-range: bytes {at}-/*")
        for at in range(step, len(CONTENT), step)
    ]
    limits = DownloadLimits(retries=1, stretch_bytes=step, pause=lambda _seconds: None)
    with Wire(_cut(CONTENT[:step], len(CONTENT)), *parts) as wire:
        assert fetch(wire.url + "/f", limits=limits) == CONTENT


@pytest.mark.parametrize(
    "second",
    [
        reply(CONTENT),
        _cut(CONTENT, len(CONTENT), "206 Partial Content", "content-range: bytes 0-1048575/1048576"),
    ],
    ids=["no ranges", "another range"],
)
def test_a_server_without_ranges_sends_the_whole_file_again(fetch: Fetch, second: bytes) -> None:
    with Wire(_cut(CONTENT[:1000], len(CONTENT)), second) as wire:
        assert fetch(wire.url + "/f") == CONTENT


def test_a_rejected_range_starts_the_download_again(fetch: Fetch) -> None:
    with Wire(_cut(CONTENT[:1000], len(CONTENT)), reply(b"", "416 No"), reply(CONTENT)) as wire:
        assert fetch(wire.url + "/f") == CONTENT
    assert b"range:" not in wire.requests[2].lower()


def test_a_download_that_always_breaks_off_is_reported_with_its_size(fetch: Fetch) -> None:
    with Wire(_cut(CONTENT[:1000], len(CONTENT))) as wire, pytest.raises(NoAnswerError, match="1,000 of 1,048,576"):
        fetch(wire.url + "/f")
    assert len(wire.requests) == 3


@pytest.mark.parametrize("change", [-1, 1], ids=["shorter", "longer"])
def test_a_wrong_size_is_rejected_before_the_body_is_read(httpserver: HTTPServer, fetch: Fetch, change: int) -> None:
    httpserver.expect_request("/f").respond_with_data(CONTENT)
    with pytest.raises(BodyError, match=r"has 1,048,576 bytes, expected 1,048,57"):
        fetch(httpserver.url_for("/f"), size=len(CONTENT) + change)


def test_a_body_without_end_is_stopped(fetch: Fetch, tmp_path: Path) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(10_000):
            connection.sendall(b"x" * 65536)

    with Wire(endless) as wire, pytest.raises(BodyError, match="more than the expected"):
        fetch(wire.url + "/f")
    assert (tmp_path / "file").stat().st_size < len(CONTENT) + 1_000_000


@pytest.mark.parametrize("where", ["headers", "body"])
def test_a_dripping_server_ends_the_attempt(fetch: Fetch, where: str) -> None:
    limits = DownloadLimits(retries=0, stretch_seconds=0.4, pause=lambda _seconds: None)
    head, drop = (b"HTTP/1.1 200 OK\r\n", b"x-more: 1\r\n") if where == "headers" else (_cut(b"", len(CONTENT)), b"x")
    with Wire() as wire:
        wire.play(wire.drip(head, drop))
        with pytest.raises(NoAnswerError, match="sent no data, or almost none"):
            fetch(wire.url + "/f", limits=limits)


def test_a_slow_but_steady_download_is_allowed(fetch: Fetch) -> None:
    """In all it takes longer than a stretch may, because each stretch has its own time."""
    content = b"y" * 40
    limits = DownloadLimits(retries=0, stretch_seconds=1.5, stretch_bytes=1)
    with Wire() as wire:
        wire.play(wire.drip(_cut(b"", len(content)), b"y", drops=40))
        assert fetch(wire.url + "/f", size=len(content), limits=limits) == content


def test_a_silent_server_ends_the_attempt(fetch: Fetch) -> None:
    limits = DownloadLimits(retries=0, read_timeout_seconds=0.2)
    with Wire(b"", deaf_seconds=20) as wire, pytest.raises(NoAnswerError, match="sent no data, or almost none"):
        fetch(wire.url + "/f", limits=limits)


def test_an_unreachable_server_is_reported(fetch: Fetch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        fetch(f"http://127.0.0.1:{port}/f")


def test_a_compressed_body_is_rejected(httpserver: HTTPServer, fetch: Fetch) -> None:
    httpserver.expect_request("/f").respond_with_data(CONTENT, headers={"content-encoding": "gzip"})
    with pytest.raises(BodyError, match="compressed"):
        fetch(httpserver.url_for("/f"))


def test_ranges_work_over_a_redirect(httpserver: HTTPServer, cdn: HTTPServer, fetch: Fetch) -> None:
    """The hub is asked again after a break: its address of the content network may have expired."""
    with Wire(_cut(CONTENT[:1000], len(CONTENT))) as breaking:
        locations = iter([breaking.url + "/blob", cdn.url_for("/blob")])

        def redirect(_request: Request) -> Response:
            return Response(status=302, headers={"location": next(locations)})

        httpserver.expect_request("/f").respond_with_handler(redirect)
        cdn.expect_request("/blob").respond_with_handler(_ranged(CONTENT))
        assert fetch(httpserver.url_for("/f")) == CONTENT
    (asked, _) = cdn.log[0]
    assert asked.headers["range"] == "bytes=1000-"


def test_an_existing_file_is_not_overwritten(httpserver: HTTPServer, tmp_path: Path) -> None:
    target = tmp_path / "there"
    target.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        download(httpserver.url_for("/f"), target, size=1, limits=LIMITS)
    assert target.read_bytes() == b"mine"
