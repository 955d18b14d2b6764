"""A small but real cross-encoder for tests: an ONNX graph and a tokenizer, built in milliseconds.

This requires the extra ``klaw-rerank-onnx[testing]`` (onnx).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = (
    "the",
    "cat",
    "sat",
    "on",
    "mat",
    "dog",
    "ran",
    "which",
    "pet",
    "boat",
    "harbour",
    "tide",
    "opens",
    "at",
    "six",
)
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
VOCABULARY = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
#: The weight that each word in both texts adds to the logit; "the" is not informative.
WEIGHTS = [0.0 if word in SPECIAL else 0.25 if word == "the" else 1.0 for word in VOCABULARY]


def make_graph(logits: int, *, scale: float = 1.0) -> bytes:
    """Return a graph that adds the weights of the chunk's words that are also in the question, and subtracts 1.

    ``types`` distinguishes the question from the chunk; the weights by token id are an embedding. With two logits, the
    first is for the class "irrelevant". With more, the graph is not a cross-encoder.
    """
    initializers = [
        numpy_helper.from_array(np.array(WEIGHTS, np.float32)[:, None] * scale, "weights"),
        numpy_helper.from_array(np.array([1], np.int64), "axis_1"),
        numpy_helper.from_array(np.array([2], np.int64), "axis_2"),
        numpy_helper.from_array(np.array(1.0, np.float32), "one"),
        numpy_helper.from_array(np.array(1.0 * scale, np.float32), "bias"),
    ]
    nodes = [
        helper.make_node("Gather", ["weights", "input_ids"], ["embedded"]),  # (n, t, 1)
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["present"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "second"], ["first"]),
        helper.make_node("Mul", ["first", "present"], ["question"]),
        helper.make_node("Mul", ["second", "present"], ["passage"]),
        helper.make_node("Unsqueeze", ["input_ids", "axis_2"], ["rows"]),
        helper.make_node("Unsqueeze", ["input_ids", "axis_1"], ["columns"]),
        helper.make_node("Equal", ["rows", "columns"], ["equal"]),
        helper.make_node("Cast", ["equal"], ["equals"], to=TensorProto.FLOAT),  # (n, t, t)
        helper.make_node("Unsqueeze", ["question", "axis_1"], ["question_columns"]),
        helper.make_node("Mul", ["equals", "question_columns"], ["shared"]),
        helper.make_node("ReduceMax", ["shared", "axis_2"], ["asked"], keepdims=1),  # (n, t, 1)
        helper.make_node("Unsqueeze", ["passage", "axis_2"], ["passage_rows"]),
        helper.make_node("Mul", ["asked", "passage_rows"], ["overlap"]),
        helper.make_node("Mul", ["overlap", "embedded"], ["weighed"]),
        helper.make_node("ReduceSum", ["weighed", "axis_1"], ["sums"], keepdims=0),  # (n, 1)
        helper.make_node("Sub", ["sums", "bias"], ["relevant"]),
    ]
    if logits == 1:
        nodes.append(helper.make_node("Identity", ["relevant"], ["logits"]))
    else:
        nodes.append(helper.make_node("Neg", ["relevant"], ["irrelevant"]))
        nodes.append(helper.make_node("Concat", ["irrelevant"] * (logits - 1) + ["relevant"], ["logits"], axis=1))
    shape = ["pairs", "tokens"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", logits])
    graph = helper.make_graph(nodes, "overlap", inputs, [output], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def make_tokenizer() -> bytes:
    """Return a ``tokenizer.json`` of whole words. Like official files it enables padding, which must have no effect."""
    tokenizer = Tokenizer(WordLevel(VOCABULARY, unk_token=SPECIAL[1]))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])],
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.enable_padding(length=128)
    return tokenizer.to_str().encode()


def write_model(directory: Path, graph: bytes | None = None, changes: Mapping[str, object] | None = None) -> Path:
    """Write a model's directory and return it; ``changes`` replace keys of its manifest."""
    directory.mkdir(parents=True, exist_ok=True)
    contents = {"model.onnx": graph or make_graph(1), "tokenizer.json": make_tokenizer()}
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    manifest = {
        "format": 1,
        "kind": "onnx-cross-encoder",
        "name": "tiny",
        "revision": "1",
        "window_tokens": 64,
        "model": "model.onnx",
        "tokenizer": "tokenizer.json",
        "inputs": {"ids": "input_ids", "mask": "attention_mask", "types": "token_type_ids"},
        "files": {name: {"sha256": sha256(content).hexdigest()} for name, content in contents.items()},
    }
    (directory / "model.json").write_text(json.dumps({**manifest, **(changes or {})}), encoding="utf-8")
    return directory
