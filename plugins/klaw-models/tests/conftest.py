"""A hub on this machine, and models small enough to be sent by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs
import pytest
from pytest_httpserver import HTTPServer

from klaw_http.download import DownloadLimits
from klaw_models import KNOWN, KnownFile, KnownModel
from klaw_models.adding import ModelAdder, OnBytes
from klaw_models.fetching import Hub

#: What the small models' files hold. No test here runs a model.
GRAPH, TOKENIZER = b"a graph" * 5000, b'{"model": "words"}'

ModelDirectory = Callable[..., Path]
Add = Callable[..., ModelAdder]

LIMITS = DownloadLimits(retries=1, pause=lambda _seconds: None)


def manifest_of(name: str, **changes: Any) -> dict[str, Any]:
    """Return a sound manifest of an ONNX embedder with these files, or one that differs in some keys."""
    content = {
        "format": 1,
        "name": name,
        "revision": sha256(GRAPH).hexdigest(),
        "license": "MIT",
        "dimension": 8,
        "window_tokens": 32,
        "max_tokens": 30,
        "max_positions": 64,
        "pooling": "mean",
        "query_prefix": "",
        "document_prefix": "",
        "model": "model.onnx",
        "tokenizer": "tokenizer.json",
        "inputs": {"ids": "input_ids", "mask": "attention_mask"},
        "output": "last_hidden_state",
        "files": {
            "model.onnx": {"sha256": sha256(GRAPH).hexdigest(), "size": len(GRAPH)},
            "tokenizer.json": {"sha256": sha256(TOKENIZER).hexdigest(), "size": len(TOKENIZER)},
        },
    }
    return {key: value for key, value in (content | changes).items() if value is not ...}


@pytest.fixture
def model_directory(tmp_path: Path) -> ModelDirectory:
    """Return a function that writes a model; its manifest differs in the given keys (``...`` leaves one out)."""

    def write(target: Path = tmp_path / "model", name: str = "mine", **changes: Any) -> Path:
        target.mkdir(parents=True, exist_ok=True)
        (target / "model.onnx").write_bytes(GRAPH)
        (target / "tokenizer.json").write_bytes(TOKENIZER)
        (target / "model.json").write_text(json.dumps(manifest_of(name, **changes)), encoding="utf-8")
        return target

    return write


@pytest.fixture
def bge(monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """The entry of bge-small-en-v1.5 with small files in place of the large ones."""
    model = small(KNOWN["bge-small-en-v1.5"])
    monkeypatch.setitem(KNOWN, model.name, model)  # type: ignore[arg-type]  # it is a dict
    return model


def small(model: KnownModel) -> KnownModel:
    """Return a known ONNX model whose files are small."""
    contents = (GRAPH, TOKENIZER)
    files = [
        KnownFile(file.path, sha256(content).hexdigest(), len(content))
        for file, content in zip(model.files, contents, strict=True)
    ]
    return attrs.evolve(model, files=tuple(files))


@pytest.fixture
def cdn() -> Iterator[HTTPServer]:
    """The content network that the hub redirects to."""
    with HTTPServer() as server:
        yield server


@pytest.fixture
def hub(httpserver: HTTPServer, cdn: HTTPServer, bge: KnownModel) -> HTTPServer:
    """A hub that has the model: it sends small files itself and redirects for large ones."""
    base = f"/{bge.repository}/resolve/{bge.commit}"
    signed = cdn.url_for("/blob?signature=secret")
    httpserver.expect_request(f"{base}/onnx/model.onnx").respond_with_data(status=302, headers={"location": signed})
    httpserver.expect_request(f"{base}/tokenizer.json").respond_with_data(TOKENIZER)
    cdn.expect_request("/blob").respond_with_data(GRAPH)
    return httpserver


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def counts() -> list[int]:
    """What the progress bar was told: first the whole, then how much was there."""
    return []


@pytest.fixture
def adding(cache: Path, counts: list[int], monkeypatch: pytest.MonkeyPatch) -> Add:
    @contextmanager
    def bar(total: int) -> Iterator[OnBytes]:
        counts.append(total)
        yield counts.append

    monkeypatch.setattr("klaw_models.adding.Hub", lambda url: Hub(url, LIMITS))
    return lambda url="http://127.0.0.1:9", **options: ModelAdder(cache, bar, hub_url=url, **options)
