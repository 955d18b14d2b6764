"""What Klaw loads: the embedder ``onnx`` and its options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import field, frozen, validators

from klaw_core import AutoChoice, Component, ComponentContext, hookimpl

if TYPE_CHECKING:
    from klaw_embed_onnx.embedder import OnnxEmbedder


@frozen
class OnnxOptions:
    """Options of the embedder ``onnx``.

    ``model``: the name of a model that is installed or was added (``klaw models list``).
    ``path``: a directory that holds a model and its ``model.json``, instead of a name.
    ``threads``: how many batches are computed at once; 0 is one for each processor this process may use.
    ``batch_tokens``: how many tokens one batch holds, padding included.
    """

    model: str = field(default="all-MiniLM-L6-v2", validator=validators.min_len(1))
    path: str | None = field(default=None, validator=validators.optional(validators.min_len(1)))
    threads: int = field(default=0, validator=[validators.ge(0), validators.le(256)])
    batch_tokens: int = field(default=512, validator=validators.ge(1))


def _onnx(options: OnnxOptions, place: ComponentContext) -> OnnxEmbedder:
    from klaw_embed_onnx.embedder import OnnxEmbedder
    from klaw_models import OnnxEmbedderManifest, find_model

    manifest = find_model(OnnxEmbedderManifest, options.model, options.path, place.cache_dir)
    return OnnxEmbedder(manifest, threads=options.threads, batch_tokens=options.batch_tokens)


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
