"""The embedder ``onnx``: runs a model with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

from klaw_core import EmbedderUnavailableError, EmbeddingError
from klaw_models import OnnxEmbedderManifest
from klaw_models.onnx import OnnxSession, SentenceEncoder, WindowEmbedder, usable_processors


class OnnxEmbedder(WindowEmbedder):
    """Embeds with ONNX Runtime. ``threads`` is the number of parallel batches; 0 means one per processor."""

    def __init__(
        self,
        manifest: OnnxEmbedderManifest,
        *,
        threads: int = 0,
        batch_tokens: int = 256,
        providers: Sequence[str] = ("cpu",),
    ) -> None:
        super().__init__(
            manifest, lambda: load_encoder(manifest, threads=threads, batch_tokens=batch_tokens, providers=providers)
        )


def load_encoder(
    manifest: OnnxEmbedderManifest, *, threads: int, batch_tokens: int, providers: Sequence[str] = ("cpu",)
) -> SentenceEncoder:
    """Check and load the model. Raise EmbedderUnavailableError or ModelCorruptError."""
    session = OnnxSession.load(
        manifest, unavailable=EmbedderUnavailableError, failed=EmbeddingError, providers=providers
    )
    return SentenceEncoder(session, manifest, threads or usable_processors(), batch_tokens)
