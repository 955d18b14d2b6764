"""The client against servers that are slow, busy, broken or hostile, over real sockets."""

from __future__ import annotations

import gzip
import io
import json
import logging
import math
import pickle
import socket
import traceback
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from werkzeug import Request

from klaw_core import KlawError
from klaw_http import BodyError, HttpClient, HttpError, NoAnswerError, StatusError
from klaw_http.retrying import backoff_seconds
from klaw_testing.doubles.wire import Script, Wire, reply

OK = reply(b'{"fine": true}')
KEY = "sk-0123456789abcdef"
TEXT = "what is private"


def client_for(wire: Wire, **options: object) -> HttpClient:
    options.setdefault("pause", lambda _seconds: None)
    return HttpClient(wire.url, **options)  # type: ignore[arg-type]  # each test passes what it varies


def test_a_json_object_is_sent_and_received() -> None:
    with Wire(OK) as wire:
        assert client_for(wire).post("/api/x", {"text": "снег \ud800"}) == {"fine": True}
    head, _, body = wire.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/x HTTP/1.1\r\n")
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body) == {"text": "снег \ud800"}


def test_get_sends_no_body() -> None:
    with Wire(OK) as wire:
        assert client_for(wire).get("/api/tags") == {"fine": True}
    assert wire.requests[0].startswith(b"GET /api/tags HTTP/1.1\r\n")
    assert b"content-length" not in wire.requests[0].lower()


def test_a_path_in_the_base_url_is_kept() -> None:
    with Wire(OK) as wire:
        HttpClient(wire.url + "/v1/").get("/models")
    assert wire.requests[0].startswith(b"GET /v1/models ")


@pytest.mark.parametrize("status", ["429 Too Many Requests", "502 Bad", "503 Busy", "504 Late"])
def test_a_request_to_a_busy_server_is_repeated(status: str) -> None:
    with Wire(reply(b"", status), reply(b"", status), OK) as wire:
        assert client_for(wire, retries=2).get("/") == {"fine": True}
    assert len(wire.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 500, 501])
def test_a_rejected_request_is_not_repeated(status: int) -> None:
    refusal = reply(b'{"error": "no\\n\\u001b[31m way"}', f"{status} No")
    with Wire(refusal, OK) as wire, pytest.raises(StatusError) as caught:
        client_for(wire).get("/x")
    assert len(wire.requests) == 1
    assert (caught.value.status, caught.value.detail) == (status, "no [31m way")
    assert wire.url in str(caught.value)


def test_a_temporary_rejection_is_repeated_and_finally_reported() -> None:
    refusal = reply(b'{"error": {"message": "a hiccup"}}', "500 Oops")
    with Wire(refusal, OK) as wire:
        assert client_for(wire, is_final=lambda error: error.status != 500).get("/") == {"fine": True}
    with Wire(refusal) as wire, pytest.raises(StatusError, match=r"500: a hiccup \(3 attempts\)") as caught:
        client_for(wire, is_final=lambda error: "never" in error.detail).get("/")
    assert (caught.value.status, caught.value.detail, len(wire.requests)) == (500, "a hiccup", 3)
    with Wire(reply(b'{"error": "never"}', "500 Oops")) as wire, pytest.raises(StatusError):
        client_for(wire, is_final=lambda error: "never" in error.detail).get("/")
    assert len(wire.requests) == 1


def test_the_message_of_a_busy_server_is_reported() -> None:
    said = json.dumps({"error": {"message": f"quota of {KEY} exceeded"}}).encode()
    with Wire(reply(said, "429 Later")) as wire, pytest.raises(NoAnswerError, match=r"429: quota of \*\*\* exceeded"):
        client_for(wire, retries=0, headers={"x-api-key": KEY}).get("/")


def test_a_file_is_sent_as_a_form_completely_at_each_attempt() -> None:
    content = b"one\r\n--two\0\xff"
    with Wire(reply(b"", "503 Busy"), OK) as wire:
        assert client_for(wire).upload("/files", {"purpose": "batch"}, "a.jsonl", content) == {"fine": True}
    assert len(wire.requests) == 2
    for sent in wire.requests:
        head, _, body = sent.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().lower().split("\r\n")[1:])
        kind = headers["content-type"]
        request = Request.from_values(method="POST", input_stream=io.BytesIO(body), content_type=kind)
        assert request.form.to_dict() == {"purpose": "batch"}
        with closing(request.files["file"]) as file:
            assert (file.filename, file.read()) == ("a.jsonl", content)


def test_an_object_is_put_and_deleted_again_after_a_busy_answer() -> None:
    with Wire(reply(b"", "503 Busy"), OK, OK) as wire:
        assert client_for(wire).put("/tables/1", {"size": 3}) == {"fine": True}
        assert client_for(wire).delete("/tables/1") == {"fine": True}
    assert [sent.split(b" HTTP")[0] for sent in wire.requests] == [b"PUT /tables/1"] * 2 + [b"DELETE /tables/1"]
    assert [sent.endswith(b'{"size": 3}') for sent in wire.requests] == [True, True, False]


def test_a_file_is_fetched_up_to_its_limit() -> None:
    with Wire(reply(b"\x00lines\n")) as wire:
        assert client_for(wire).fetch("/files/1/content", 7) == b"\x00lines\n"
        with pytest.raises(BodyError, match="larger than 6 bytes"):
            client_for(wire).fetch("/files/1/content", 6)


def test_the_number_of_retries_is_limited() -> None:
    pauses: list[float] = []
    with Wire(reply(b"", "503 Busy")) as wire, pytest.raises(NoAnswerError, match=r"answers 503 \(4 attempts\)"):
        client_for(wire, retries=3, pause=pauses.append).get("/")
    assert len(wire.requests) == 4
    assert [full / 2 <= pause <= full for pause, full in zip(pauses, (0.25, 0.5, 1.0), strict=True)] == [True] * 3


def test_pauses_are_jittered() -> None:
    pauses: list[float] = []
    with Wire(reply(b"", "503 Busy")) as wire:
        for _ in range(4):
            with pytest.raises(NoAnswerError):
                client_for(wire, retries=1, pause=pauses.append).get("/")
    assert len(set(pauses)) == 4


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("7", 7.0, 7.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0.1, 0.25),
        ("soon", 0.1, 0.25),
        ("-3", 0.1, 0.25),
        ("in 12 hours", 3600.0, 43_200.0),
    ],
)
def test_retry_after_is_obeyed(value: str, low: float, high: float) -> None:
    if value == "in 12 hours":
        value = format_datetime(datetime.now(UTC) + timedelta(hours=12), usegmt=True)
    pauses: list[float] = []
    with Wire(reply(b"", "429 Slow down", retry_after=value), OK) as wire:
        client_for(wire, deadline_seconds=86_400.0, read_timeout_seconds=5.0, pause=pauses.append).get("/")
    assert low <= pauses[0] <= high


def test_pauses_grow_to_at_most_eight_seconds() -> None:
    assert 4.0 <= backoff_seconds(7) <= 8.0
    assert 4.0 <= backoff_seconds(2_000) <= 8.0


@pytest.mark.parametrize("field", ["connect_timeout_seconds", "read_timeout_seconds", "deadline_seconds"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 86_401.0])
def test_an_invalid_timeout_is_rejected(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        HttpClient("http://localhost", **{field: value})  # type: ignore[arg-type]  # one of its fields


@pytest.mark.parametrize("value", ["3600", "9" * 400])
def test_a_pause_beyond_the_deadline_is_not_started(value: str) -> None:
    pauses: list[float] = []
    later = reply(b"", "429 Slow down", retry_after=value)
    with Wire(later, OK) as wire, pytest.raises(NoAnswerError, match="deadline of 30 s"):
        client_for(wire, deadline_seconds=30, pause=pauses.append).get("/")
    assert pauses == []


def test_a_request_is_repeated_after_a_broken_connection() -> None:
    half = reply(b'{"fine": true, "and": "more"}')[:-9]
    with Wire(b"", half, OK) as wire:
        assert client_for(wire).post("/", {}) == {"fine": True}
    assert len(wire.requests) == 3


def test_a_body_that_always_breaks_off_is_reported() -> None:
    half = reply(b'{"fine": true}')[:-3]
    with Wire(half) as wire, pytest.raises(NoAnswerError, match="without sending complete message body"):
        client_for(wire).post("/", {})


def test_nobody_listening_is_reported_with_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    pauses: list[float] = []
    with pytest.raises(NoAnswerError, match=rf"127\.0\.0\.1:{port}/x cannot be reached: .*refused.*3 attempts"):
        HttpClient(f"http://127.0.0.1:{port}", pause=pauses.append).get("/x")
    assert len(pauses) == 2


def test_a_host_without_an_address_is_reported() -> None:
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        HttpClient("http://nowhere.invalid", retries=0).get("/")


def test_the_addresses_of_a_name_share_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four dead addresses of 1.5 s each, and 2 s in all: the second gets what is left, the others nothing."""
    now, tried = [100.0], []

    def dead(address: tuple[str, int], timeout: float, **_options: object) -> socket.socket:
        tried.append((address[0], timeout))
        now[0] += timeout
        raise TimeoutError

    places = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"192.0.2.{number}", 80)) for number in range(4)]
    monkeypatch.setattr("klaw_http.deadline.monotonic", lambda: now[0])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_asked, **_options: places)
    monkeypatch.setattr(socket, "create_connection", dead)
    with pytest.raises(NoAnswerError, match="did not finish within 2 s"):
        HttpClient("http://many.example", connect_timeout_seconds=1.5, deadline_seconds=2.0).get("/")
    assert tried == [("192.0.2.0", 1.5), ("192.0.2.1", 0.5)]


def test_the_next_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def two(host: str, port: int, *asked: Any, **options: Any) -> list[Any]:
        names = ["127.0.0.2", "127.0.0.1"] if host == "two.example" else [host]
        return [place for name in names for place in resolve(name, port, *asked, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with Wire(OK) as wire:
        assert HttpClient(wire.url.replace("127.0.0.1", "two.example"), retries=0).get("/") == {"fine": True}


def test_an_address_keeps_the_interface_that_it_was_resolved_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """``fe80::1%lo`` comes back as an address and a number; without the number nothing can be reached there."""
    tried = []

    def dead(address: tuple[str, int], *_limit: object, **_options: object) -> socket.socket:
        tried.append(address[0])
        raise TimeoutError

    addresses = [("fe80::1", 80, 0, 3), ("fe80::1", 80, 0, 4), ("2001:db8::1", 80, 0, 0), ("192.0.2.1", 80)]
    places = [(socket.AF_UNSPEC, socket.SOCK_STREAM, 6, "", address) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_asked, **_options: places)
    monkeypatch.setattr(socket, "create_connection", dead)
    with pytest.raises(NoAnswerError, match="cannot be reached"):
        HttpClient("http://near.example", retries=0).get("/")
    assert tried == ["fe80::1%3", "fe80::1%4", "2001:db8::1", "192.0.2.1"]


def test_a_server_that_does_not_speak_http_is_reported() -> None:
    with Wire(b"SSH-2.0-OpenSSH_9.2\r\n\r\n") as wire, pytest.raises(NoAnswerError, match="cannot be reached"):
        client_for(wire, retries=0).get("/")


def test_a_silent_server_ends_at_the_read_timeout() -> None:
    wire = Wire()
    wire.play(wire.drip(b"", b"", drops=100))
    with wire, pytest.raises(NoAnswerError, match=r"was silent for 0\.2 s"):
        client_for(wire, read_timeout_seconds=0.2).get("/")
    assert len(wire.requests) == 1


@pytest.fixture(params=["headers", "body", "gzip body", "chunked body", "error body"])
def dripping(request: pytest.FixtureRequest) -> Iterator[Wire]:
    """A server that drips one part of its response for ten seconds, and would then be done."""
    wire = Wire()
    head = b"HTTP/1.1 200 OK\r\n"
    scripts: dict[str, Script] = {
        "headers": wire.drip(head, b"x-drop: 1\r\n"),
        "body": wire.drip(head + b"content-length: 200\r\n\r\n", b" "),
        "gzip body": wire.drip(head + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10], b"\0\0\0\xff\xff"),
        "chunked body": wire.drip(head + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        "error body": wire.drip(b"HTTP/1.1 400 No\r\ncontent-length: 200\r\n\r\n", b" "),
    }
    wire.play(scripts[request.param])
    with wire:
        yield wire


def test_a_dripping_server_ends_at_the_deadline(dripping: Wire) -> None:
    with pytest.raises((NoAnswerError, StatusError)):
        client_for(dripping, deadline_seconds=0.4, retries=5).get("/")
    assert len(dripping.requests) == 1


def test_the_deadline_is_named() -> None:
    wire = Wire()
    wire.play(wire.drip(b"HTTP/1.1 200 OK\r\n", b"x: 1\r\n"))
    with wire, pytest.raises(NoAnswerError, match=r"/slow did not finish within 0\.3 s"):
        client_for(wire, deadline_seconds=0.3).get("/slow")


def test_a_server_that_reads_nothing_ends_at_the_deadline() -> None:
    with Wire(OK, deaf_seconds=5) as wire:
        with pytest.raises(NoAnswerError, match="did not finish"):
            client_for(wire, deadline_seconds=0.4).post("/", {"text": "x" * 30_000_000})
        assert wire.deaf  # the client gave up first


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a": tru', b"<html>", b"\xff\xfe", b"[" * 200_000, b'{"a": NaN}', b'{"a": -Infinity}']
)
def test_an_answer_that_is_not_json_is_reported(body: bytes) -> None:
    with Wire(reply(body)) as wire, pytest.raises(BodyError, match=r"127\.0\.0\.1.*not valid JSON"):
        client_for(wire).get("/")
    assert len(wire.requests) == 1


@pytest.mark.parametrize("body", [b"[]", b"null", b"3", b'"text"'])
def test_an_answer_that_is_no_object_is_reported(body: bytes) -> None:
    with Wire(reply(body)) as wire, pytest.raises(BodyError, match="not an object"):
        client_for(wire).get("/")


def test_a_large_body_is_not_read() -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b" " * 65536)

    with Wire(endless) as wire, pytest.raises(BodyError, match="larger than 100,000 bytes"):
        client_for(wire, max_response_bytes=100_000).get("/")


def test_a_large_explanation_does_not_hide_the_status() -> None:
    with Wire(reply(b"x" * 1_000_000, "400 No")) as wire, pytest.raises(StatusError) as caught:
        client_for(wire).get("/")
    assert caught.value.detail == ""


def test_an_explanation_that_breaks_off_does_not_hide_the_status() -> None:
    half = reply(b'{"error": "no such model"}', "404 No")[:-5]
    with Wire(half) as wire, pytest.raises(StatusError) as caught:
        client_for(wire).get("/")
    assert (caught.value.status, caught.value.detail, len(wire.requests)) == (404, "", 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with Wire(OK) as elsewhere, Wire(reply(b"", f"{status} Away", location=elsewhere.url)) as wire:
        with pytest.raises(StatusError, match="redirect"):
            client_for(wire, headers={"x-goog-api-key": KEY}).post("/", {"text": TEXT})
        assert elsewhere.requests == []


@pytest.mark.parametrize("location", ["http://[::1", "http://xn--a/", "mailto:a@b", "http://[v1.a]/", "\\x"])
def test_a_redirect_to_nowhere_is_an_error_of_this_library(location: str) -> None:
    with Wire(reply(b"", "302 Away", location=location)) as wire, pytest.raises(HttpError, match=r"127\.0\.0\.1"):
        client_for(wire).get("/")


def test_a_host_that_httpx_rejects_is_an_error_of_this_library() -> None:
    with pytest.raises(BodyError, match=r"http://1\.2\.3\.999/ is not a valid address"):
        HttpClient("http://1.2.3.999").get("/")


def test_proxies_from_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire(OK) as proxy, Wire(OK) as wire:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        client_for(wire).get("/")
        assert (len(proxy.requests), len(wire.requests)) == (0, 1)


@pytest.mark.parametrize("before", ["Incorrect API key provided: ", "x" * 290])
def test_keys_are_sent_and_never_shown(caplog: pytest.LogCaptureFixture, before: str) -> None:
    caplog.set_level(logging.DEBUG)
    said = json.dumps({"error": {"message": f"{before}{KEY}"}}).encode()
    with Wire(reply(b"", "503 Busy"), reply(said, "401 No")) as wire:
        client = client_for(wire, headers={"authorization": f"Bearer {KEY}"})
        with pytest.raises(StatusError) as caught:
            client.post("/", {"input": TEXT})
    assert f"authorization: bearer {KEY}".encode() in wire.requests[1].lower()
    shown = repr(client) + repr(caught.value) + caught.value.detail + caplog.text
    shown += "".join(traceback.format_exception(caught.value))
    assert KEY[:8] not in shown
    assert TEXT not in shown


@pytest.mark.parametrize("value", [f"{KEY}\n", f" {KEY}", f"{KEY}\r\nx: y", f"{KEY}…"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(ValueError, match="header x-api-key") as caught:
        HttpClient("http://localhost", headers={"x-api-key": value})
    assert KEY not in str(caught.value)


def test_errors_are_klaw_errors_with_their_attributes() -> None:
    error = StatusError("m", status=404, detail="d")
    assert isinstance(error, KlawError)
    assert (error.message, error.status, error.detail) == ("m", 404, "d")
    assert pickle.loads(pickle.dumps(NoAnswerError("m"))).message == "m"
