"""The options of the language model ``openai``, and the default address of its server."""

from __future__ import annotations

import os

from attrs import field, frozen, validators

from klaw_http import http_url_from

OPENAI_URL = "https://api.openai.com/v1"
#: The response formats, from the strictest to none.
FORMS = ("json_schema", "json_object", "text")
_VARIABLE = "OPENAI_BASE_URL"


def environment_url() -> str:
    """Return the default address: ``OPENAI_BASE_URL``, as OpenAI's own clients read it, or OpenAI's."""
    return os.environ.get(_VARIABLE, "").strip().rstrip("/") or OPENAI_URL


def _sendable(_instance: object, _attribute: object, value: str) -> None:
    """Reject a key that HTTP cannot send; the message does not contain it."""
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ValueError("api_key: contains white space or characters that HTTP cannot send")


def _base(url: str) -> str:
    """Return the base URL. Some services document their URL with the path at the end, which is removed."""
    return url.rstrip("/").removesuffix("/chat/completions")


@frozen
class OpenAIModelOptions:
    """Options of the language model ``openai``.

    ``model``: a model of the server.
    ``url``: the base URL of the server, without ``/chat/completions`` (default: ``OPENAI_BASE_URL``, otherwise OpenAI).
    ``api_key``: the key, best as ``"${NAME}"``; it is sent in a header and never shown.
    ``context_tokens``: the maximum number of tokens of prompt and completion together.
    ``max_completion_tokens``: the maximum length of an answer, if the prompt does not set it.
    ``response_format``: the format for JSON: ``auto`` tries ``json_schema``, ``json_object`` and ``text`` in turn.
    ``retries``: the maximum number of retries if the server is busy or the connection breaks.
    ``max_requests_per_day``, ``max_tokens_per_day``: limits for each day (UTC) and data directory.
    """

    model: str = field(default="gpt-4.1-mini", validator=validators.min_len(1))
    url: str = field(factory=environment_url, converter=_base, validator=http_url_from(_VARIABLE, environment_url))
    api_key: str = field(default="", repr=False, validator=_sendable)
    context_tokens: int = field(default=8192, validator=validators.ge(64))
    max_completion_tokens: int = field(default=1024, validator=validators.ge(1))
    response_format: str = field(default="auto", validator=validators.in_(("auto", *FORMS)))
    retries: int = field(default=2, validator=validators.ge(0))
    max_requests_per_day: int = field(default=500, validator=validators.ge(1))
    max_tokens_per_day: int = field(default=1_000_000, validator=validators.ge(1))
