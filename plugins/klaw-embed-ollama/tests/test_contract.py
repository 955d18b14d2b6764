"""The contract of every embedder, over a server that refuses what exceeds its window.

The server's tokenizer is finer than Klaw's estimate here, so that texts are halved because it says so too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_httpserver import HTTPServer

from klaw_embed_ollama.options import OllamaOptions
from klaw_embed_ollama.server import OllamaServer
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.ollama import FakeOllama
from klaw_testing.embedder import EmbedderContract


@pytest.fixture(
    scope="class",
    params=[1, pytest.param(2, marks=pytest.mark.one_of(3))],
    ids=["as estimated", "twice as many tokens"],
)
def _embedder(request: pytest.FixtureRequest) -> Iterator[RemoteEmbedder]:
    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        ollama = FakeOllama(server)
        ollama.model.tokens_per_piece = request.param
        options = OllamaOptions(url=ollama.url, retries=0)
        yield RemoteEmbedder(options, OllamaServer(options))


class TestOllama(EmbedderContract):
    @pytest.fixture
    def embedder(self, _embedder: RemoteEmbedder) -> RemoteEmbedder:
        return _embedder
