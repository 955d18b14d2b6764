"""The hook implementations of klaw-embed-llamacpp: the embedder ``llamacpp``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_embed_llamacpp.options import LlamaCppOptions

if TYPE_CHECKING:
    from klaw_embed_llamacpp.embedder import LlamaCppEmbedder


def _llamacpp(options: LlamaCppOptions, context: ComponentContext) -> LlamaCppEmbedder:
    from klaw_embed_llamacpp.embedder import LlamaCppEmbedder
    from klaw_embed_llamacpp.model import find_model

    return LlamaCppEmbedder(find_model(options, context.cache_dir))


@hookimpl
def klaw_embedders() -> Iterable[Component[LlamaCppOptions, LlamaCppEmbedder]]:
    """Yield the embedder ``llamacpp``."""
    yield Component(
        "llamacpp",
        options=LlamaCppOptions,
        factory=_llamacpp,
        api=2,
        auto=AutoChoice(30),
        summary="GGUF embedding models with llama.cpp",
    )
