"""How a text longer than the model's window should become one vector, measured on LoCoMo.

    python benchmarks/long_texts.py LOCOMO_JSON

LoCoMo (https://github.com/snap-research/locomo, ``data/locomo10.json``) is not part of this repository.
A conversation's sessions are embedded whole (each is several windows long), or in chunks of whole turns
up to 400 tokens (Klaw's chunks: one or two windows). The questions are asked of one index per conversation.
Each recipe's frac@5 and frac@10 are printed: the share of a question's gold sessions among the first 5 and
10, chunks counted as their session at first appearance, with the 95 % interval of a bootstrap over
questions. Nothing is tuned here; the recipes differ in kind.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np

from klaw_core import Matrix, Vector
from klaw_embed_onnx.embedder import load_encoder
from klaw_models import OnnxEmbedderManifest, find_model
from klaw_models.onnx import SentenceEncoder, TextTokenizer, cut_tokens

PASSAGE_TOKENS = 400
Cut = Callable[[Sequence[int | None], int], list[slice]]


@dataclass(frozen=True)
class Recipe:
    """How to cut (``cut(words, size)``), how long a window may be, and how each window weighs."""

    name: str
    size: int
    cut: Cut
    weight: Callable[[int], float]


def head(words: Sequence[int | None], size: int) -> list[slice]:
    """Keep the first window only: the silent cut that most tools make."""
    return [slice(0, min(size, len(words)))]


def full_windows(words: Sequence[int | None], size: int) -> list[slice]:
    """Fill one window after the other, so that the last one is a rest of any length."""
    return [slice(start, min(start + size, len(words))) for start in range(0, max(len(words), 1), size)]


def overlapping(words: Sequence[int | None], size: int) -> list[slice]:
    """Cut even windows of three quarters of the size, then let each reach into its neighbours."""
    reach = size // 8
    cuts = cut_tokens(words, size - 2 * reach)
    return [slice(max(cut.start - reach, 0), min(cut.stop + reach, len(words))) for cut in cuts]


RECIPES = (
    Recipe("first 254 tokens, rest cut off", 254, head, float),
    Recipe("first 510 tokens, rest cut off", 510, head, float),
    Recipe("even windows of 510", 510, cut_tokens, float),
    Recipe("full windows of 254 and a rest", 254, full_windows, float),
    Recipe("full windows of 254, weighing the same", 254, full_windows, lambda _: 1.0),
    Recipe("even windows of 254 [shipped]", 254, cut_tokens, float),
    Recipe("even windows of 254, overlapping by a quarter", 254, overlapping, float),
    Recipe("even windows of 126", 126, cut_tokens, float),
    Recipe("even windows of 62", 62, cut_tokens, float),
)


@dataclass(frozen=True)
class Conversation:
    """Sessions by name, and questions with the names of their gold sessions."""

    sessions: dict[str, list[str]]
    questions: list[tuple[str, frozenset[str]]]


def read_conversations(path: Path) -> list[Conversation]:
    """Read LoCoMo; questions without evidence are left out."""
    found = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        spoken: dict[str, Any] = sample["conversation"]
        sessions = {
            f"D{name.removeprefix('session_')}": [f"{turn['speaker']}: {turn['text']}" for turn in turns]
            for name, turns in spoken.items()
            if re.fullmatch(r"session_\d+", name) and turns
        }
        questions = []
        for question in sample["qa"]:
            gold = frozenset(f"D{number}" for number in re.findall(r"D:?(\d+):\d+", str(question.get("evidence"))))
            if gold & sessions.keys():
                questions.append((question["question"], gold & sessions.keys()))
        found.append(Conversation(sessions, questions))
    return found


class Embedding:
    """Embeds by any recipe, with the model and the tokenizer that Klaw uses."""

    def __init__(self, tokenizer: TextTokenizer, encoder: SentenceEncoder) -> None:
        self.tokenizer, self.encoder = tokenizer, encoder
        self.known: dict[tuple[int, ...], Vector] = {}

    def embed(self, texts: Sequence[str], recipe: Recipe) -> Matrix:
        """Return one unit vector for each text."""
        encodings = self.tokenizer.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        cuts = [recipe.cut(encoding.word_ids, recipe.size) for encoding in encodings]
        ids = [
            [(*self.tokenizer.before, *encoding.ids[cut], *self.tokenizer.after) for cut in some]
            for encoding, some in zip(encodings, cuts, strict=True)
        ]
        new = list({window for some in ids for window in some} - self.known.keys())
        self.known |= dict(zip(new, self.encoder.embed(new), strict=True))
        vectors = np.stack(
            [
                np.average(
                    [self.known[window] for window in some],
                    axis=0,
                    weights=[recipe.weight(max(cut.stop - cut.start, 1)) for cut in slices],
                )
                for some, slices in zip(ids, cuts, strict=True)
            ]
        ).astype(np.float32)
        unit: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def chunks(turns: Sequence[str], counts: Sequence[int]) -> list[str]:
    """Join whole turns up to the bound; a longer turn is a chunk of its own."""
    joined: list[list[str]] = []
    filled = 0
    for turn, count in zip(turns, counts, strict=True):
        if not joined or filled + count > PASSAGE_TOKENS:
            joined.append([])
            filled = 0
        joined[-1].append(turn)
        filled += count
    return ["\n".join(some) for some in joined]


def found_shares(conversation: Conversation, owners: Sequence[str], ranks: Matrix, depth: int) -> list[float]:
    """Return frac@depth of every question; ``ranks`` holds similarities, shape (questions, texts)."""
    shares = []
    for (_, gold), similarities in zip(conversation.questions, ranks, strict=True):
        order = dict.fromkeys(owners[number] for number in np.argsort(-similarities, kind="stable"))
        shares.append(len(gold & set(list(order)[:depth])) / len(gold))
    return shares


def interval(values: Sequence[float]) -> str:
    """Return the mean and the 95 % interval of a bootstrap over questions."""
    numbers = np.array(values)
    draws = np.random.default_rng(0).integers(0, len(numbers), (1000, len(numbers)))
    low, high = np.quantile(numbers[draws].mean(axis=1), (0.025, 0.975))
    return f"{numbers.mean():.3f} [{low:.3f}, {high:.3f}]"


def measure(conversations: Sequence[Conversation], embedding: Embedding, recipe: Recipe, *, whole: bool) -> list[str]:
    """Return frac@5 and frac@10 of a recipe, as text."""
    shares: dict[int, list[float]] = {5: [], 10: []}
    for conversation in conversations:
        texts, owners = [], []
        for name, turns in conversation.sessions.items():
            parts = ["\n".join(turns)] if whole else chunks(turns, embedding.tokenizer.count(turns))
            texts += parts
            owners += [name] * len(parts)
        questions = embedding.embed([question for question, _ in conversation.questions], RECIPES[0])
        ranks = questions @ embedding.embed(texts, recipe).T
        for depth in shares:
            shares[depth] += found_shares(conversation, owners, ranks, depth)
    return [interval(found) for found in shares.values()]


def main() -> None:
    """Print a table for whole sessions and one for chunks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("locomo", type=Path, help="locomo10.json, or a part of it")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    manifest = find_model(OnnxEmbedderManifest, arguments.model, None, Path(gettempdir()))
    embedding = Embedding(TextTokenizer.load(manifest), load_encoder(manifest, threads=0, batch_tokens=512))
    conversations = read_conversations(arguments.locomo)
    total = sum(len(conversation.questions) for conversation in conversations)
    print(f"{manifest.space}, {len(conversations)} conversations, {total} questions")
    for whole, title in ((True, "session = one text"), (False, f"session = chunks of {PASSAGE_TOKENS} tokens")):
        print(f"\n{title:48} {'frac@5':24} frac@10")
        for recipe in RECIPES:
            print(f"{recipe.name:48} {'    '.join(measure(conversations, embedding, recipe, whole=whole))}", flush=True)


if __name__ == "__main__":
    main()
