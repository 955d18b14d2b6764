"""Loading a model: trusting its files, and saying what is wrong with it."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from klaw_core import ComponentContext, EmbedderUnavailableError, ModelCorruptError, ModelNotFoundError
from klaw_embed_onnx.embedder import OnnxEmbedder
from klaw_embed_onnx.options import OnnxOptions
from klaw_embed_onnx.plugin import klaw_embedders
from klaw_models import OnnxEmbedderManifest, read_manifest

ModelCopy = Callable[..., Path]


def _place(tmp_path: Path) -> ComponentContext:
    return ComponentContext(tmp_path / "data", tmp_path / "cache")


def test_the_component_builds_the_default_model(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    assert component.name == "onnx"
    embedder = component.factory(component.options(), _place(tmp_path))
    assert embedder.space.model == "all-MiniLM-L6-v2"


def test_the_entry_point_leads_to_the_hook() -> None:
    (point,) = entry_points(group="klaw", name="embed-onnx")
    assert point.load().klaw_embedders is klaw_embedders


def test_a_path_takes_precedence_over_a_name(model_copy: ModelCopy, tmp_path: Path) -> None:
    path = model_copy(name="mine", revision="7")
    (component,) = klaw_embedders()
    options = OnnxOptions(model="all-MiniLM-L6-v2", path=str(path))
    assert component.factory(options, _place(tmp_path)).space.model == "mine"


def test_a_missing_model_names_the_command(tmp_path: Path) -> None:
    (component,) = klaw_embedders()
    with pytest.raises(ModelNotFoundError) as caught:
        component.factory(OnnxOptions(model="bge-small-en-v1.5"), _place(tmp_path))
    assert caught.value.hint == "klaw models add bge-small-en-v1.5"


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["one bit", "cut short", "gone"])
def test_a_changed_file_is_rejected(model_copy: ModelCopy, name: str, damage: str) -> None:
    path = model_copy()
    content = bytearray((path / name).read_bytes())
    (path / name).unlink()
    if damage == "one bit":
        content[len(content) // 2] ^= 1
    if damage != "gone":
        (path / name).write_bytes(content[:-1] if damage == "cut short" else content)
    embedder = OnnxEmbedder(read_manifest(path))
    with pytest.raises(ModelCorruptError, match=name.replace(".", r"\.")) as caught:
        embedder.embed_query("a cat")
    assert f"delete {path}" in caught.value.hint


def test_a_repaired_model_works_without_a_new_embedder(model_copy: ModelCopy, manifest: OnnxEmbedderManifest) -> None:
    path = model_copy()
    (path / "model.onnx").unlink()
    embedder = OnnxEmbedder(read_manifest(path))
    with pytest.raises(ModelCorruptError):
        embedder.embed_query("a cat")
    (path / "model.onnx").symlink_to(manifest.directory / "model.onnx")
    assert embedder.embed_query("a cat").shape == (384,)


def _replace(path: Path, name: str, content: bytes) -> None:
    """Replace a model's file and make its manifest agree."""
    (path / name).unlink()
    (path / name).write_bytes(content)
    manifest = json.loads((path / "model.json").read_text(encoding="utf-8"))
    manifest["files"][name] = {"sha256": sha256(content).hexdigest(), "size": len(content)}
    (path / "model.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_graph_that_cannot_be_loaded_is_an_error(model_copy: ModelCopy) -> None:
    path = model_copy()
    _replace(path, "model.onnx", b"no graph at all")
    with pytest.raises(EmbedderUnavailableError, match="cannot load all-MiniLM-L6-v2") as caught:
        OnnxEmbedder(read_manifest(path)).embed_query("a cat")
    assert "onnxruntime" in caught.value.hint


def test_an_unreadable_tokenizer_is_an_error(model_copy: ModelCopy) -> None:
    path = model_copy()
    _replace(path, "tokenizer.json", b"{}")
    with pytest.raises(ModelCorruptError, match=r"tokenizer\.json"):
        OnnxEmbedder(read_manifest(path)).count_tokens(["a cat"])


def test_a_prefix_that_does_not_fit_the_window_is_refused(model_copy: ModelCopy) -> None:
    path = model_copy(document_prefix="passage: ")
    with pytest.raises(ModelCorruptError, match="more than window_tokens 256"):
        OnnxEmbedder(read_manifest(path)).count_tokens(["a cat"])


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_library_that_cannot_be_imported_is_an_error(
    manifest: OnnxEmbedderManifest, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    real_import = builtins.__import__

    def failing(name: str, *rest: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == library:
            raise ImportError("libthing.so.1: cannot open shared object file")
        return real_import(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", failing)
    with pytest.raises(EmbedderUnavailableError, match=rf"{library} cannot be imported: libthing") as caught:
        OnnxEmbedder(manifest).embed_query("a cat")
    assert library in caught.value.hint


def test_nothing_heavy_is_imported_before_the_first_text(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from klaw_embed_onnx.plugin import klaw_embedders
assert not {{"numpy", "onnxruntime", "tokenizers"}} & sys.modules.keys(), "by the plugin"
from klaw_core import ComponentContext
(component,) = klaw_embedders()
embedder = component.factory(component.options(), ComponentContext(Path({str(tmp_path)!r}), Path({str(tmp_path)!r})))
assert (embedder.space.dimension, embedder.max_tokens) == (384, 254)
assert not {{"onnxruntime", "tokenizers", "httpx2"}} & sys.modules.keys(), "by the embedder"
embedder.count_tokens(["a cat"])
assert "onnxruntime" not in sys.modules, "by counting"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "options",
    [{"model": ""}, {"path": ""}, {"threads": -1}, {"batch_tokens": 0}],
    ids=lambda options: next(iter(options)),
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        OnnxOptions(**options)
