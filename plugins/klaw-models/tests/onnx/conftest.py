"""A tiny model: its graph gives each token's id, type and mask as three numbers; its tokenizer knows a few words."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from klaw_models import CrossEncoderManifest, read_manifest

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "ran")
IDS = {word: number for number, word in enumerate(WORDS)}
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def make_graph(*, types: bool) -> bytes:
    """Return a graph whose output of shape (batch, tokens, inputs) holds what it was fed."""
    inputs = INPUTS if types else INPUTS[:2]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [2])
    nodes = [helper.make_node("Unsqueeze", [name, "axis"], [f"{name}_column"]) for name in inputs]
    nodes.append(helper.make_node("Concat", [f"{name}_column" for name in inputs], ["fed"], axis=2))
    graph = helper.make_graph(
        nodes,
        "echo",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs],
        [helper.make_tensor_value_info("fed", TensorProto.INT64, ["batch", "tokens", len(inputs)])],
        [axis],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    content: bytes = model.SerializeToString()
    return content


def make_tokenizer() -> bytes:
    """Return a ``tokenizer.json`` that pads and truncates, as official files do."""
    tokenizer = Tokenizer(WordLevel(IDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.add_special_tokens(list(WORDS[:4]))
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(8)
    return tokenizer.to_str().encode()


@pytest.fixture
def make_manifest(tmp_path: Path) -> Callable[..., CrossEncoderManifest]:
    """Return a function that writes a model and returns its manifest; ``changes`` are laid over ``model.json``.

    ``types`` says whether the graph takes token types.
    """

    def make(
        *, types: bool = True, graph: bytes | None = None, tokenizer: bytes | None = None, **changes: Any
    ) -> CrossEncoderManifest:
        contents = {
            "model.onnx": make_graph(types=types) if graph is None else graph,
            "tokenizer.json": make_tokenizer() if tokenizer is None else tokenizer,
        }
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content)
        manifest = {
            "format": 1,
            "kind": "onnx-cross-encoder",
            "name": "tiny",
            "revision": "1",
            "window_tokens": 64,
            "model": "model.onnx",
            "tokenizer": "tokenizer.json",
            "inputs": dict(zip(("ids", "mask", "types"), INPUTS, strict=True)),
            "files": {name: {"sha256": sha256(content).hexdigest()} for name, content in contents.items()},
            **changes,
        }
        (tmp_path / "model.json").write_text(json.dumps(manifest), encoding="utf-8")
        read = read_manifest(tmp_path)
        assert isinstance(read, CrossEncoderManifest)
        return read

    return make
