"""Read and parse bodies within limits."""

import json
import re
import zlib
from collections.abc import Iterable
from typing import Any

from klaw_http.errors import BodyError

_RETRY_DELAY = re.compile(rb'"retryDelay":\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
_GZIP_WBITS = zlib.MAX_WBITS | 16  # 16: expect the gzip header (zlib manual, inflateInit2)


def read_body(pieces: Iterable[bytes], encoding: str, limit_bytes: int) -> bytes:
    """Join the pieces of a body, unpacking gzip. Raise BodyError.

    Neither the received nor the unpacked data ever exceeds ``limit_bytes``. A gzip bomb is stopped inside a part, which
    the decoder of httpx2 would first unpack completely.
    """
    if encoding not in {"", "identity", "gzip"}:
        raise BodyError(f"the answer has the content encoding {encoding!r}, which was not requested")
    unpack = zlib.decompressobj(_GZIP_WBITS) if encoding == "gzip" else None
    body = bytearray()
    received = 0
    for piece in pieces:
        received += len(piece)
        try:
            body += unpack.decompress(piece, limit_bytes - len(body) + 1) if unpack else piece
        except zlib.error as error:
            raise BodyError(f"the answer is not valid gzip: {error}") from error
        if max(received, len(body)) > limit_bytes:
            raise BodyError(f"the answer is larger than {limit_bytes:,} bytes")
        if unpack and unpack.unused_data:
            raise BodyError("the answer continues after the end of its gzip stream")
    if unpack and not unpack.eof:
        raise BodyError("the answer ends inside its gzip stream")
    return bytes(body)


def parse_json(body: bytes) -> Any:
    """Parse JSON. Raise BodyError, also for NaN and Infinity, which the standard library accepts."""
    try:
        return json.loads(body, parse_constant=_reject)
    except (ValueError, RecursionError) as error:
        raise BodyError(f"the answer is not valid JSON: {error}") from error


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raise BodyError."""
    value = parse_json(body)
    if not isinstance(value, dict):
        raise BodyError(f"the answer is a JSON {type(value).__name__}, not an object")
    return value


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def error_detail(body: bytes) -> str:
    """Return a server's error message on one printable line.

    Known forms are ``{"error": "…"}`` (Ollama), ``{"error": {"message": "…"}}`` (OpenAI, Gemini), and
    ``{"message": "…"}`` or ``{"detail": "…"}`` (other servers with OpenAI's protocol).
    """
    try:
        answer = parse_object(body)
        said = next((answer[key] for key in ("error", "message", "detail") if answer.get(key)), "")
        said = said.get("message") or "" if isinstance(said, dict) else said
    except BodyError:
        said = body.decode("utf-8", "replace")
    printable = "".join(character if character.isprintable() else " " for character in str(said))
    return " ".join(printable.split())


def retry_delay_seconds(body: bytes) -> float:
    """Return the retry delay of a Google API, which is in the body and not in ``Retry-After``.

    ``{"error": {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}}``
    (https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto).
    """
    found = _RETRY_DELAY.search(body)
    return float(found[1]) if found else 0.0
