"""JSON-RPC, over HTTP and over a WebSocket with an ordinary client."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect


@contextmanager
def socket_of(server, *, authorised=True, path="/ws", **more):
    with connect(f"ws://127.0.0.1:{server.port}{path}", close_timeout=1, **more) as socket:
        if authorised:
            socket.send(json.dumps({"type": "auth", "token": server.token}))
            assert json.loads(socket.recv(timeout=server.patience)) == {"type": "auth", "ok": True}
        yield socket


def ask(server, socket, frame):
    socket.send(frame if isinstance(frame, str) else json.dumps(frame))
    return json.loads(socket.recv(timeout=server.patience))


def test_a_call_can_be_posted(server):
    reply = server.rpc("memory.search", query="kiln degrees", k=1)
    assert reply["id"] == 1
    (found,) = reply["result"]["results"]
    assert found["path"] == "notes/kiln.md"


def test_errors_have_the_standard_codes(server):
    assert server.rpc("memory.nothing")["error"]["code"] == -32601
    assert server.rpc("memory.search", query="")["error"]["code"] == -32602
    assert server.rpc("memory.get", path="notes/none.md")["error"]["data"]["status"] == 404
    assert server.ask("POST", "/rpc", b"{").json["error"]["code"] == -32700
    assert server.ask("POST", "/rpc", {"id": 1}).json["error"]["code"] == -32600
    assert server.ask("POST", "/rpc", []).json["error"]["code"] == -32600
    assert server.ask("POST", "/rpc", {"id": 1, "method": "memory.status", "params": [1]}).json["error"]


def test_notifications_have_no_reply_and_batches_have_several(server):
    status = {"method": "memory.collections"}
    assert server.ask("POST", "/rpc", status).status == 204
    replies = server.ask("POST", "/rpc", [{**status, "id": 1}, status, {**status, "id": "b"}]).json
    assert [reply["id"] for reply in replies] == [1, "b"]


def test_a_websocket_answers_frames_after_the_token(server):
    with socket_of(server) as socket:
        frame = {"id": "4", "method": "memory.search", "params": {"query": "boat", "k": 5}}
        reply = ask(server, socket, frame)
        assert reply["id"] == "4"
        assert reply["result"]["results"][0]["path"] == "notes/boat.md"
        assert ask(server, socket, "{")["error"]["code"] == -32700
        assert ask(server, socket, {"id": "5", "method": "memory.collections"})["result"]


@pytest.mark.parametrize(
    "frame", [{"type": "auth", "token": "wrong"}, {"type": "auth"}, {"id": "1", "method": "memory.status"}, [], "x"]
)
def test_a_first_frame_without_the_token_ends_the_connection(server, frame):
    with socket_of(server, authorised=False) as socket:
        socket.send(json.dumps(frame))
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(timeout=server.patience)
    assert closed.value.rcvd.code == 4401


def test_the_handshake_can_contain_the_token(server):
    headers = {"Authorization": f"Bearer {server.token}"}
    with socket_of(server, authorised=False, additional_headers=headers) as socket:
        assert ask(server, socket, {"id": 1, "method": "memory.collections"})["result"]
    wrong = {"Authorization": "Bearer wrong"}
    with pytest.raises(InvalidStatus), socket_of(server, authorised=False, additional_headers=wrong):
        pass


def test_a_page_of_another_origin_gets_no_websocket(server):
    with pytest.raises(InvalidStatus), socket_of(server, authorised=False, origin="https://evil.example"):
        pass


def test_events_are_sent_to_subscribers(server):
    with socket_of(server) as socket:
        assert ask(server, socket, {"id": 1, "method": "events.subscribe"})["result"] == {"subscribed": True}
        saved = server.ask("POST", "/api/memories", {"text": "Something new."}).json
        server.ask("DELETE", f"/api/document?path={saved['path']}")
        events = []
        while "forget" not in events:
            events.append(json.loads(socket.recv(timeout=server.patience))["params"]["event"])
        assert "index" in events
