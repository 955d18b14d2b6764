from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from klaw_core import ComponentContext
from klaw_embed_openai.options import OpenAIOptions
from klaw_embed_openai.plugin import klaw_embedders
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.openai import FakeOpenAI

Connect = Callable[..., RemoteEmbedder]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def openai(httpserver: HTTPServer) -> FakeOpenAI:
    return FakeOpenAI(httpserver, dimension=64)


@pytest.fixture
def connect(openai: FakeOpenAI, tmp_path: Path) -> Connect:
    """Build an embedder the way Klaw does: through the hook, on the test's server, with no patience."""

    def build(**options: object) -> RemoteEmbedder:
        values: dict[str, object] = {
            "url": openai.url,
            "dimension": 64,
            "retries": 0,
            "timeout_seconds": 5.0,
            **options,
        }
        (component,) = klaw_embedders()
        place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path)
        return component.factory(OpenAIOptions(**values), place)  # type: ignore[arg-type]  # each test passes its own

    return build
