"""One model in ONNX Runtime and in OpenVINO: what a text costs, and whether one can search what the other has indexed.

    python benchmarks/embedding_runtimes.py NOTES [--sets FILE_OR_FOLDER …] [--texts 64] [--words 150] [--rounds 9]

NOTES is a directory with Markdown; SETS are test sets that ``klaw eval`` reads. What is printed depends on the
processor, whose abilities stand in the first lines. Three tables:

1. *Roofline*, one thread: operations a second (a product and an addition are two) of bare matrix products in the
   shapes of the model's layers, by ONNX Runtime in int8 and float32; and what the whole shipped graph makes of the
   int8 product: the seconds that its products alone would take, as a share of what it takes.
2. *Pairs*: texts of so many words from all over the notes, each runtime with all processors. Runtimes take turns in
   each round; a ratio is Klaw's ONNX embedder's time divided by the runtime's in the same round: above 1 is faster.
   Medians and quartiles over rounds, of CPU and of wall time. *Cosine* is the least, and the mean, to ONNX Runtime's.
3. *Served by the other*: nDCG@10 of vectors alone, exact, documents by one runtime and questions by the other; and the
   difference to ONNX Runtime for both, with the 95 % interval of a paired bootstrap over the questions. A turn of a
   conversation is a document.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no py.typed
from measuring import Spread, figure, table, timed
from onnx import TensorProto, helper

from klaw_core import Embedder, EmbedderUnavailableError
from klaw_embed_onnx.embedder import OnnxEmbedder, load_encoder
from klaw_embed_openvino.embedder import OpenVinoEmbedder
from klaw_embed_openvino.processor import PRECISIONS, best_precision, processor_flags
from klaw_eval.bootstrap import interval
from klaw_eval.datasets import read_dataset, recognise
from klaw_eval.metrics import DEPTH, METRICS, score
from klaw_eval.values import Corpus
from klaw_models import OnnxEmbedderManifest, find_model
from klaw_models.onnx import usable_processors

NAME = "all-MiniLM-L6-v2"
BASE = "onnx"
#: A batch of the model, and its layers' products: (outputs, inputs), in each of six layers.
TOKENS, LAYERS = 482, 6
PRODUCTS = ((1152, 384), (384, 384), (1536, 384), (384, 1536))
TOLD = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimddp", "i8mm")


def passages(directory: Path, count: int, words: int) -> list[str]:
    """Return so many pieces of ``words`` words from all over the notes."""
    found = []
    for note in sorted(directory.rglob("*.md")):
        text = note.read_text(encoding="utf-8", errors="replace").split()
        found += [" ".join(text[start : start + words]) for start in range(0, len(text) - words, words)]
    return found[:: max(1, len(found) // count)][:count]


def bare_product(outputs: int, inputs: int, *, integers: bool) -> Callable[[], object]:
    """Return one product of a batch with a layer's weights, on one thread."""
    kinds = (TensorProto.UINT8, TensorProto.INT8, TensorProto.INT32) if integers else (TensorProto.FLOAT,) * 3
    random = np.random.default_rng(0)
    # Small, so that no sum of two products leaves 16 bits; the values do not matter to the time.
    weights = random.integers(-60, 61, (inputs, outputs)).astype(np.int8 if integers else np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger" if integers else "MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", kinds[0], [TOKENS, inputs])],
        [helper.make_tensor_value_info("y", kinds[2], [TOKENS, outputs])],
        [helper.make_tensor("w", kinds[1], weights.shape, weights.tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = random.integers(0, 256, (TOKENS, inputs)).astype(np.uint8 if integers else np.float32)
    return lambda: session.run(None, {"x": x})


def roofline(manifest: OnnxEmbedderManifest, rounds: int) -> None:
    """Print the first table: the least time of several rounds, because other work only ever adds."""
    encoder = load_encoder(manifest, threads=1, batch_tokens=TOKENS)
    half = [101, *range(2000, 2000 + TOKENS // 2 - 2), 102]
    programs: dict[str, Callable[[], object]] = {"model": lambda: encoder.session.run([half, half])}
    for outputs, inputs in PRODUCTS:
        for kind in ("int8", "float32"):
            programs[f"{kind} {outputs} x {inputs}"] = bare_product(outputs, inputs, integers=kind == "int8")
    least = dict.fromkeys(programs, float("inf"))
    for _ in range(rounds):
        for name, program in programs.items():
            started = process_time()
            program()
            least[name] = min(least[name], process_time() - started)
    rows = []
    for kind in ("int8", "float32"):
        seconds = sum(least[f"{kind} {outputs} x {inputs}"] for outputs, inputs in PRODUCTS)
        operations = 2 * TOKENS * sum(outputs * inputs for outputs, inputs in PRODUCTS)
        rows.append((kind, operations / seconds / 1e9, LAYERS * seconds * 1e3, LAYERS * seconds / least["model"]))
    print(
        f"\nRoofline: {TOKENS} tokens, one thread; the shipped graph takes {figure(least['model'] * 1e3)} ms of CPU\n"
    )
    print(
        table(("bare products", "10^9 operations a second", "ms for all layers", "of the shipped graph's time"), rows)
    )


def embedders(manifest: OnnxEmbedderManifest) -> dict[str, Embedder]:
    """Return what this processor can run, by name."""
    found: dict[str, Embedder] = {BASE: OnnxEmbedder(manifest)}
    fastest = best_precision(processor_flags())
    for precision in PRECISIONS:
        if precision == "int8" and fastest == "float32":
            print("openvino int8: left out, this processor has no dot product of 8 bits")
            continue
        embedder = OpenVinoEmbedder(manifest, precision=precision)
        try:
            embedder.embed_query("warm up")
        except EmbedderUnavailableError as error:
            print(f"openvino {precision}: left out, {error}")
            continue
        found[f"openvino {precision}"] = embedder
    return found


def pairs(run: Mapping[str, Embedder], texts: Sequence[str], rounds: int) -> None:
    """Print the second table."""
    vectors = {name: embedder.embed_documents(texts) for name, embedder in run.items()}  # warm up as well
    costs = {name: [] for name in run}
    for number in range(rounds):
        for name in list(run)[:: 1 if number % 2 else -1]:
            costs[name].append(timed(lambda name=name: run[name].embed_documents(texts)))
    rows = []
    for name, own in costs.items():
        cosines = (vectors[name] * vectors[BASE]).sum(axis=1)
        rows.append(
            (
                name,
                Spread.of(1e3 * cost.cpu / len(texts) for cost in own).median,
                str(Spread.of(base.cpu / cost.cpu for base, cost in zip(costs[BASE], own, strict=True))),
                Spread.of(len(texts) / cost.wall for cost in own).median,
                str(Spread.of(base.wall / cost.wall for base, cost in zip(costs[BASE], own, strict=True))),
                f"{cosines.mean():.4f}, {cosines.min():.4f}",
            )
        )
    words = len(texts[0].split())
    print(f"\nPairs: {len(texts)} texts of {words} words, {usable_processors()} processors, {rounds} rounds\n")
    print(table(("", "CPU ms a text", "x less CPU", "texts a second", "x less wall", "cosine mean, least"), rows))


def documents(corpus: Corpus) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of each page and each turn."""
    for page in corpus.pages:
        yield page.id, f"{page.title}\n\n{page.text}" if page.title else page.text
    for talk in corpus.talks:
        yield from ((turn.id, f"{turn.speaker}: {turn.text}") for turn in talk.turns)


def ranked_scores(corpus: Corpus, ids: Sequence[str], found: Any, questions: Any) -> list[float]:
    """Return nDCG@10 of each question of one corpus."""
    column = METRICS.index("ndcg@10")
    scores = []
    for question, similarities in zip(corpus.questions, questions @ found.T, strict=True):
        best = np.argsort(-similarities, kind="stable")[:DEPTH]
        scores.append(float(score([ids[number] for number in best], question.gold)[column]))
    return scores


def served_by_the_other(run: Mapping[str, Embedder], places: Sequence[Path]) -> None:
    """Print the third table."""
    rows = []
    for place in places:
        form = recognise(place)
        dataset = read_dataset(place, form, unit="turn")
        scores: dict[tuple[str, str], list[float]] = {}
        count = 0
        for corpus in dataset.corpora:
            ids, texts = zip(*documents(corpus), strict=True)
            count += len(ids)
            stored = {name: embedder.embed_documents(texts) for name, embedder in run.items()}
            asked = {
                name: np.stack([embedder.embed_query(question.text) for question in corpus.questions])
                for name, embedder in run.items()
            }
            for by in run:
                for questions in run:
                    values = ranked_scores(corpus, ids, stored[by], asked[questions])
                    scores.setdefault((by, questions), []).extend(values)
        base = np.array(scores[BASE, BASE])
        for (by, questions), values in scores.items():
            less = interval(np.array(values)[:, None] - base[:, None])
            low, high = (float(np.ravel(bound)[0]) for bound in (less.low, less.high))
            difference = np.mean(values) - base.mean()
            row = (by, questions, f"{np.mean(values):.4f}", f"{difference:+.4f} [{low:+.4f}, {high:+.4f}]")
            rows.append((f"{place.name}: {count} documents, {len(base)} questions", *row))
    print("\nServed by the other\n")
    print(table(("test set", "documents by", "questions by", "nDCG@10", f"less {BASE} for both [95 %]"), rows))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notes", type=Path)
    parser.add_argument("--sets", type=Path, nargs="*", default=[])
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--words", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.rounds and not arguments.notes.is_dir():
        parser.error(f"{arguments.notes} is not a directory of notes")
    flags = processor_flags()
    print(f"processor: {', '.join(flag for flag in TOLD if flag in flags) or 'none of the abilities looked for'}")
    with tempfile.TemporaryDirectory() as cache:
        manifest = find_model(OnnxEmbedderManifest, NAME, None, Path(cache))
        if arguments.rounds:
            roofline(manifest, arguments.rounds)
        run = embedders(manifest)
        if arguments.rounds:
            pairs(run, passages(arguments.notes, arguments.texts, arguments.words), arguments.rounds)
        if arguments.sets:
            served_by_the_other(run, arguments.sets)


if __name__ == "__main__":
    main()
