"""The embedder on the real model: the contract, and that its vectors are those of ONNX Runtime."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from klaw_core import ComponentContext, EmbedderUnavailableError, EmbeddingError, ModelCorruptError
from klaw_embed_openvino import session as session_module
from klaw_embed_openvino.embedder import OpenVinoEmbedder
from klaw_embed_openvino.options import OpenVinoOptions
from klaw_embed_openvino.plugin import klaw_embedders
from klaw_embed_openvino.session import ALIGNMENT, OpenVinoSession, aligned
from klaw_models import OnnxEmbedderManifest, read_manifest
from klaw_testing.embedder import EmbedderContract

pytest.importorskip("openvino")

ModelCopy = Callable[..., Path]

SENTENCES = (
    "The cat sits outside.",
    "A kettle boils water for tea.",
    "SQLite allows a single writer at a time, and any number of readers beside it.",
    "Заметка о встрече: 東京で会う 👍",
    "def embed(texts): return model.encode(texts)",
)
LONG = " ".join(SENTENCES * 12)


# The model is that of klaw-embed-onnx, which keeps every law, and its vectors are compared below.
@pytest.mark.one_of(3)
class TestContract(EmbedderContract):
    # With 8 bits and with bfloat16 the kernel depends on the batch: 1.6e-3 was seen, a cosine of .9999.
    tolerance, least_change = 4e-3, 6e-3

    @pytest.fixture
    def embedder(self, minilm: OpenVinoEmbedder) -> OpenVinoEmbedder:
        return minilm


@pytest.mark.parametrize("precision", ["auto", "int8", "float32"])
def test_the_vectors_are_those_of_onnx_runtime(manifest: OnnxEmbedderManifest, precision: str) -> None:
    other = pytest.importorskip("klaw_embed_onnx.embedder").OnnxEmbedder(manifest)
    own = OpenVinoEmbedder(manifest, precision=precision)
    assert own.space == other.space
    texts = [*SENTENCES, LONG]
    cosines = (own.embed_documents(texts) * other.embed_documents(texts)).sum(axis=1)
    assert cosines.min() > 0.99
    assert own.count_tokens(texts) == other.count_tokens(texts)


def test_threads_and_batches_change_no_vector(manifest: OnnxEmbedderManifest, minilm: OpenVinoEmbedder) -> None:
    texts = [" ".join(SENTENCES[: number % 5 + 1]) for number in range(12)]
    expected = minilm.embed_documents(texts)
    for threads, batch_tokens in ((1, 1), (3, 64)):
        embedder = OpenVinoEmbedder(manifest, threads=threads, batch_tokens=batch_tokens)
        cosines = (embedder.embed_documents(texts) * expected).sum(axis=1)
        assert cosines.min() > 0.9999  # bfloat16 adds in another order


def test_float32_agrees_with_the_reference(manifest: OnnxEmbedderManifest) -> None:
    session = OpenVinoSession.load(manifest, precision="float32", streams=1)
    assert session.run([[101, 2023, 102], [101, 102]]).shape == (2, 3, 384)
    alone = session.run([[101, 102]])
    np.testing.assert_allclose(session.run([[101, 2023, 102], [101, 102]])[1, :2], alone[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("tokens", "most", "width"),
    [(1, 256, 16), (16, 256, 16), (17, 256, 32), (241, 256, 256), (256, 256, 256), (505, 510, 510), (300, 256, 300)],
)
def test_a_row_is_widened_to_a_multiple_of_the_alignment_within_the_window(tokens: int, most: int, width: int) -> None:
    assert aligned(tokens, most) == width


def test_lengths_that_are_close_share_a_shape_and_give_their_own_tokens(
    manifest: OnnxEmbedderManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenVINO generates code for each shape that it has not seen."""
    fed: set[tuple[int, ...]] = set()
    session = OpenVinoSession.load(manifest, precision="float32", streams=1)
    real = session_module.model_inputs

    def remember(*arguments: Any, **keywords: Any) -> Any:
        inputs = real(*arguments, **keywords)
        fed.update(value.shape for value in inputs.values())
        return inputs

    monkeypatch.setattr(session_module, "model_inputs", remember)
    for tokens in range(3, ALIGNMENT + 1):
        assert session.run([[101, *[2023] * (tokens - 2), 102]]).shape == (1, tokens, 384)
    assert fed == {(1, ALIGNMENT)}


@pytest.mark.parametrize("flags", ["avx2", "avx512f avx512_vnni avx_vnni", "amx_tile amx_int8", ""])
def test_bfloat16_on_an_unsupported_processor_is_an_error(
    manifest: OnnxEmbedderManifest, tmp_path: Path, flags: str
) -> None:
    """Even where OpenVINO would emulate it and report bfloat16."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"flags : fpu {flags}\n", encoding="utf-8")
    with pytest.raises(EmbedderUnavailableError, match="does not compute in bfloat16") as caught:
        OpenVinoSession.load(manifest, precision="bfloat16", streams=1, cpuinfo=cpuinfo)
    assert "memory.embedding.precision" in caught.value.hint


@pytest.mark.parametrize("reported", ["bf16", "f32"])
def test_bfloat16_is_what_openvino_computes_in_or_an_error(
    manifest: OnnxEmbedderManifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reported: str
) -> None:
    import openvino

    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : fpu amx_tile amx_bf16\n", encoding="utf-8")
    asked = []

    class Core:
        def read_model(self, path: Path) -> Any:
            return openvino_core.read_model(path)

        def compile_model(self, *_arguments: Any) -> Any:
            asked.append(_arguments[-1]["INFERENCE_PRECISION_HINT"])
            return self

        def get_property(self, _name: str) -> Any:
            return getattr(openvino.Type, reported)

    openvino_core = openvino.Core()
    monkeypatch.setattr(openvino, "Core", Core)
    load = partial(OpenVinoSession.load, manifest, precision="bfloat16", streams=1, cpuinfo=cpuinfo)
    if reported == "bf16":
        assert load().precision == "bfloat16"
    else:
        with pytest.raises(EmbedderUnavailableError, match="does not compute in bfloat16"):
            load()
    assert asked == ["bf16"]


def test_a_graph_with_scales_per_token_is_rejected(model_copy: ModelCopy) -> None:
    """OpenVINO would compute nonsense, or fail, depending on the shapes."""
    embedder = OpenVinoEmbedder(read_manifest(model_copy(weight_only=None)))
    with pytest.raises(EmbedderUnavailableError, match="scale per token") as caught:
        embedder.embed_query("a cat")
    assert "klaw-model-minilm" in caught.value.hint
    assert "'onnx'" in caught.value.hint


@pytest.mark.parametrize("name", ["model.onnx", "weight-only.onnx"])
@pytest.mark.parametrize("damage", ["one bit", "gone"])
def test_a_changed_file_is_rejected(model_copy: ModelCopy, name: str, damage: str) -> None:
    path = model_copy()
    content = bytearray((path / name).read_bytes())
    (path / name).unlink()
    if damage == "one bit":
        content[len(content) // 2] ^= 1
        (path / name).write_bytes(content)
    with pytest.raises(ModelCorruptError, match=name.replace(".", r"\.")) as caught:
        OpenVinoEmbedder(read_manifest(path)).embed_query("a cat")
    assert f"delete {path}" in caught.value.hint


def test_a_graph_that_cannot_be_loaded_is_an_error(model_copy: ModelCopy) -> None:
    path = model_copy()
    (path / "weight-only.onnx").unlink()
    (path / "weight-only.onnx").write_bytes(b"no graph at all")
    content = json.loads((path / "model.json").read_text(encoding="utf-8"))
    content["files"]["weight-only.onnx"] = {"sha256": sha256(b"no graph at all").hexdigest()}
    (path / "model.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(EmbedderUnavailableError, match="cannot load all-MiniLM-L6-v2") as caught:
        OpenVinoEmbedder(read_manifest(path)).embed_query("a cat")
    assert "openvino" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"inputs": {"ids": "ids", "mask": "attention_mask"}}, "ids"),
        ({"inputs": {"ids": "input_ids", "mask": "mask"}}, "mask"),
        ({"output": "pooled"}, "pooled"),
    ],
)
def test_an_unknown_output_is_an_error(model_copy: ModelCopy, changes: dict[str, object], missing: str) -> None:
    with pytest.raises(ModelCorruptError, match=f"the graph of all-MiniLM-L6-v2 has no {missing}"):
        OpenVinoEmbedder(read_manifest(model_copy(**changes))).embed_query("a cat")


def test_a_run_that_fails_is_an_embedding_error(manifest: OnnxEmbedderManifest) -> None:
    session = OpenVinoSession.load(manifest, precision="float32", streams=1)
    unknown = evolve(session, types_input="token_types")
    with pytest.raises(EmbeddingError, match="all-MiniLM-L6-v2 failed: ") as caught:
        unknown.run([[101, 102]])
    assert type(caught.value) is EmbeddingError


def test_a_library_that_cannot_be_imported_is_an_error(
    manifest: OnnxEmbedderManifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def failing(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "openvino":
            raise ImportError("libthing.so.1: cannot open shared object file")
        return real_import(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", failing)
    with pytest.raises(EmbedderUnavailableError, match="openvino cannot be imported: libthing") as caught:
        OpenVinoEmbedder(manifest).embed_query("a cat")
    assert "openvino" in caught.value.hint


def test_use_after_a_fork_raises_without_waiting(minilm: OpenVinoEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is forked here: one with OpenVINO's threads may hang in the fork itself, whoever has made it."""
    minilm.embed_query("a cat")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(EmbedderUnavailableError, match="before this process was forked") as caught:
        minilm.embed_query("a cat")
    assert "spawn" in caught.value.hint


def test_the_component_builds_the_default_model(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    embedder = component.factory(component.options(), ComponentContext(tmp_path / "data", tmp_path / "cache"))
    assert (component.name, embedder.space.model) == ("openvino", "all-MiniLM-L6-v2")


def test_the_entry_point_leads_to_the_hook() -> None:
    (point,) = entry_points(group="klaw", name="embed-openvino")
    assert point.load().klaw_embedders is klaw_embedders


def test_concurrent_threads_wait_until_one_has_loaded_the_model(tmp_path: Path) -> None:
    """The first conversion of a tensor asks numpy for its version; two threads that do so at once lock each other."""
    program = f"""
import pathlib, numpy, klaw_core, klaw_embed_openvino.plugin
(component,) = klaw_embed_openvino.plugin.klaw_embedders()
place = klaw_core.ComponentContext(pathlib.Path({str(tmp_path)!r}), pathlib.Path({str(tmp_path)!r}))
embedder = component.factory(component.options(), place)
embedder._encoder.get()
numpy.lib.NumpyVersion = None
print(embedder.embed_documents(["harbour", "gulls cry at dawn"]).shape)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "(2, 384)\n"


def test_nothing_heavy_is_imported_before_the_first_text(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from klaw_embed_openvino.plugin import klaw_embedders
assert not {{"numpy", "openvino", "tokenizers"}} & sys.modules.keys(), "by the plugin"
from klaw_core import ComponentContext
(component,) = klaw_embedders()
embedder = component.factory(component.options(), ComponentContext(Path({str(tmp_path)!r}), Path({str(tmp_path)!r})))
assert (embedder.space.dimension, embedder.max_tokens) == (384, 254)
assert not {{"openvino", "onnxruntime", "tokenizers", "httpx2"}} & sys.modules.keys(), "by the embedder"
embedder.count_tokens(["a cat"])
assert not {{"openvino", "onnxruntime"}} & sys.modules.keys(), "by counting"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "options",
    [{"model": ""}, {"path": ""}, {"precision": "float16"}, {"threads": -1}, {"batch_tokens": 0}],
    ids=lambda options: next(iter(options)),
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        OpenVinoOptions(**options)
