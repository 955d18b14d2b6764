"""What Klaw registers: the embedder ``gemini`` and its options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import field, frozen, validators

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_http import RemoteOptions, http_url, require_network

if TYPE_CHECKING:
    from klaw_http.embedding import RemoteEmbedder

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
_MOST_REQUESTS = 100  # of one batchEmbedContents


@frozen
class GeminiOptions(RemoteOptions):
    """Options of the embedder ``gemini``, beside those of every remote one.

    ``url``: the API, up to and with its version.
    ``model``: an embedding model of it, without ``models/``.
    ``dimensions``: a shorter vector than the model's own; sent only if set.
    """

    url: str = field(default=GEMINI_URL, validator=http_url)
    model: str = field(default="gemini-embedding-001", validator=validators.matches_re(r"[A-Za-z0-9._-]+"))
    batch_size: int = field(default=100, validator=[validators.ge(1), validators.le(_MOST_REQUESTS)])
    dimensions: int | None = field(default=None, validator=validators.optional(validators.ge(1)))


def _gemini(options: GeminiOptions, place: ComponentContext) -> RemoteEmbedder:
    require_network(options.url, place)
    from klaw_embed_gemini.server import GeminiServer
    from klaw_http.embedding import RemoteEmbedder

    return RemoteEmbedder(options, GeminiServer(options))


@hookimpl
def klaw_embedders() -> Iterable[Component[GeminiOptions, RemoteEmbedder]]:
    """Yield the embedder ``gemini``."""
    yield Component(
        "gemini",
        options=GeminiOptions,
        factory=_gemini,
        api=2,
        auto=AutoChoice(120, keys=("GEMINI_API_KEY", "GOOGLE_API_KEY")),
        summary="embeddings from Google's Gemini API",
    )
