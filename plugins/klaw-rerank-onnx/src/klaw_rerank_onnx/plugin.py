"""The hook implementations of klaw-rerank-onnx: the reranker ``onnx``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, hookimpl
from klaw_rerank_onnx.options import OnnxRerankerOptions

if TYPE_CHECKING:
    from klaw_rerank_onnx.reranker import OnnxReranker


def _onnx(options: OnnxRerankerOptions, context: ComponentContext) -> OnnxReranker:
    from klaw_models import CrossEncoderManifest, find_model
    from klaw_rerank_onnx.reranker import OnnxReranker

    return OnnxReranker(options, find_model(CrossEncoderManifest, options.model, options.path, context.cache_dir))


@hookimpl
def klaw_rerankers() -> Iterable[Component[OnnxRerankerOptions, OnnxReranker]]:
    """Yield the reranker ``onnx``."""
    summary = "a cross-encoder on the CPU with ONNX Runtime"
    yield Component("onnx", options=OnnxRerankerOptions, factory=_onnx, api=2, summary=summary)
