"""Answer ordinary tool calls over HTTP without the SDK.

For each request the SDK creates a connection, two tasks and several streams, and validates every message twice. This
costs several times as much as a search. A tool call from a client that uses a protocol revision with a handshake needs
none of it. The SDK answers every other request, and every request with something unusual in it. A test compares both
answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from klaw_mcp.prologue import HANDSHAKE_VERSIONS

Message = dict[str, Any]
_VERSIONS = frozenset(version.encode() for version in HANDSHAKE_VERSIONS)
_REQUEST = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS = frozenset({"name", "arguments", "_meta"})


@frozen
class ToolCall:
    """A tool call."""

    request_id: int | str
    name: str
    arguments: Mapping[str, Any]

    def answer(self, text: str, *, is_error: bool) -> bytes:
        """Return the body of the response with the tool's result."""
        result = {"content": [{"type": "text", "text": text}], "isError": is_error}
        frame = {"jsonrpc": "2.0", "id": self.request_id, "result": result}
        try:
            return json.dumps(frame, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return json.dumps(frame).encode()


def may_be_call(scope: Mapping[str, Any]) -> bool:
    """Return whether the headers of a request are those of an ordinary tool call; its body decides."""
    if scope["method"] != "POST":
        return False
    headers = dict(scope["headers"])
    return (
        headers.get(b"content-type", b"").partition(b";")[0].strip() == b"application/json"
        and b"application/json" in headers.get(b"accept", b"")
        and headers.get(b"mcp-protocol-version") in _VERSIONS
    )


def parse(body: bytes) -> ToolCall | None:
    """Return the tool call in a body; None for any other message and for what the SDK refuses as JSON."""
    try:
        frame = json.loads(body.decode())  # json.loads accepts other encodings than UTF-8
        if b"\\ud" in body.lower():  # escapes of surrogates; the SDK refuses half of a pair, which cannot be encoded
            json.dumps(frame, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    if not isinstance(frame, dict) or frame.get("jsonrpc") != "2.0" or frame.get("method") != "tools/call":
        return None
    request_id, params = frame.get("id"), frame.get("params")
    if frame.keys() != _REQUEST or isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return None
    if not isinstance(params, dict) or not params.keys() <= _PARAMS or not isinstance(params.get("name"), str):
        return None
    arguments = params.get("arguments")
    arguments = {} if arguments is None else arguments
    if not isinstance(params.get("_meta"), dict | None):
        return None
    return ToolCall(request_id, params["name"], arguments) if isinstance(arguments, dict) else None


def replayed(body: bytes, receive: Callable[[], Any]) -> Callable[[], Any]:
    """Return a ``receive`` that first returns a body that was already read, then calls the original."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        if messages:
            return messages.pop()
        message: Message = await receive()
        return message

    return again


async def read(receive: Callable[[], Any]) -> bytes | None:
    """Return the whole body of a request; None if the client disconnects before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)
