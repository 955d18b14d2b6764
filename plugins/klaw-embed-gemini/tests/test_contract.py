"""The contract of every embedder, over a server that cuts long texts in silence and shortens without normalising."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer

from klaw_embed_gemini.options import GeminiOptions
from klaw_embed_gemini.server import GeminiServer
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.gemini import KEY, FakeGemini
from klaw_testing.embedder import EmbedderContract


@pytest.fixture(scope="class")
def _embedder() -> Iterator[RemoteEmbedder]:
    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        gemini = FakeGemini(server, dimension=128)
        options = GeminiOptions(url=gemini.url, api_key=KEY, dimension=64, retries=0)
        yield RemoteEmbedder(options, GeminiServer(options))


class TestGemini(EmbedderContract):
    @pytest.fixture
    def embedder(self, _embedder: RemoteEmbedder) -> RemoteEmbedder:
        return _embedder
