"""The options of the embedder ``openai``, and where its server is."""

from __future__ import annotations

import os

from attrs import field, frozen, validators

from klaw_http import RemoteOptions, http_url_from

OPENAI_URL = "https://api.openai.com/v1"
_VARIABLE = "OPENAI_BASE_URL"
_MOST_INPUTS = 2048  # of one request; https://platform.openai.com/docs/api-reference/embeddings/create
_MOST_BATCH_INPUTS = 50_000  # of one batch; https://platform.openai.com/docs/guides/batch


def environment_url() -> str:
    """Return the server's address: ``OPENAI_BASE_URL``, as OpenAI's own clients read it, or OpenAI's."""
    return os.environ.get(_VARIABLE, "").strip().rstrip("/") or OPENAI_URL


@frozen
class OpenAIOptions(RemoteOptions):
    """Options of the embedder ``openai``, beside those of every remote one.

    ``url``: the server, up to and without ``/embeddings`` (default: ``OPENAI_BASE_URL``, else OpenAI).
    ``model``: a model of that server.
    ``dimension``: a shorter vector than the model's own; sent only if set.
    ``encoding``: how the server sends vectors: ``"base64"``, or ``"float"`` for one that refuses base64.
    ``query_input_type``, ``document_input_type``: what to send as ``input_type``, for servers that add the prefixes
    themselves (``"query"``, and ``"passage"`` or ``"document"``); sent only if set.
    ``revision``: your name for the weights, instead of the server's address.
    ``batch_api``: whether a first index goes through OpenAI's Batch API: half the price, up to a day.
    ``batch_min_texts``, ``batch_max_texts``: how many texts are worth a batch, and how many one holds.
    ``batch_timeout_seconds``: how long to wait for a batch before asking for the rest in single requests.
    """

    url: str = field(factory=environment_url, validator=http_url_from(_VARIABLE, environment_url))
    model: str = field(default="text-embedding-3-small", validator=validators.min_len(1))
    batch_size: int = field(default=100, validator=[validators.ge(1), validators.le(_MOST_INPUTS)])
    dimension: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    encoding: str = field(default="base64", validator=validators.in_(("base64", "float")))
    query_input_type: str = ""
    document_input_type: str = ""
    revision: str = ""
    batch_api: bool = False
    batch_min_texts: int = field(default=500, validator=validators.ge(1))
    batch_max_texts: int = field(default=5_000, validator=[validators.ge(1), validators.le(_MOST_BATCH_INPUTS)])
    batch_timeout_seconds: float = field(default=3600.0, validator=validators.gt(0))
