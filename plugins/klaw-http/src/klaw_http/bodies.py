"""Reading what a server sends, within bounds."""

import json
import zlib
from collections.abc import Iterable
from typing import Any

from klaw_http.errors import BodyError

_GZIP_WBITS = zlib.MAX_WBITS | 16  # 16: expect the gzip header (zlib manual, inflateInit2)


def read_body(pieces: Iterable[bytes], encoding: str, limit_bytes: int) -> bytes:
    """Join the pieces of a body, unpacking gzip. Raise BodyError.

    Neither what is received nor what it unpacks to is ever held beyond ``limit_bytes``: a gzip bomb is
    stopped inside the piece that goes off, which httpx's own decoder would first unpack as a whole.
    """
    if encoding not in {"", "identity", "gzip"}:
        raise BodyError(f"the answer is packed as {encoding!r}, which was not asked for")
    unpack = zlib.decompressobj(_GZIP_WBITS) if encoding == "gzip" else None
    body = bytearray()
    received = 0
    for piece in pieces:
        received += len(piece)
        try:
            body += unpack.decompress(piece, limit_bytes - len(body) + 1) if unpack else piece
        except zlib.error as error:
            raise BodyError(f"the answer is not sound gzip: {error}") from error
        if max(received, len(body)) > limit_bytes:
            raise BodyError(f"the answer is larger than {limit_bytes:,} bytes")
        if unpack and unpack.unused_data:
            raise BodyError("the answer goes on after the end of its gzip stream")
    if unpack and not unpack.eof:
        raise BodyError("the answer breaks off inside its gzip stream")
    return bytes(body)


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raise BodyError; NaN and Infinity, which the stdlib reads, are not JSON."""
    try:
        value = json.loads(body, parse_constant=_reject)
    except (ValueError, RecursionError) as error:
        raise BodyError(f"the answer is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise BodyError(f"the answer is a JSON {type(value).__name__}, not an object")
    return value


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def error_detail(body: bytes) -> str:
    """Return a server's own words about a refusal, on one printable line.

    Understands ``{"error": "…"}`` (Ollama) and ``{"error": {"message": "…"}}`` (OpenAI, Gemini).
    """
    try:
        said = parse_object(body).get("error", "")
        said = said.get("message", "") if isinstance(said, dict) else said
    except BodyError:
        said = body.decode("utf-8", "replace")
    printable = "".join(character if character.isprintable() else " " for character in str(said))
    return " ".join(printable.split())
