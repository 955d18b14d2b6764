from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klaw_embed_openvino.embedder import OpenVinoEmbedder
from klaw_models import OnnxEmbedderManifest, find_model

ModelCopy = Callable[..., Path]


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> OnnxEmbedderManifest:
    return find_model(OnnxEmbedderManifest, "all-MiniLM-L6-v2", None, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def minilm(manifest: OnnxEmbedderManifest) -> OpenVinoEmbedder:
    """The installed default model, loaded once, in the precision of this processor."""
    return OpenVinoEmbedder(manifest)


@pytest.fixture
def model_copy(manifest: OnnxEmbedderManifest, tmp_path: Path) -> ModelCopy:
    """Return a function that makes a model directory whose manifest differs in the given keys."""

    def copy(target: Path = tmp_path / "model", **changes: Any) -> Path:
        target.mkdir(parents=True)
        for name in manifest.needed:
            (target / name).symlink_to(manifest.directory / name)
        content = json.loads((manifest.directory / "model.json").read_text(encoding="utf-8"))
        (target / "model.json").write_text(json.dumps(content | changes), encoding="utf-8")
        return target

    return copy
