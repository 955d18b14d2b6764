from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from klaw_core import ComponentContext
from klaw_llm_openai.model import OpenAIModel
from klaw_llm_openai.options import OpenAIModelOptions
from klaw_llm_openai.plugin import klaw_language_models
from klaw_testing.doubles.chat import FakeChat

Connect = Callable[..., OpenAIModel]


@pytest.fixture
def server(httpserver: HTTPServer) -> FakeChat:
    return FakeChat.at(httpserver)


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """Build a model as Klaw does: through the hook."""

    def build(url: str, *, offline: bool = False, **options: Any) -> OpenAIModel:
        (component,) = klaw_language_models()
        values = {"model": "qwen3", "retries": 0, **options}
        place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path, offline=offline)
        return component.factory(OpenAIModelOptions(url=url, **values), place)

    return build
