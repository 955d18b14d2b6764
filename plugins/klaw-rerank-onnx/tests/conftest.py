from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klaw_core import Candidate, ComponentContext, Contribution, Hit, StoredChunk
from klaw_rerank_onnx.options import OnnxRerankerOptions
from klaw_rerank_onnx.plugin import klaw_rerankers
from klaw_rerank_onnx.reranker import OnnxReranker
from klaw_testing.doubles.cross_encoder import write_model
from klaw_testing.values import cut_lines, make_document

Connect = Callable[..., OnnxReranker]


@pytest.fixture
def make_model(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a model's directory; ``changes`` are laid over its manifest."""

    def make(graph: bytes | None = None, **changes: Any) -> Path:
        return write_model(tmp_path / "model", graph, changes)

    return make


@pytest.fixture
def load(tmp_path: Path) -> Connect:
    """Build a reranker the way Klaw does: through the hook."""

    def build(directory: Path, **options: Any) -> OnnxReranker:
        (component,) = klaw_rerankers()
        values = {"path": str(directory), "bypass": False, **options}
        return component.factory(OnnxRerankerOptions(**values), ComponentContext(tmp_path, tmp_path))

    return build


@pytest.fixture
def found() -> list[Candidate]:
    """Candidates with the keys 1, 2, …, all found close to each other."""
    candidates = []
    for key, text in enumerate(("the cat sat", "the dog ran", "which pet ran on the mat", "a boat"), start=1):
        document = make_document(f"notes/{key}.md", text)
        stored = StoredChunk(key, cut_lines(document)[0], document.path, document.source, document.created_at)
        part = Contribution("fts5", key, 10.0 - key / 100, 1.0, 1 / key)
        candidates.append(Candidate(stored, Hit(key, 1 / key, (part,))))
    return candidates
