"""A Gemini API that misbehaves."""

from __future__ import annotations

from typing import Any, ClassVar

from klaw_embed_gemini.options import GeminiOptions
from klaw_embed_gemini.server import GeminiServer
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.remote_embedder import DIMENSION, RemoteEmbedderContract


class TestGeminiOnTheWire(RemoteEmbedderContract):
    key_header: ClassVar[str] = "x-goog-api-key"

    def connect(self, url: str, **options: Any) -> RemoteEmbedder:
        built = GeminiOptions(url=url, dimension=DIMENSION, **options)
        return RemoteEmbedder(built, GeminiServer(built))

    def answer(self, rows: Any) -> dict[str, Any]:
        return {"embeddings": [{"values": row} for row in rows]}
