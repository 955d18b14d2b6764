"""The options of the embedder ``openai``, and the default address of its server."""

from __future__ import annotations

import os

from attrs import field, frozen, validators

from klaw_http import RemoteOptions, http_url_from

OPENAI_URL = "https://api.openai.com/v1"
_VARIABLE = "OPENAI_BASE_URL"
_MAX_INPUTS = 2048  # per request; https://platform.openai.com/docs/api-reference/embeddings/create
_MAX_BATCH_INPUTS = 50_000  # per batch; https://platform.openai.com/docs/guides/batch


def environment_url() -> str:
    """Return the default address: ``OPENAI_BASE_URL``, as OpenAI's own clients read it, or OpenAI's."""
    return os.environ.get(_VARIABLE, "").strip().rstrip("/") or OPENAI_URL


@frozen
class OpenAIOptions(RemoteOptions):
    """Options of the embedder ``openai``, in addition to those of all remote embedders.

    ``url``: the base URL of the server, without ``/embeddings`` (default: ``OPENAI_BASE_URL``, otherwise OpenAI).
    ``model``: a model of this server.
    ``dimension``: request shorter vectors than the model's default.
    ``encoding``: the format of vectors: ``"base64"``, or ``"float"`` if the server does not support base64.
    ``query_input_type``, ``document_input_type``: the values of ``input_type``, for servers that add the prefixes
    themselves (``"query"``, and ``"passage"`` or ``"document"``); sent only if set.
    ``revision``: a name for the weights; used instead of the server's address.
    ``batch_api``: whether to use OpenAI's Batch API for a first index, at half the price and in up to a day.
    ``batch_min_texts``, ``batch_max_texts``: the minimum and the maximum number of texts in a batch.
    ``batch_timeout_seconds``: the maximum time to wait for a batch before the rest is requested directly.
    """

    url: str = field(factory=environment_url, validator=http_url_from(_VARIABLE, environment_url))
    model: str = field(default="text-embedding-3-small", validator=validators.min_len(1))
    batch_size: int = field(default=100, validator=[validators.ge(1), validators.le(_MAX_INPUTS)])
    dimension: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    encoding: str = field(default="base64", validator=validators.in_(("base64", "float")))
    query_input_type: str = ""
    document_input_type: str = ""
    revision: str = ""
    batch_api: bool = False
    batch_min_texts: int = field(default=500, validator=validators.ge(1))
    batch_max_texts: int = field(default=5_000, validator=[validators.ge(1), validators.le(_MAX_BATCH_INPUTS)])
    batch_timeout_seconds: float = field(default=3600.0, validator=validators.gt(0))
