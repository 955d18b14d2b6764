"""A client that sends too much, or holds connections and sends nothing, locks nobody else out."""

from __future__ import annotations

import http.client
import json
import os
import socket
from contextlib import ExitStack, contextmanager

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

HALF_OPEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: "
#: Nothing ends because time has passed.
ENDLESS = {"header_seconds": 3_600, "auth_seconds": 3_600}


def locally(home, path, token):
    """Ask over the Unix socket, whose path may be too long to connect to."""
    directory = os.open(home.data, os.O_RDONLY)
    try:
        connection = http.client.HTTPConnection("localhost", timeout=300)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        connection.sock.connect(f"/proc/self/fd/{directory}/serve.sock")
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    finally:
        os.close(directory)
        connection.close()


def opened(running, data=b""):
    connection = running.raw()
    connection.sendall(data)
    return connection


def is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def stream_of(running, path="/api/events", token=None):
    """Open a stream of events, and wait until it has begun."""
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token or running.token}\r\n\r\n"
    connection = opened(running, head.encode())
    return connection, connection.recv(12)


def socket_without_token(running, path="/ws"):
    return connect(f"ws://127.0.0.1:{running.port}{path}", close_timeout=1)


def authorised(web_socket, running, token=None):
    web_socket.send(json.dumps({"type": "auth", "token": token or running.token}))
    return json.loads(web_socket.recv(timeout=running.patience)) == {"type": "auth", "ok": True}


@pytest.fixture(scope="module")
def home(tmp_path_factory, new_home):
    return new_home(tmp_path_factory.mktemp("crowds"))


@pytest.fixture(scope="module")
def serving(home):
    ann = home.run("serve", "token", "--agent", "ann").stdout.strip()

    @contextmanager
    def serving(**limits):
        with home.serving(limits={**ENDLESS, **limits}) as running:
            yield running, ann

    return serving


class TestRequests:
    def test_a_flood_without_a_token_leaves_the_others_alone(self, serving):
        with serving(requests_per_second=0.5) as (running, ann):
            assert running.get("/api/status", token="wrong").status == 401
            assert 429 in (running.get("/api/status", token="wrong").status for _ in range(100))
            assert running.get("/api/sources").status == 200
            assert running.get("/agents/ann/api/sources", token=ann).status == 200

    def test_a_flood_with_an_agents_token_leaves_the_owner_alone(self, serving):
        with serving(requests_per_second=0.5) as (running, ann):
            assert running.get("/agents/ann/api/sources", token=ann).status == 200
            assert 429 in (running.get("/agents/ann/api/sources", token=ann).status for _ in range(100))
            assert running.get("/api/sources").status == 200
            assert running.get("/health", token="").status == 200

    def test_an_agent_cannot_hold_all_streams(self, serving):
        with serving(running=3) as (running, ann), ExitStack() as stack:
            for expected in (b"200", b"200", b"200", b"429"):
                connection, said = stream_of(running, "/agents/ann/api/events", ann)
                stack.enter_context(connection)
                assert said.endswith(expected)
            for _ in range(5):  # the owner's are limited by the number of connections only
                connection, said = stream_of(running)
                stack.enter_context(connection)
                assert said.endswith(b"200")


class TestConnections:
    def test_half_open_heads_are_closed_if_another_client_needs_the_place(self, serving, home):
        with serving(connections=8) as (running, _), ExitStack() as stack:
            half = [stack.enter_context(opened(running, HALF_OPEN)) for _ in range(40)]
            for _ in range(3):
                assert running.get("/api/sources").status == 200
            assert locally(home, "/api/sources", running.token) == 200
            assert [is_closed(connection) for connection in half[:30]] == [True] * 30, "the oldest"
            half[-1].sendall(b"x\r\n\r\n")
            assert half[-1].recv(12) == b"HTTP/1.1 200", "the newest is served"

    @pytest.mark.parametrize("data", [b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
    def test_idle_connections_are_closed_too(self, serving, data):
        with serving(connections=8) as (running, _), ExitStack() as stack:
            for _ in range(20):
                connection = stack.enter_context(opened(running, data))
                assert not data or connection.recv(12) == b"HTTP/1.1 200"
            assert running.get("/api/sources").status == 200

    def test_the_unix_socket_has_places_of_its_own(self, serving, home):
        with serving(connections=4) as (running, _), ExitStack() as stack:
            for _ in range(4):
                connection, said = stream_of(running)
                stack.enter_context(connection)
                assert said == b"HTTP/1.1 200"
            assert stack.enter_context(opened(running)).recv(12) == b"HTTP/1.1 503"
            assert locally(home, "/api/sources", running.token) == 200
        assert "Traceback" not in (home.path / "server.log").read_text()

    def test_a_place_is_free_again(self, serving):
        with serving(connections=2) as (running, _):
            for _ in range(5):
                connection, said = stream_of(running)
                connection.close()
                with connect(
                    f"ws://127.0.0.1:{running.port}/ws",
                    additional_headers={"Authorization": f"Bearer {running.token}"},
                ) as own:
                    own.send('{"id": 1, "method": "memory.sources"}')
                    assert json.loads(own.recv(timeout=running.patience))["id"] == 1
                assert said.endswith(b"200")


class TestWebSockets:
    def test_those_that_wait_for_their_token_cannot_fill_the_server(self, serving):
        with serving(unauthorised_sockets=3) as (running, _), ExitStack() as stack:
            waiting = [stack.enter_context(socket_without_token(running)) for _ in range(5)]
            assert authorised(stack.enter_context(socket_without_token(running)), running)
            for oldest in waiting[:3]:
                with pytest.raises(ConnectionClosed) as caught:
                    oldest.recv(timeout=running.patience)
                assert caught.value.rcvd.code == 4401
            assert authorised(waiting[-1], running), "the newest is served"

    def test_they_count_by_their_token_after_the_first_frame(self, serving):
        with serving(running=2) as (running, ann), ExitStack() as stack:
            for _ in range(2):
                assert authorised(stack.enter_context(socket_without_token(running, "/agents/ann/ws")), running, ann)
            third = stack.enter_context(socket_without_token(running, "/agents/ann/ws"))
            with pytest.raises(ConnectionClosed):
                authorised(third, running, ann)
            for _ in range(3):
                assert authorised(stack.enter_context(socket_without_token(running)), running)

    def test_too_many_without_a_token_are_refused_by_their_address(self, serving):
        with serving(running=2) as (running, _), ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(socket_without_token(running))
            with pytest.raises(InvalidStatus), socket_without_token(running):
                pass
            assert running.get("/api/sources").status == 200

    def test_one_of_an_agent_without_a_memory_is_closed_as_rest_refuses_it(self, home):
        for agent, text in (("mute", "enabled = false\n"), ("broken", "memory = secret\n")):
            (home.data / "agents" / agent).mkdir(parents=True)
            (home.data / "agents" / agent / "config.toml").write_text(text)
        with home.serving() as running:
            for name, code in (("-bad", 4404), ("%2e%2e", 4404), ("mute", 4404), ("broken", 4503)):
                assert running.get(f"/agents/{name}/api/sources").status == code - 4000
                with socket_without_token(running, f"/agents/{name}/ws") as own:
                    assert authorised(own, running)
                    with pytest.raises(ConnectionClosed) as caught:
                        own.recv(timeout=running.patience)
                assert caught.value.rcvd.code == code
                assert "secret" not in caught.value.rcvd.reason
        assert "Traceback" not in (home.path / "server.log").read_text()
