"""Make the manifest of an unknown model from its files.

Sentence Transformers stores the necessary settings in small JSON files next to the graph
(https://sbert.net/docs/sentence_transformer/usage/custom_models.html). Options provide the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_models.errors import ModelError
from klaw_models.kinds import CrossEncoderManifest, GgufEmbedderManifest, OnnxEmbedderManifest
from klaw_models.manifest import MAX_LENGTH

_GRAPHS = ("model.onnx", "onnx/model.onnx")
_INPUTS = {"ids": "input_ids", "mask": "attention_mask", "types": "token_type_ids"}
_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
}
#: Special tokens around a text: known tokenizers add two; this allows two more.
_SPECIAL_TOKENS = 4
_MAX_JSON_BYTES = 10_000_000


@frozen
class ModelDescription:
    """The user's description of a model; values that are None are read from its files."""

    cross_encoder: bool = False
    dimension: int | None = None
    window_tokens: int | None = None
    pooling: str | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    license: str = ""


def describe(name: str, path: Path, said: ModelDescription) -> tuple[dict[str, Path], dict[str, Any]]:
    """Return the model's files by their new names, and its manifest without hashes.

    ``path`` is a GGUF file, or a directory with one, or with an ONNX graph and its ``tokenizer.json``. Raise
    ModelError, which names the option for a value that the files do not contain.
    """
    gguf = _gguf(path)
    if said.cross_encoder:
        _require_no_embedder(gguf, said)
    if gguf:
        return {gguf.name: gguf}, _embedder(name, path, said, GgufEmbedderManifest.KIND, {"model": gguf.name})
    graph = next((path / name for name in _GRAPHS if (path / name).is_file()), None)
    if graph is None:
        raise ModelError(
            f"no model in {path}", hint="it needs a .gguf file, or model.onnx (or onnx/model.onnx) and tokenizer.json"
        )
    tokenizer = path / "tokenizer.json"
    if not tokenizer.is_file():
        raise ModelError(f"no tokenizer.json in {path}", hint="download it from the source of the model")
    if apart := next(graph.parent.glob(f"{graph.name}[_.]data*"), None):
        raise ModelError(
            f"{graph} keeps its weights in a separate file, {apart.name}", hint="use an export with a single file"
        )
    content = {"model": graph.name, "tokenizer": tokenizer.name, "inputs": _INPUTS}
    files = {graph.name: graph, tokenizer.name: tokenizer}
    if said.cross_encoder:
        return files, _common(name, said, CrossEncoderManifest.KIND) | {"window_tokens": _window(path, said)} | content
    embedder = _embedder(name, path, said, OnnxEmbedderManifest.KIND, content)
    if embedder["pooling"] == "last":
        raise ModelError(
            f"{name} pools the last token, which ONNX embedders here cannot", hint="use a GGUF file of the model"
        )
    return files, embedder


def _gguf(path: Path) -> Path | None:
    """Return the only GGUF file at ``path``, or None. Raise ModelError if there are several."""
    if not path.is_dir():
        return path if path.suffix == ".gguf" and path.is_file() else None
    found = sorted(path.glob("*.gguf"))
    if len(found) > 1:
        raise ModelError(f"{path} contains {len(found)} GGUF files", hint=f"choose one: --from {found[0]}")
    return found[0] if found else None


def _require_no_embedder(gguf: Path | None, said: ModelDescription) -> None:
    """Raise ModelError for options that only apply to embedders."""
    if gguf:
        raise ModelError(
            f"{gguf} is a GGUF file, which runs as an embedder", hint="give a cross-encoder as an ONNX graph"
        )
    options = ("dimension", "pooling", "query_prefix", "document_prefix")
    if given := [f"--{name.replace('_', '-')}" for name in options if getattr(said, name) is not None]:
        raise ModelError(f"a cross-encoder has no {', '.join(given)}", hint="omit that, or omit --cross-encoder")


def _common(name: str, said: ModelDescription, kind: str) -> dict[str, Any]:
    return {"format": 1, "kind": kind, "name": name, "license": said.license}


def _embedder(name: str, path: Path, said: ModelDescription, kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    prompts = _object(_json(path, "config_sentence_transformers.json").get("prompts"))
    window = _window(path, said)
    query = _first(said.query_prefix, _text(prompts.get("query")), "")
    document = _first(said.document_prefix, _text(prompts.get("document")), _text(prompts.get("passage")), "")
    # The number of bytes is an upper limit of a prefix's tokens, which only the model's tokenizer could count.
    room = window - _SPECIAL_TOKENS - max(len(query.encode()), len(document.encode()))
    if room < 1:
        raise ModelError(f"a window of {window} tokens has no room next to the prefixes", hint="shorten the prefixes")
    return {
        **_common(name, said, kind),
        "dimension": _need(_first(said.dimension, _length(path, "hidden_size")), "dimension", "--dimension 384"),
        "window_tokens": window,
        "max_tokens": room,
        "max_positions": _positions(path) or window,
        "pooling": _need(_first(said.pooling, _pooling(path)), "pooling", "--pooling mean, or cls"),
        "query_prefix": query,
        "document_prefix": document,
        **content,
    }


def _window(path: Path, said: ModelDescription) -> int:
    trained, positions = _length(path, "max_seq_length", "sentence_bert_config.json"), _positions(path)
    window: int = _need(_first(said.window_tokens, trained, positions), "window", "--window 512")
    if positions is None or window <= positions:
        return window
    if said.window_tokens is None:
        return positions
    raise ModelError(
        f"a window of {window} tokens is more than the model's {positions} positions",
        hint=f"--window {positions} is the largest",
    )


def _positions(path: Path) -> int | None:
    """Return the maximum number of positions in the graph's configuration."""
    positions = _length(path, "max_position_embeddings")
    # RoBERTa's positions start at 2, so a text may use 512 of 514 (https://github.com/huggingface/transformers/issues/1363).
    return positions - 2 if positions is not None and positions % 256 == 2 else positions  # noqa: PLR2004


def _pooling(path: Path) -> str | None:
    modes = _json(path, "1_Pooling/config.json")
    chosen = [pooling for key, pooling in _POOLINGS.items() if modes.get(key) is True]
    return chosen[0] if len(chosen) == 1 else None


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _need(value: Any, what: str, option: str) -> Any:
    if value is None:
        raise ModelError(f"no file of the model gives its {what}", hint=f"set it: {option}")
    return value


def _length(path: Path, key: str, name: str = "config.json") -> int | None:
    value = _json(path, name).get(key)
    return value if isinstance(value, int) and 1 <= value <= MAX_LENGTH else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(path: Path, name: str) -> dict[str, Any]:
    """Return a JSON object from a file of the model, or an empty one if the file does not exist or is invalid."""
    file = path / name
    try:
        if not file.is_file() or file.stat().st_size > _MAX_JSON_BYTES:
            return {}
        return _object(json.loads(file.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return {}
