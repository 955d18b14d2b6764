"""The options of the embedder ``gemini``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_http import RemoteOptions, http_url

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
_MAX_REQUESTS = 100  # per batchEmbedContents request


@frozen
class GeminiOptions(RemoteOptions):
    """Options of the embedder ``gemini``, in addition to those of all remote embedders.

    ``url``: the base URL of the API, including its version.
    ``model``: an embedding model of the API, without ``models/``.
    ``dimension``: request shorter vectors than the model's default.
    """

    url: str = field(default=GEMINI_URL, validator=http_url)
    model: str = field(default="gemini-embedding-001", validator=validators.matches_re(r"[A-Za-z0-9._-]+"))
    batch_size: int = field(default=100, validator=[validators.ge(1), validators.le(_MAX_REQUESTS)])
    dimension: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
