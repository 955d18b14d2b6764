"""The hook implementations of klaw-embed-openvino: the embedder ``openvino``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl
from klaw_embed_openvino.options import OpenVinoOptions
from klaw_embed_openvino.processor import is_faster_here

if TYPE_CHECKING:
    from klaw_embed_openvino.embedder import OpenVinoEmbedder

#: The embedder `onnx` has rank 10.
BEFORE_ONNX, AFTER_ONNX = 5, 15


def _openvino(options: OpenVinoOptions, context: ComponentContext) -> OpenVinoEmbedder:
    from klaw_embed_openvino.embedder import OpenVinoEmbedder
    from klaw_models import OnnxEmbedderManifest, find_model

    manifest = find_model(OnnxEmbedderManifest, options.model, options.path, context.cache_dir)
    return OpenVinoEmbedder(
        manifest, precision=options.precision, threads=options.threads, batch_tokens=options.batch_tokens
    )


@hookimpl
def klaw_embedders() -> Iterable[Component[OpenVinoOptions, OpenVinoEmbedder]]:
    """Yield the embedder ``openvino``. ``auto`` prefers it to ``onnx`` on processors where it is faster."""
    yield Component(
        "openvino",
        options=OpenVinoOptions,
        factory=_openvino,
        api=2,
        auto=AutoChoice(BEFORE_ONNX if is_faster_here() else AFTER_ONNX),
        summary="embeddings on the CPU with OpenVINO",
    )
