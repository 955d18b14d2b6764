"""``model.json``: what is read, and that nothing in it can do harm."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import ModelCorruptError, reinstall_command
from klaw_models import (
    KNOWN,
    CrossEncoderManifest,
    GgufEmbedderManifest,
    OnnxEmbedderManifest,
    read_manifest,
)
from klaw_models.manifest import repair_hint
from klaw_models.reading import parse_manifest
from klaw_testing.laws import law

ModelDirectory = Callable[..., Path]

GGUF = {"kind": "gguf-embedder", "model": "model.onnx", "tokenizer": ..., "inputs": ..., "output": ...}
CROSS_ENCODER = {"kind": "onnx-cross-encoder", "dimension": ..., "pooling": ..., "max_tokens": ...}


def test_a_manifest_without_kind_is_an_onnx_embedder(model_directory: ModelDirectory) -> None:
    manifest = read_manifest(model_directory())
    assert isinstance(manifest, OnnxEmbedderManifest)
    assert (manifest.types_input, manifest.output, manifest.languages) == (None, "last_hidden_state", "")
    assert manifest.space.identity.split("\t") == ["mine", manifest.revision, "8", "cosine", "mean/32"]


def test_a_gguf_embedder_has_one_file(model_directory: ModelDirectory) -> None:
    manifest = read_manifest(model_directory(pooling="last", **GGUF))
    assert isinstance(manifest, GgufEmbedderManifest)
    assert manifest.needed == ("model.onnx",)
    assert manifest.space.pooling == "last/32"


def test_a_cross_encoder_has_no_vectors(model_directory: ModelDirectory) -> None:
    manifest = read_manifest(model_directory(**CROSS_ENCODER))
    assert isinstance(manifest, CrossEncoderManifest)
    assert not hasattr(manifest, "space")


def test_optional_fields_have_defaults(model_directory: ModelDirectory) -> None:
    manifest = read_manifest(model_directory(license=..., output=...))
    assert isinstance(manifest, OnnxEmbedderManifest)
    assert (manifest.license, manifest.output) == ("", None)


def test_a_prefix_changes_the_space(model_directory: ModelDirectory) -> None:
    spaces = set()
    for prefixes in ({}, {"query_prefix": "q: "}, {"document_prefix": "q: "}):
        manifest = read_manifest(model_directory(**prefixes))
        assert isinstance(manifest, OnnxEmbedderManifest)
        spaces.add(manifest.space)
    assert len(spaces) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2"),
        ({"format": ...}, "no 'format'"),
        ({"kind": "onnx"}, "kind 'onnx' is not one of"),
        ({"kind": []}, "not a model manifest"),
        ({"dimension": 0}, "dimension"),
        ({"dimension": "384"}, "dimension"),
        ({"dimension": True}, "dimension"),
        ({"dimension": 10**12}, "dimension"),
        ({"pooling": "max"}, "pooling"),
        ({"pooling": "last"}, "pooling"),
        ({"max_tokens": 33}, "max_tokens"),
        ({"window_tokens": 65}, "max_positions"),
        ({"model": "../model.onnx"}, "not a path inside"),
        ({"model": "/model.onnx"}, "not a path inside"),
        ({"model": "model.onnx\0"}, "not a path inside"),
        ({"model": ""}, "model"),
        ({"model": "other.onnx"}, r"no SHA-256 of other\.onnx"),
        ({"inputs": {"ids": "input_ids"}}, "no 'mask'"),
        ({"inputs": []}, "not a model manifest"),
        ({"files": {}}, "no SHA-256"),
        ({"files": {"model.onnx": {"sha256": "../../x"}}}, "sha256"),
        ({"files": {"../../etc/passwd": {"sha256": "0" * 64}}}, "files .* is not a path inside"),
        ({**GGUF, "max_tokens": 33}, "max_tokens"),
        ({**CROSS_ENCODER, "window_tokens": 0}, "window_tokens"),
        ({**CROSS_ENCODER, "tokenizer": ...}, "no 'tokenizer'"),
    ],
)
def test_an_invalid_manifest_is_rejected(
    model_directory: ModelDirectory, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelCorruptError, match=message) as caught:
        read_manifest(model_directory(**changes))
    assert caught.value.hint


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"format": 1}', b"[" * 100_000, b'{"format": 1, "x": "' + b"x" * 2_000_000],
    ids=["empty", "brace", "list", "null", "no text", "format alone", "deep", "huge"],
)
def test_a_broken_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(ModelCorruptError):
        read_manifest(tmp_path)


def test_a_missing_manifest_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelCorruptError, match="cannot read"):
        read_manifest(tmp_path)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_path = st.sampled_from([("inputs", "ids"), ("files", "model.onnx"), ("files", "model.onnx", "sha256"), ("kind",)])


@law
@given(data=st.data())
def test_every_invalid_manifest_raises_a_manifest_error(model_directory: ModelDirectory, data: st.DataObject) -> None:
    """Any value in any place of a manifest is accepted or refused, and never a surprise."""
    directory = model_directory()
    assert read_manifest(directory).needed
    content = json.loads((directory / "model.json").read_text(encoding="utf-8"))
    keys = data.draw(_path | st.sampled_from(sorted(content)).map(lambda key: (key,)))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = data.draw(_json)
    (directory / "model.json").write_text(json.dumps(content), encoding="utf-8")
    try:
        manifest = read_manifest(directory)
    except ModelCorruptError:
        return
    for name in manifest.files:
        assert manifest.directory in (manifest.directory / name).parents


@pytest.mark.parametrize("damage", ["one bit", "cut short", "gone"])
def test_a_changed_file_is_rejected_by_size_and_by_hash(model_directory: ModelDirectory, damage: str) -> None:
    directory = model_directory()
    manifest = read_manifest(directory)
    assert manifest.check("model.onnx").read_bytes() == manifest.read("model.onnx")
    content = bytearray((directory / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (directory / "model.onnx").unlink()
    if damage != "gone":
        (directory / "model.onnx").write_bytes(content[:-1] if damage == "cut short" else content)
    for use in (manifest.read, manifest.check):
        with pytest.raises(ModelCorruptError, match=r"model\.onnx") as caught:
            use("model.onnx")
        assert caught.value.hint


def test_the_fix_of_a_model_depends_on_its_location() -> None:
    site = Path("/somewhere/lib/python3.11/site-packages/klaw_model_minilm")
    assert repair_hint(site) == reinstall_command("klaw-model-minilm", dependencies=False)
    assert repair_hint(Path("/cache/models/bge-small-en-v1.5")) == "klaw models add bge-small-en-v1.5"
    assert repair_hint(Path("/home/me/mine")) == "delete /home/me/mine and fetch the model again"


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_model_has_a_valid_manifest(name: str) -> None:
    known = KNOWN[name]
    manifest = parse_manifest(Path("/models") / name, known.manifest)
    assert (manifest.KIND, manifest.name, manifest.revision) == (known.kind, name, known.files[0].sha256)
    assert set(manifest.needed) == {file.name for file in known.files}
    assert known.files[0].name == manifest.needed[0], "the first file is the weights"
    assert len(known.commit) == 40
    assert min(file.size for file in known.files) > 0
    assert known.license
    assert known.languages
