"""The hook implementations of klaw-embed-gemini: the embedder ``gemini``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_embed_gemini.options import GeminiOptions
from klaw_http import require_network

if TYPE_CHECKING:
    from klaw_http.embedding import RemoteEmbedder


def _gemini(options: GeminiOptions, context: ComponentContext) -> RemoteEmbedder:
    require_network(options.url, context)
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
