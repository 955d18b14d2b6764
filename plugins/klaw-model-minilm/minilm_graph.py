# ruff: noqa: INP001  # loaded by path, by the build hook and the benchmark
"""The ONNX graph of all-MiniLM-L6-v2: a six-layer BERT encoder from its weights, in float32 or int8.

Only standard ONNX operators, so every runtime can read it. :data:`INT8` is written so that ONNX Runtime fuses what it
can when it loads the graph (``docs/decisions/0054-openvino.md``, "Later: the graph"). OpenVINO does not compute a scale
per token, and chooses a precision for activations itself; for it there is :data:`WEIGHT_ONLY`, whose weights are those
of :data:`INT8`, to the byte, and can stay in its file (:func:`share_weights`).

How the graph is computed is a parameter (:class:`Precision`). In :data:`INT8` the activations are quantised with one
scale *per token*, so the integers of a token depend on nothing else in its batch: a text has the same vector alone and
in company, which dynamic quantisation per tensor does not give (``docs/decisions/0003-model-precision.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import NodeProto

    Array: TypeAlias = NDArray[np.generic]
    Floats: TypeAlias = NDArray[np.float32]

LAYERS, HEADS, DIMENSION = 6, 12, 384
LAYER_NORM_EPSILON = 1e-12
OPSET, IR_VERSION = 20, 9  # GELU came with opset 20, which ONNX Runtime 1.18 was the first to run
#: Added to the attention score of padding: exp() of it is exactly 0, and it is far from float32's end.
MASKED = -1e9


class GraphWriter:
    """Collects nodes and initialisers; a name given twice is one initialiser, the same node given twice is one node."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[NodeProto] = []
        self.initialisers: dict[str, TensorProto] = {}
        self._results: dict[bytes, list[str]] = {}

    def constant(self, name: str, value: Array) -> str:
        """Add an initialiser unless one of that name is there, and return its name."""
        if name not in self.initialisers:
            self.initialisers[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def ints(self, *values: int) -> str:
        """Return the name of an int64 vector of these values."""
        return self.constant("ints." + ".".join(map(str, values)), np.array(values, np.int64))

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node unless the same one is there, and return the names of its outputs."""
        key = helper.make_node(operator, inputs, [], **attributes).SerializeToString(deterministic=True)
        if key not in self._results:
            name = f"{self.prefix}{operator}.{len(self.nodes)}"
            names = [name] if outputs == 1 else [f"{name}.{number}" for number in range(outputs)]
            self.nodes.append(helper.make_node(operator, inputs, names, name=name, **attributes))
            self._results[key] = names
        return self._results[key]

    def operator(self, output: str) -> str:
        """Return the operator of the node with that output; names begin with it."""
        return output.removeprefix(self.prefix).split(".")[0]

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return its name."""
        return self.node(operator, *inputs, **attributes)[0]


#: Writes ``x @ weight.T + bias``; x has the shape (tokens, k), weight (n, k), bias (n,):
#: (graph, x, name, weight, bias) -> output.
Linear: TypeAlias = "Callable[[GraphWriter, str, str, Floats, Floats], str]"
#: Writes a look-up: (graph, ids, name, table of shape (rows, d)) -> output.
Table: TypeAlias = "Callable[[GraphWriter, str, str, Floats], str]"


@dataclass(frozen=True)
class Precision:
    """How the two kinds of large weights are stored and computed with.

    ``branches``: the attention scores of a batch without padding are not masked, which takes an ``If``. The numbers are
    the same.
    """

    linear: Linear
    table: Table
    branches: bool = False


def float32_linear(graph: GraphWriter, x: str, name: str, weight: Floats, bias: Floats) -> str:
    """Write a linear layer as it was trained."""
    product = graph.add("MatMul", x, graph.constant(f"{name}.weight", weight.T))
    return graph.add("Add", product, graph.constant(f"{name}.bias", bias))


def float32_table(graph: GraphWriter, ids: str, name: str, table: Floats) -> str:
    """Write a look-up in float32."""
    return graph.add("Gather", graph.constant(name, table), ids)


def int8_linear(graph: GraphWriter, x: str, name: str, weight: Floats, bias: Floats) -> str:
    """Write a linear layer in 8 bits: a scale per row of the weight, and per token of the activations."""
    codes, weight_scales = quantise_rows(weight)
    quantised, scales = _quantise_tokens(graph, x)
    product = graph.add("MatMulInteger", quantised, graph.constant(f"{name}.codes", codes.T), "middle")
    product = graph.add("Cast", product, to=TensorProto.FLOAT)
    # ONNX Runtime fuses product, cast and scale if the scale is itself a product, of a number and a vector. It is one,
    # of 1 and the vector, but must not look constant, or it is computed before the fusion looks for it.
    size = graph.add("Size", "input_ids")
    one = graph.add("Cast", graph.add("Equal", size, size), to=TensorProto.FLOAT)
    product = graph.add("Mul", product, graph.add("Mul", one, graph.constant(f"{name}.scales", weight_scales)))
    product = graph.add("Mul", product, graph.add("Unsqueeze", scales, graph.ints(-1)))
    return graph.add("Add", product, graph.constant(f"{name}.bias", bias))


def _quantise_tokens(graph: GraphWriter, x: str) -> tuple[str, str]:
    """Write the quantisation of (tokens, k) floats; return uint8 codes, whose zero is 128, and a scale per token."""
    if graph.operator(x) == "Gelu":  # never below -0.17, so a pass for absolute values would change nothing
        largest = graph.add("ReduceMax", x, graph.ints(-1), keepdims=0)
        largest = graph.add("Max", largest, graph.constant("gelu.least", np.array(0.17, np.float32)))
    else:  # a token of zeros would have the scale 0, and whatever codes, the product 0
        largest = graph.add("ReduceMax", graph.add("Abs", x), graph.ints(-1), keepdims=0)
    scales = graph.add("Mul", largest, graph.constant("one.127th", np.array(1 / 127, np.float32)))
    middle = np.array(128, np.uint8)  # unsigned activations with a middle zero: the product x86 has an instruction for
    count = graph.add("Unsqueeze", graph.add("Size", "input_ids"), graph.ints(0))
    middles = graph.add("Expand", graph.constant("middle", middle), count)
    return graph.add("QuantizeLinear", x, scales, middles, axis=0), scales


def quantise_rows(weight: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 codes and the float32 scale of each row: ``codes * scales[:, None]`` is close to ``weight``.

    No two codes of one sign in an aligned group of four add up to more than 128. So the sum of two products
    with 8-bit activations never leaves 16 bits, where x86 without VNNI saturates in silence (vpmaddubsw;
    https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html, "U8S8"), and every
    processor computes the same integers.
    """
    groups = weight.reshape(len(weight), -1, 4)
    positive, negative = (np.sort(np.maximum(part, 0), axis=-1)[..., 2:].sum(-1).max(-1) for part in (groups, -groups))
    # 127.0: a pair that just fits in exact numbers may round up by half a code each.
    scales = np.maximum(np.abs(weight).max(-1), np.maximum(positive, negative)) / np.float32(127.0)
    return np.rint(weight / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def weight_only_linear(graph: GraphWriter, x: str, name: str, weight: Floats, bias: Floats) -> str:
    """Write a linear layer whose weights are those of :func:`int8_linear`, and whose activations are floats."""
    codes, scales = quantise_rows(weight)
    stored = (graph.constant(f"{name}.codes", codes.T), graph.constant(f"{name}.scales", scales))
    product = graph.add("MatMul", x, graph.add("DequantizeLinear", *stored, axis=1))
    return graph.add("Add", product, graph.constant(f"{name}.bias", bias))


def int8_table(graph: GraphWriter, ids: str, name: str, table: Floats) -> str:
    """Write a look-up in 8 bits with a scale per row; only the rows of the text are made floats."""
    scales = np.abs(table).max(-1, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1
    codes = np.rint(table / scales).astype(np.int8)
    rows = graph.add("Gather", graph.constant(f"{name}.codes", codes), ids)
    found = graph.add("Gather", graph.constant(f"{name}.scales", scales), ids)
    return graph.add("Mul", graph.add("Cast", rows, to=TensorProto.FLOAT), found)


FLOAT32 = Precision(float32_linear, float32_table)
INT8 = Precision(int8_linear, int8_table, branches=True)
WEIGHT_ONLY = Precision(weight_only_linear, int8_table)

#: An initialiser with fewer bytes stays in its own graph.
SHARED_BYTES = 1024


def build_graph(weights: Mapping[str, Floats], precision: Precision = INT8) -> ModelProto:
    """Build the model: ``input_ids`` and ``attention_mask``, int64 (batch, tokens) -> ``last_hidden_state``.

    ``weights`` has the names of the official ``model.safetensors``. The output is float32 of shape
    (batch, tokens, 384); the rows of padding mean nothing. The same weights give the same bytes.
    """
    graph = GraphWriter()
    output = _Encoder(graph, weights, precision).write()
    graph.nodes.append(helper.make_node("Identity", [output], ["last_hidden_state"]))
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    )
    states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", DIMENSION])
    body = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", [ids, mask], [states], list(graph.initialisers.values()))
    return helper.make_model(
        body, producer_name="klaw", ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
    )


def share_weights(model: ModelProto, file: str, content: bytes) -> None:
    """Replace the model's large initialisers by references into ``content``, which lies beside it as ``file``.

    ONNX calls this external data. What ``content`` does not have stays where it is.
    """
    for tensor in model.graph.initializer:
        size = len(tensor.raw_data)
        start = content.find(tensor.raw_data) if size >= SHARED_BYTES else -1
        if start >= 0:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", file), ("offset", start), ("length", size)):
                tensor.external_data.add(key=key, value=str(value))


@dataclass(frozen=True)
class _Encoder:
    """Writes the layers; every method takes and returns names of values."""

    graph: GraphWriter
    weights: Mapping[str, Floats]
    precision: Precision

    def write(self) -> str:
        """Write all layers. Between the parts of a layer, values have the shape (batch * tokens, width)."""
        graph = self.graph
        x = graph.add("Reshape", self.embeddings(), graph.ints(-1, DIMENSION))
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}"
            attended = self.linear(f"{prefix}.attention.output.dense", self.attention(prefix, x))
            x = self.add_and_normalise(f"{prefix}.attention.output.LayerNorm", x, attended)
            wide = graph.add("Gelu", self.linear(f"{prefix}.intermediate.dense", x))
            x = self.add_and_normalise(f"{prefix}.output.LayerNorm", x, self.linear(f"{prefix}.output.dense", wide))
        return graph.add("Reshape", x, self.shape(DIMENSION))

    def shape(self, *after: int) -> str:
        """Write a shape: batch, tokens, and the lengths ``after`` them."""
        return self.graph.add("Concat", self.graph.add("Shape", "input_ids"), self.graph.ints(*after), axis=0)

    def embeddings(self) -> str:
        graph, weights = self.graph, self.weights
        words = self.precision.table(graph, "input_ids", "words", weights["embeddings.word_embeddings.weight"])
        # One text a row, so every token is of type 0: its embedding is a constant, added to the positions'.
        types = weights["embeddings.token_type_embeddings.weight"]
        table = graph.constant("positions", weights["embeddings.position_embeddings.weight"] + types[:1])
        length = graph.add("Shape", "input_ids", start=1, end=2)
        positions = graph.add("Slice", table, graph.ints(0), length, graph.ints(0))
        return self.add_and_normalise("embeddings.LayerNorm", words, positions)

    def additive_mask(self) -> str:
        graph = self.graph
        kept = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        dropped = graph.add("Sub", graph.constant("one", np.array(1, np.float32)), kept)
        penalty = graph.add("Mul", dropped, graph.constant("masked", np.array(MASKED, np.float32)))
        return graph.add("Unsqueeze", penalty, graph.ints(1, 2))

    def attention(self, prefix: str, x: str) -> str:
        graph = self.graph
        heads = self.shape(HEADS, DIMENSION // HEADS)
        parts = []
        for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            states = graph.add("Reshape", self.linear(f"{prefix}.attention.self.{part}", x), heads)
            parts.append(graph.add("Transpose", states, perm=order))
        query, key, value = parts
        shares = graph.add("Softmax", self.scores(query, key), axis=-1)
        context = graph.add("Transpose", graph.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return graph.add("Reshape", context, graph.ints(-1, DIMENSION))

    def scores(self, query: str, key: str) -> str:
        """Write the attention scores, float32 of shape (batch, heads, tokens, tokens)."""
        graph, mask = self.graph, self.additive_mask()
        root = graph.constant("root", np.array((DIMENSION / HEADS) ** 0.5, np.float32))
        if not self.precision.branches:
            return graph.add("Add", graph.add("Div", graph.add("MatMul", query, key), root), mask)
        # A branch has the product in it: a branch that only returns scores would copy them.
        branches = {}
        for name in ("then_branch", "else_branch"):
            branch = GraphWriter(f"{query}.{name}.")
            scores = branch.add("Div", branch.add("MatMul", query, key), root)
            if name == "then_branch":
                scores = branch.add("Add", scores, mask)
            output = helper.make_tensor_value_info(scores, TensorProto.FLOAT, None)
            branches[name] = helper.make_graph(branch.nodes, name, [], [output])
        least = graph.add("ReduceMin", "attention_mask", keepdims=0)
        padded = graph.add("Equal", least, graph.constant("padding", np.array(0, np.int64)))
        return graph.add("If", padded, **branches)

    def linear(self, name: str, x: str) -> str:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return self.precision.linear(self.graph, x, name, weight, bias)

    def add_and_normalise(self, name: str, x: str, y: str) -> str:
        gain, bias = (
            self.graph.constant(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias")
        )
        total = self.graph.add("Add", x, y)
        return self.graph.add("LayerNormalization", total, gain, bias, axis=-1, epsilon=LAYER_NORM_EPSILON)
