"""The contract of every embedder, over a server that refuses what exceeds its window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from klaw_embed_openai.batches import BatchJobs
from klaw_embed_openai.options import OpenAIOptions
from klaw_embed_openai.server import OpenAIServer
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.openai import FakeOpenAI
from klaw_testing.embedder import EmbedderContract

_SHAPES: dict[str, dict[str, object]] = {
    "openai's own model": {},
    "floats of a server with a finer tokenizer": {"model": "bge", "encoding": "float", "max_tokens": 254},
    "batches": {"batch_api": True, "batch_min_texts": 2},
}
_FIRST, *_OTHERS = _SHAPES
_FORMS = [_FIRST, *(pytest.param(name, marks=pytest.mark.one_of(3)) for name in _OTHERS)]


@pytest.fixture(scope="class", params=_FORMS)
def _embedder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteEmbedder]:
    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        openai = FakeOpenAI(server, dimension=64)
        chosen = _SHAPES[request.param]
        openai.name = str(chosen.get("model", openai.name))
        openai.model.context = 512 if "model" in chosen else 8192
        openai.model.tokens_per_piece = 2 if "finer" in request.param else 1
        openai.knows_base64 = "floats" not in request.param
        options = OpenAIOptions(url=openai.url, dimension=64, retries=0, **chosen)  # type: ignore[arg-type]  # above
        place: Path = tmp_path_factory.mktemp("batches")
        jobs = BatchJobs(OpenAIServer(options), place, pause=lambda _seconds: None) if options.batch_api else None
        yield RemoteEmbedder(options, OpenAIServer(options), jobs)


class TestOpenAI(EmbedderContract):
    @pytest.fixture
    def embedder(self, _embedder: RemoteEmbedder) -> RemoteEmbedder:
        return _embedder
