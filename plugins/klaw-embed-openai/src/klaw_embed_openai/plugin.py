"""The hook implementations of klaw-embed-openai: the embedder ``openai``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_embed_openai.options import OpenAIOptions
from klaw_http import require_network

if TYPE_CHECKING:
    from klaw_http.embedding import RemoteEmbedder


def _openai(options: OpenAIOptions, context: ComponentContext) -> RemoteEmbedder:
    require_network(options.url, context)
    from klaw_embed_openai.batches import BatchJobs
    from klaw_embed_openai.server import OpenAIServer
    from klaw_http.embedding import RemoteEmbedder

    server = OpenAIServer(options)
    jobs = BatchJobs(server, context.data_dir / "batches") if options.batch_api else None
    return RemoteEmbedder(options, server, jobs)


@hookimpl
def klaw_embedders() -> Iterable[Component[OpenAIOptions, RemoteEmbedder]]:
    """Yield the embedder ``openai``."""
    yield Component(
        "openai",
        options=OpenAIOptions,
        factory=_openai,
        api=2,
        auto=AutoChoice(110, keys=("OPENAI_API_KEY",)),
        summary="embeddings from OpenAI, or a server that speaks its protocol",
    )
