"""Models that are taken from a person's own files: sound ones, whole, and under a name that is free."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from klaw_core import KlawError, ModelCorruptError
from klaw_models import KNOWN, KnownModel, OnnxEmbedderManifest, find_model, read_manifest
from klaw_models.adding import ModelAdder
from klaw_models.cache import ModelCache
from klaw_models.describing import ModelDescription
from klaw_models.errors import ModelError

ModelDirectory = Callable[..., Path]
Add = Callable[..., ModelAdder]


def _assert_untouched(cache: Path) -> None:
    """Nothing half there: no model, no temporary directory."""
    models = cache / "models"
    assert [path.name for path in models.iterdir() if path.name != ".lock"] == []


@pytest.mark.parametrize("layout", ["as in the repository", "all in one directory"])
def test_files_of_a_known_model_are_added(
    adding: Add, bge: KnownModel, model_directory: ModelDirectory, cache: Path, layout: str
) -> None:
    source = model_directory()
    (source / "model.json").unlink()
    if layout == "as in the repository":
        (source / "onnx").mkdir()
        (source / "model.onnx").rename(source / "onnx" / "model.onnx")
    adding().take(bge.name, source, ModelDescription())
    assert find_model(OnnxEmbedderManifest, bge.name, None, cache).revision == bge.revision


def test_another_file_with_a_known_name_is_rejected(
    adding: Add, bge: KnownModel, model_directory: ModelDirectory, cache: Path
) -> None:
    source = model_directory()
    (source / "model.onnx").write_bytes(b"another graph")
    with pytest.raises(
        ModelCorruptError, match=r"onnx/model.onnx of BAAI/bge-small-en-v1.5 has an unexpected checksum"
    ):
        adding().take(bge.name, source, ModelDescription())
    (source / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"needs onnx/model\.onnx"):
        adding().take(bge.name, source, ModelDescription())
    _assert_untouched(cache)


def test_a_manifest_cannot_claim_a_known_name(
    adding: Add, bge: KnownModel, model_directory: ModelDirectory, cache: Path
) -> None:
    source = model_directory(name=bge.name, pooling="mean", query_prefix="wrong: ")
    adding().take(None, source, ModelDescription())
    manifest = find_model(OnnxEmbedderManifest, bge.name, None, cache)
    assert (manifest.pooling, manifest.query_prefix) == ("cls", KNOWN[bge.name].settings["query_prefix"])


def test_a_known_model_rejects_other_settings(adding: Add, bge: KnownModel, model_directory: ModelDirectory) -> None:
    with pytest.raises(ModelError, match="Klaw already knows how"):
        adding().take(bge.name, model_directory(), ModelDescription(pooling="mean"))


@pytest.mark.parametrize("name", [None, "mine"])
def test_a_model_with_a_manifest_is_added(
    adding: Add, model_directory: ModelDirectory, cache: Path, name: str | None
) -> None:
    adding().take(name, model_directory(), ModelDescription())
    assert find_model(OnnxEmbedderManifest, "mine", None, cache).dimension == 8


def test_a_model_with_a_manifest_rejects_settings(adding: Add, model_directory: ModelDirectory) -> None:
    said = ModelDescription(dimension=999, pooling="cls", query_prefix="Q: ")
    with pytest.raises(ModelError, match=r"model\.json already describes the model"):
        adding().take("mine", model_directory(), said)


def test_a_model_with_a_manifest_must_be_intact(adding: Add, model_directory: ModelDirectory, cache: Path) -> None:
    source = model_directory()
    with pytest.raises(ModelError, match="is 'mine', not 'yours'"):
        adding().take("yours", source, ModelDescription())
    (source / "tokenizer.json").write_bytes(b"changed")
    with pytest.raises(ModelCorruptError, match=r"tokenizer\.json has an unexpected checksum"):
        adding().take("mine", source, ModelDescription())
    (source / "tokenizer.json").unlink()
    with pytest.raises(ModelCorruptError, match="does not exist"):
        adding().take("mine", source, ModelDescription())
    _assert_untouched(cache)


@pytest.mark.parametrize(
    "name", ["../out", "/out", ".hidden", "a/b/c", "", "a/../../b", "a\nb", "a/.b", "model.json", "a/model.json"]
)
def test_a_name_outside_of_the_cache_is_rejected(
    adding: Add, model_directory: ModelDirectory, tmp_path: Path, name: str
) -> None:
    source = model_directory(tmp_path / "source", name or " ")
    before = sorted(tmp_path.iterdir())
    if not name:
        (source / "model.json").unlink()
    with pytest.raises(KlawError):
        adding().take(
            name,
            source,
            ModelDescription() if name else ModelDescription(dimension=8, window_tokens=32, pooling="mean"),
        )
    assert sorted(tmp_path.iterdir()) == before


def _transformer(source: Path, **files: dict[str, Any]) -> Path:
    (source / "model.json").unlink(missing_ok=True)
    for name, content in files.items():
        path = source / (name.replace("__", "/") + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return source


def test_settings_are_read_from_sentence_transformers_files(
    adding: Add, model_directory: ModelDirectory, cache: Path
) -> None:
    source = _transformer(
        model_directory(),
        config={"hidden_size": 8, "max_position_embeddings": 514},
        sentence_bert_config={"max_seq_length": 256},
        config_sentence_transformers={"prompts": {"query": "query: ", "passage": "passage: "}},
        **{"1_Pooling__config": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}},
    )
    added = adding().take("someone/theirs", source, ModelDescription(license="MIT"))
    manifest = find_model(OnnxEmbedderManifest, "someone/theirs", None, cache)
    assert manifest.directory == added.directory
    assert (manifest.dimension, manifest.window_tokens, manifest.pooling) == (8, 256, "cls")
    assert (manifest.query_prefix, manifest.document_prefix) == ("query: ", "passage: ")
    assert manifest.max_tokens == 256 - 4 - len("passage: ")
    assert (manifest.license, manifest.types_input, manifest.output) == ("MIT", "token_type_ids", None)
    assert json.loads((added.directory / "model.json").read_text())["max_positions"] == 512
    assert manifest.revision == manifest.files["model.onnx"].sha256


def test_given_settings_take_precedence_over_files(adding: Add, model_directory: ModelDirectory, cache: Path) -> None:
    source = _transformer(model_directory(), config={"hidden_size": 8, "max_position_embeddings": 514})
    said = ModelDescription(dimension=9, window_tokens=64, pooling="mean", query_prefix="", document_prefix="d: ")
    adding().take("theirs", source, said)
    manifest = find_model(OnnxEmbedderManifest, "theirs", None, cache)
    assert (manifest.dimension, manifest.window_tokens, manifest.document_prefix) == (9, 64, "d: ")


@pytest.mark.parametrize("cross_encoder", [False, True])
def test_a_window_beyond_the_positions_of_the_graph_is_refused(
    adding: Add,
    model_directory: ModelDirectory,
    cross_encoder: bool,  # noqa: FBT001  # a parametrised value
) -> None:
    source = _transformer(model_directory(), config={"hidden_size": 8, "max_position_embeddings": 514})
    said = ModelDescription(cross_encoder=cross_encoder, window_tokens=513, pooling=None if cross_encoder else "mean")
    with pytest.raises(ModelError, match="513 tokens is more than the model's 512 positions"):
        adding().take("theirs", source, said)


def test_the_trained_window_is_limited_by_the_positions_of_the_graph(
    adding: Add, model_directory: ModelDirectory, cache: Path
) -> None:
    source = _transformer(
        model_directory(),
        config={"hidden_size": 8, "max_position_embeddings": 514},
        sentence_bert_config={"max_seq_length": 514},
    )
    adding().take("theirs", source, ModelDescription(pooling="mean"))
    assert find_model(OnnxEmbedderManifest, "theirs", None, cache).window_tokens == 512


def test_the_positions_of_the_graph_are_the_default_window(
    adding: Add, model_directory: ModelDirectory, cache: Path
) -> None:
    source = _transformer(model_directory(), config={"hidden_size": 8, "max_position_embeddings": 514})
    adding().take("theirs", source, ModelDescription(pooling="mean"))
    assert find_model(OnnxEmbedderManifest, "theirs", None, cache).window_tokens == 512


@pytest.mark.parametrize(
    ("said", "option"),
    [
        (ModelDescription(window_tokens=32, pooling="mean"), "--dimension"),
        (ModelDescription(dimension=8, pooling="mean"), "--window"),
        (ModelDescription(dimension=8, window_tokens=32), "--pooling"),
    ],
)
def test_missing_settings_are_requested(
    adding: Add, model_directory: ModelDirectory, said: ModelDescription, option: str
) -> None:
    with pytest.raises(ModelError) as caught:
        adding().take("theirs", _transformer(model_directory()), said)
    assert option in caught.value.hint


@pytest.mark.parametrize("said", [{"hidden_size": "8"}, [], {"hidden_size": -1}, {"hidden_size": 1e300}])
def test_invalid_files_next_to_a_model_are_ignored(adding: Add, model_directory: ModelDirectory, said: Any) -> None:
    source = _transformer(model_directory(), config=said)
    with pytest.raises(ModelError, match="no file of the model gives its dimension"):
        adding().take("theirs", source, ModelDescription(window_tokens=32, pooling="mean"))


def test_an_onnx_model_that_pools_the_last_token_is_refused(adding: Add, model_directory: ModelDirectory) -> None:
    source = _transformer(model_directory(), **{"1_Pooling__config": {"pooling_mode_lasttoken": True}})
    with pytest.raises(ModelError, match="pools the last token"):
        adding().take("theirs", source, ModelDescription(dimension=8, window_tokens=32))


def test_an_unreadable_model_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(ModelCorruptError):
        ModelCache(tmp_path).put("mine", lambda _made: None)
    _assert_untouched(tmp_path)


def test_prefixes_that_fill_the_window_are_refused(adding: Add, model_directory: ModelDirectory) -> None:
    said = ModelDescription(dimension=8, window_tokens=32, pooling="mean", query_prefix="q" * 30)
    with pytest.raises(ModelError, match="no room"):
        adding().take("theirs", _transformer(model_directory()), said)


def test_the_name_of_a_packaged_model_is_reserved(
    adding: Add, model_directory: ModelDirectory, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klaw_models.adding.locate", lambda _name, _cache: tmp_path / "site-packages" / "x")
    with pytest.raises(ModelError, match="already provides mine"):
        adding().take("mine", model_directory(), ModelDescription())
    assert not cache.exists()


@pytest.mark.parametrize(("first", "second"), [("theirs/one", "theirs"), ("theirs", "theirs/one")])
def test_a_model_cannot_replace_or_be_inside_another(
    adding: Add, model_directory: ModelDirectory, cache: Path, first: str, second: str
) -> None:
    source = model_directory()
    (source / "model.json").unlink()
    said = ModelDescription(dimension=8, window_tokens=32, pooling="mean")
    adding().take(first, source, said)
    with pytest.raises(ModelError, match="contains other models"):
        adding().take(second, source, said)
    assert ModelCache(cache).names() == [first]


def test_an_unknown_model_needs_a_name_and_files(adding: Add, tmp_path: Path, model_directory: ModelDirectory) -> None:
    source = _transformer(model_directory())
    with pytest.raises(ModelError, match="needs a name"):
        adding().take(None, source, ModelDescription())
    (source / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        adding().take("theirs", source, ModelDescription())
    with pytest.raises(ModelError, match="no model in"):
        adding().take("theirs", tmp_path, ModelDescription())


def test_a_graph_that_keeps_its_weights_apart_is_refused(adding: Add, model_directory: ModelDirectory) -> None:
    source = _transformer(model_directory())
    (source / "model.onnx_data").write_bytes(b"weights")
    with pytest.raises(ModelError, match="keeps its weights in a separate file"):
        adding().take("theirs", source, ModelDescription())


@pytest.mark.parametrize("named", ["file", "directory"])
def test_a_gguf_file_is_added(adding: Add, tmp_path: Path, cache: Path, named: str) -> None:
    source = tmp_path / "gguf"
    source.mkdir()
    (source / "theirs-Q8_0.gguf").write_bytes(b"GGUF")
    path = source / "theirs-Q8_0.gguf" if named == "file" else source
    adding().take("theirs", path, ModelDescription(dimension=8, window_tokens=64, pooling="last"))
    manifest = read_manifest(cache / "models" / "theirs")
    assert (manifest.KIND, manifest.needed) == ("gguf-embedder", ("theirs-Q8_0.gguf",))


def test_a_gguf_file_as_cross_encoder_is_rejected(adding: Add, tmp_path: Path) -> None:
    (tmp_path / "theirs.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="runs as an embedder"):
        adding().take("theirs", tmp_path, ModelDescription(cross_encoder=True, window_tokens=64))


def test_with_several_gguf_files_one_must_be_named(adding: Add, tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="2 GGUF files") as caught:
        adding().take("theirs", tmp_path, ModelDescription())
    assert "a.gguf" in caught.value.hint


def test_a_cross_encoder_is_added(adding: Add, model_directory: ModelDirectory, cache: Path) -> None:
    source = _transformer(model_directory(), config={"max_position_embeddings": 512})
    adding().take("theirs", source, ModelDescription(cross_encoder=True))
    assert read_manifest(cache / "models" / "theirs").KIND == "onnx-cross-encoder"


@pytest.mark.parametrize(
    ("option", "value"), [("dimension", 8), ("pooling", "cls"), ("query_prefix", ""), ("document_prefix", "d: ")]
)
def test_a_cross_encoder_is_not_described_as_an_embedder(
    adding: Add, model_directory: ModelDirectory, option: str, value: Any
) -> None:
    said = ModelDescription(cross_encoder=True, window_tokens=32, **{option: value})
    with pytest.raises(ModelError, match=f"a cross-encoder has no --{option.replace('_', '-')}"):
        adding().take("theirs", _transformer(model_directory()), said)


def test_a_directory_named_like_a_manifest_is_ignored(
    adding: Add, model_directory: ModelDirectory, cache: Path
) -> None:
    (cache / "models" / "model.json").mkdir(parents=True)
    adding().take("mine", model_directory(), ModelDescription())
    assert find_model(OnnxEmbedderManifest, "mine", None, cache).name == "mine"
