from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from klaw_core import ComponentContext
from klaw_embed_gemini.options import GeminiOptions
from klaw_embed_gemini.plugin import klaw_embedders
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.gemini import KEY, FakeGemini

Connect = Callable[..., RemoteEmbedder]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def gemini(httpserver: HTTPServer) -> FakeGemini:
    return FakeGemini(httpserver, dimension=128)


@pytest.fixture
def connect(gemini: FakeGemini, tmp_path: Path) -> Connect:
    """Build an embedder the way Klaw does: through the hook, on the test's server, with no patience."""

    def build(**options: object) -> RemoteEmbedder:
        values: dict[str, object] = {"url": gemini.url, "api_key": KEY, "dimension": 64, "retries": 0, **options}
        (component,) = klaw_embedders()
        place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path)
        return component.factory(GeminiOptions(**values), place)  # type: ignore[arg-type]  # each test passes its own

    return build
