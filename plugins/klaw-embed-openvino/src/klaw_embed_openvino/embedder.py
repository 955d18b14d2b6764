"""The embedder ``openvino``: runs a model with OpenVINO."""

from __future__ import annotations

from klaw_embed_openvino.session import OpenVinoSession
from klaw_models import OnnxEmbedderManifest
from klaw_models.onnx import SentenceEncoder, WindowEmbedder, usable_processors


class OpenVinoEmbedder(WindowEmbedder):
    """Embeds with OpenVINO. ``threads`` is the number of parallel batches; 0 means one per processor."""

    def __init__(
        self, manifest: OnnxEmbedderManifest, *, precision: str = "auto", threads: int = 0, batch_tokens: int = 512
    ) -> None:
        def load() -> SentenceEncoder:
            streams = threads or usable_processors()
            session = OpenVinoSession.load(manifest, precision=precision, streams=streams)
            return SentenceEncoder(session, manifest, streams, batch_tokens)

        super().__init__(manifest, load)
