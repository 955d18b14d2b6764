"""The options of the retriever ``qdrant``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_http import SECONDS, http_url


def _sendable(_instance: object, _attribute: object, value: str) -> None:
    """Refuse a key that HTTP cannot send, without showing it."""
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ValueError("api_key: contains white space, or characters that HTTP cannot send")


@frozen
class QdrantOptions:
    """Options of ``[[memory.retrieval]] type = "qdrant"``.

    ``url``: the server. ``api_key``: its key, best as ``"${QDRANT_API_KEY}"``; it is sent in a header and never shown.
    Up to ``buffer`` new vectors of a collection are buffered in klaw.db before the server gets them.
    ``timeout_seconds``: the maximum time for one request with its retries.
    """

    url: str = field(default="http://localhost:6333", validator=http_url)
    api_key: str = field(default="", repr=False, validator=_sendable)
    buffer: int = field(default=1_000, validator=[validators.ge(1), validators.le(100_000)])
    timeout_seconds: float = field(default=30.0, validator=SECONDS)
