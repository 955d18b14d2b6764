from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from klaw_core import ComponentContext
from klaw_embed_ollama.options import OllamaOptions
from klaw_embed_ollama.plugin import klaw_embedders
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.ollama import FakeOllama

Connect = Callable[..., RemoteEmbedder]


@pytest.fixture
def ollama(httpserver: HTTPServer) -> FakeOllama:
    return FakeOllama(httpserver)


@pytest.fixture
def connect(httpserver: HTTPServer, tmp_path: Path) -> Connect:
    """Build an embedder the way Klaw does: through the hook, on the test's server, with no patience."""

    def build(**options: object) -> RemoteEmbedder:
        values: dict[str, object] = {"url": httpserver.url_for(""), "retries": 0, "timeout_seconds": 5.0, **options}
        (component,) = klaw_embedders()
        place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path)
        return component.factory(OllamaOptions(**values), place)  # type: ignore[arg-type]  # each test passes its own

    return build
