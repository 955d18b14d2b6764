"""The hook implementations of klaw-embed-onnx: the embedder ``onnx``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_embed_onnx.options import OnnxOptions

if TYPE_CHECKING:
    from klaw_embed_onnx.embedder import OnnxEmbedder


def _onnx(options: OnnxOptions, context: ComponentContext) -> OnnxEmbedder:
    from klaw_embed_onnx.embedder import OnnxEmbedder
    from klaw_models import OnnxEmbedderManifest, find_model

    manifest = find_model(OnnxEmbedderManifest, options.model, options.path, context.cache_dir)
    return OnnxEmbedder(
        manifest, threads=options.threads, batch_tokens=options.batch_tokens, providers=options.providers
    )


@hookimpl
def klaw_embedders() -> Iterable[Component[OnnxOptions, OnnxEmbedder]]:
    """Yield the embedder ``onnx``."""
    yield Component(
        "onnx",
        options=OnnxOptions,
        factory=_onnx,
        api=2,
        auto=AutoChoice(10),
        summary="embeddings on the CPU with ONNX Runtime",
    )
