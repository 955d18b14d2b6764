"""JSON as it comes in and goes out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.responses import Response

from klaw_serve.operations import OperationError


def json_body(value: Any) -> bytes:
    """Return plain JSON as bytes: in UTF-8, or in ASCII if a text has half of a surrogate pair, which UTF-8 has not."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def answer(value: Any, status: int = 200) -> Response:
    """Return an answer of JSON."""
    return Response(json_body(value), status, media_type="application/json")


def parsed(body: bytes | str) -> Any:
    """Return the value of strict JSON. Raise OperationError."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OperationError(400, f"the body is not JSON: {error}"[:300]) from error
