"""The rules of the guard, one request after another in this process: what reaches the application and what does not."""

from __future__ import annotations

import asyncio

import pytest

from klaw_core import StoreReadOnlyError
from klaw_serve.guard import Guard
from klaw_serve.metrics import Metrics
from klaw_serve.options import Limits, Listening
from klaw_serve.tokens import Tokens

LOCAL = {"host": "127.0.0.1:8490"}
#: Limits that no test reaches unless it sets its own.
PLENTY = {"requests_per_second": 1e6}


class Guarded:
    """A guard in front of an application that notes each request and reads its body."""

    def __init__(self, tmp_path, listening=None, **limits):
        self.tokens = Tokens(tmp_path)
        self.token = self.tokens.make()
        self.passed = []
        self.metrics = Metrics()
        given = Limits(**{**PLENTY, **limits})
        self.guard = Guard(self._app, listening or Listening(), given, self.tokens, self.metrics)

    async def _app(self, scope, receive, send):
        self.passed.append(scope["path"])
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    def ask(self, path="/api/status", token=None, parts=(b"",), *, kind="http", client=("127.0.0.1", 1), **headers):
        """Return the status of the answer, or the code with which a WebSocket is closed."""
        token = self.token if token is None else token
        named = {**LOCAL, **({"authorization": f"Bearer {token}"} if token else {}), **headers}
        scope = {
            "type": kind,
            "path": path,
            "client": client,
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in named.items()],
        }
        waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        waiting[-1]["more_body"] = False
        sent = []

        async def receive():
            return waiting.pop(0)

        async def send(message):
            sent.append(message)

        asyncio.run(self.guard(scope, receive, send))
        self.sent = sent
        return sent[0].get("status") or sent[0].get("code")


@pytest.fixture
def guarded(tmp_path):
    return Guarded(tmp_path)


@pytest.mark.promise("S8")
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.7", "0.0.0.0", "localhost.", "[::2]"]
)
def test_a_host_that_is_not_this_machine_reaches_nothing(guarded, host):
    assert guarded.ask(host=host) == 421
    assert guarded.ask("/", host=host) == 421
    assert guarded.passed == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:80@evil.example", "localhost:80, evil.example", "localhost:x", "localhost:80:80", "localhost/x"),
        *("[::1", "[::1]x", "::1]", "[::1]:80:80", "localhost evil.example", "localhost:123456", ":80"),
    ],
)
def test_a_malformed_host_reaches_nothing(guarded, host):
    assert guarded.ask(host=host) == 421
    assert guarded.passed == []


def test_two_hosts_reach_nothing(guarded):
    assert guarded.ask(Host="evil.example") == 421
    assert guarded.passed == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.2:80", "[::1]:80"])
def test_every_name_of_this_machine_reaches_the_application(guarded, host):
    assert guarded.ask(host=host) == 200
    assert guarded.passed == ["/api/status"]


def test_numeric_addresses_are_accepted_only_by_a_server_for_other_machines(tmp_path):
    open_to_all = Guarded(tmp_path, Listening(host="0.0.0.0", names=("memory.example",)))
    statuses = [
        open_to_all.ask(host=host) for host in ("10.0.0.7", "memory.example", "MEMORY.example:1", "evil.example")
    ]
    assert statuses == [200, 200, 200, 421]


@pytest.mark.promise("S8")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:8490", ""])
def test_another_origin_reaches_nothing_even_with_the_token(guarded, origin):
    for kind in ("http", "websocket"):
        assert guarded.ask(kind=kind, origin=origin) in {403, 4403}
    assert guarded.passed == []


def test_the_own_origin_reaches_the_application(guarded):
    assert guarded.ask(origin="http://127.0.0.1:8490") == 200
    assert guarded.ask(origin="https://127.0.0.1:8490") == 200


@pytest.mark.promise("S7")
@pytest.mark.parametrize(
    "path", ["/api/status", "/metrics", "/rpc", "/mcp", "/agents/bob/api/status", "/pages/x", "/none"]
)
@pytest.mark.parametrize("token", ["", "wrong", "\u00e9"])
def test_without_the_token_nothing_private_is_reached(guarded, path, token):
    assert guarded.ask(path, token) == 401
    assert (b"www-authenticate", b"Bearer") in guarded.sent[0]["headers"]
    assert guarded.passed == []
    assert guarded.metrics.refused == {401: 1}


@pytest.mark.parametrize("path", ["/", "/health", "/openapi.json", "/page/app.js", "/agents/bob/"])
def test_what_is_not_private_needs_no_token(guarded, path):
    assert guarded.ask(path, "") == 200


def test_a_websocket_without_a_token_is_not_authorised(guarded):
    scopes = []

    async def app(scope, _receive, send):
        scopes.append(scope)
        await send({"type": "websocket.accept"})

    guarded.guard.app = app
    for token in ("", guarded.token):
        guarded.ask("/ws", token, kind="websocket")
    assert [scope.get("klaw.authorised", False) for scope in scopes] == [False, True]
    assert guarded.ask("/ws", "wrong", kind="websocket") == 4401


@pytest.mark.promise("A1", "A2", "S9")
def test_the_token_of_an_agent_opens_its_memory_and_no_other(guarded):
    token = guarded.tokens.make("bob")
    paths = ("/agents/bob/api/status", "/agents/eve/api/status", "/api/status", "/agents/../api/status", "/agents//api")
    assert [guarded.ask(path, token) for path in paths] == [200, 401, 401, 401, 401]
    assert guarded.ask("/agents/bob/api/status", guarded.token) == 200


def test_a_token_that_others_can_read_opens_nothing(guarded):
    guarded.tokens.file().chmod(0o644)
    with pytest.raises(StoreReadOnlyError, match="others can read"):
        guarded.tokens.read()
    assert guarded.ask() == 401


def test_an_empty_token_file_opens_nothing(guarded):
    guarded.tokens.file().write_text("\n")
    assert guarded.ask(token="") == 401
    assert guarded.ask(token=guarded.token) == 401
    assert not guarded.guard.admit("", {"klaw.agent": ""}), "nor as the first frame of a WebSocket"


@pytest.mark.parametrize(
    ("length", "status"), [("1000", 200), ("1001", 413), ("-1", 413), ("1e3", 413), ("9" * 5000, 413), ("", 413)]
)
def test_a_declared_length_beyond_the_limit_is_refused_before_the_body_is_read(tmp_path, length, status):
    guarded = Guarded(tmp_path, body_bytes=1000)
    assert guarded.ask(content_length=length) == status
    assert bool(guarded.passed) == (status == 200)


@pytest.mark.parametrize(("parts", "status"), [((b"x" * 1000,), 200), ((b"x" * 600, b"x" * 401), 413)])
def test_a_body_of_unknown_length_is_read_only_up_to_the_limit(tmp_path, parts, status):
    assert Guarded(tmp_path, body_bytes=1000).ask(parts=parts) == status


def test_an_address_that_asks_too_often_is_refused_and_another_is_not(tmp_path, monkeypatch):
    now = 100.0
    monkeypatch.setattr("klaw_serve.guard.time.monotonic", lambda: now)
    guarded = Guarded(tmp_path, requests_per_second=5)
    assert [guarded.ask() for _ in range(12)] == [200] * 10 + [429] * 2
    assert (b"retry-after", b"1") in guarded.sent[0]["headers"]
    assert guarded.ask(client=("127.0.0.2", 1)) == 200
    now += 1
    assert [guarded.ask() for _ in range(7)] == [200] * 5 + [429] * 2


def test_a_request_that_takes_too_long_is_ended(tmp_path):
    guarded = Guarded(tmp_path, request_seconds=-1)

    async def app(_scope, _receive, _send):
        await asyncio.Event().wait()

    guarded.guard.app = app
    assert guarded.ask() == 408


def test_every_answer_has_the_headers_that_protect_it(guarded):
    for token in (guarded.token, ""):
        guarded.ask(token=token)
        headers = dict(guarded.sent[0]["headers"])
        assert headers[b"x-content-type-options"] == b"nosniff"
        assert headers[b"cache-control"] == b"no-store"
        assert headers[b"cross-origin-resource-policy"] == b"same-origin"
        assert not [name for name in headers if name.startswith(b"access-control")]
