"""The hook implementations of klaw-embed-ollama: the embedder ``ollama``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_embed_ollama.options import OllamaOptions
from klaw_http import require_network

if TYPE_CHECKING:
    from klaw_http.embedding import RemoteEmbedder


def _ollama(options: OllamaOptions, context: ComponentContext) -> RemoteEmbedder:
    require_network(options.url, context)
    from klaw_embed_ollama.server import OllamaServer
    from klaw_http.embedding import RemoteEmbedder

    return RemoteEmbedder(options, OllamaServer(options))


@hookimpl
def klaw_embedders() -> Iterable[Component[OllamaOptions, RemoteEmbedder]]:
    """Yield the embedder ``ollama``."""
    yield Component(
        "ollama",
        options=OllamaOptions,
        factory=_ollama,
        api=2,
        auto=AutoChoice(100),
        summary="embeddings from an Ollama server",
    )
