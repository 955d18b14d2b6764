"""Encode and decode JSON of requests and responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.responses import Response

from klaw_serve.operations import OperationError


def json_body(value: Any) -> bytes:
    """Return JSON as UTF-8, or with ASCII escapes if a text has a lone surrogate, which UTF-8 cannot encode."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def answer(value: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(json_body(value), status, media_type="application/json")


async def reply(send: Callable[[Any], Any], body: bytes, status: int) -> None:
    """Send JSON as the complete response to an ASGI request."""
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def parsed(body: bytes | str) -> Any:
    """Return the value of strict JSON. Raise OperationError if it is invalid."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OperationError(400, f"the body is not JSON: {error}"[:300]) from error
