"""An Ollama server that misbehaves."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from klaw_embed_ollama.options import OllamaOptions
from klaw_embed_ollama.server import OllamaServer
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.wire import reply
from klaw_testing.remote_embedder import DIMENSION, RemoteEmbedderContract

_SHOWN = {"model_info": {"general.architecture": "bert", "bert.embedding_length": DIMENSION}}


class TestOllamaOnTheWire(RemoteEmbedderContract):
    preamble: ClassVar[tuple[bytes, ...]] = (reply(b'{"models": []}'), reply(json.dumps(_SHOWN).encode()))

    def connect(self, url: str, **options: Any) -> RemoteEmbedder:
        built = OllamaOptions(url=url, **options)
        return RemoteEmbedder(built, OllamaServer(built))

    def answer(self, rows: Any) -> dict[str, Any]:
        return {"model": "all-minilm:l6-v2", "embeddings": rows}
