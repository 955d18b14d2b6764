"""Train the weights of the reranking stage ``chat``, and measure them: any@5, frac@10 and MRR of turns.

    python benchmarks/chat_reranker.py PATH/locomo.json [--keep DIR]

The candidates are the fifty best messages of the default search. A linear score over the features of
:mod:`klaw_conversations.reranker` is trained on one half of the questions by the loss of ListNet (Cao et al., *Learning
to Rank: From Pairwise Approach to Listwise Approach*, ICML 2007), with all messages that are evidence being equally
right, and an L2 penalty. The figures of the other half are those of weights that have not seen it; "each chat by the
others" trains on four chats and measures the fifth.

LoCoMo (Maharana et al., ACL 2024) is CC BY-NC 4.0: for measuring, and no part of this repository.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from klaw_conversations import reranker
from klaw_core import Candidate
from klaw_core.config.load import load_config
from klaw_eval.building import build
from klaw_eval.datasets.locomo import read
from klaw_eval.split import half_of

_CANDIDATES = 50
_PENALTY = 1.0
_STEPS = 30


@frozen(eq=False)
class Asked:
    """A question and its candidates: the features of each, and the ids of the messages that it contains."""

    chat: str
    half: str
    gold: frozenset[str]
    ids: Sequence[Sequence[str]]
    features: Any  # shape (candidates, weights)

    @property
    def right(self) -> Any:
        """The share of each candidate in the right answer, which add up to 1; shape (candidates,)."""
        right = np.array([not self.gold.isdisjoint(ids) for ids in self.ids], np.float64)
        return right / max(right.sum(), 1.0)

    def figures(self, weights: Any) -> Sequence[float]:
        """Return any@5, frac@10 and the reciprocal rank; with None those of the search without the stage."""
        order = range(len(self.ids)) if weights is None else np.argsort(-(self.features @ weights), kind="stable")
        found = list(dict.fromkeys(name for index in order for name in self.ids[index]))
        ranks = (1 / rank for rank, name in enumerate(found[:10], start=1) if name in self.gold)
        frac = len(self.gold & set(found[:10])) / len(self.gold)
        return float(not self.gold.isdisjoint(found[:5])), frac, next(ranks, 0.0)


def ask(path: Path, root: Path) -> Iterator[Asked]:
    """Index each conversation below ``root`` and yield its questions."""
    seen: list[Sequence[Candidate]] = []
    # The stage itself is the one place that sees what it is given.
    reranker.ChatReranker.rerank = lambda _self, _query, candidates, _limit: seen.append(candidates)  # type: ignore[method-assign]
    for corpus in read(path, "turn").corpora:
        with build(corpus, "turn", load_config(), root, _quiet) as index:
            for question in corpus.questions:
                seen.clear()
                results = index.memory.search(question.text, _CANDIDATES)
                names = {result.chunk_id: tuple(index.units_of(result, question)) for result in results}
                own = [candidate for candidate in (seen or [()])[0] if candidate.stored.chunk.chunk_id in names]
                rows = reranker.features(question.text, own)
                best = own[0].hit.score if own else 1.0
                values = [
                    [candidate.hit.score / best, *(row[name] for name in reranker.WEIGHTS if name != "fused")]
                    for candidate, row in zip(own, rows, strict=True)
                ]
                ids = [names[candidate.stored.chunk.chunk_id] for candidate in own]
                shape = (len(own), len(reranker.WEIGHTS))
                matrix = np.array(values, np.float64).reshape(shape)
                yield Asked(corpus.name, half_of(question.side), frozenset(question.gold), ids, matrix)


@contextmanager
def _quiet() -> Iterator[Any]:
    yield lambda *_: None


def train(asked: Sequence[Asked]) -> Any:
    """Return the weights, relative to the first, by Newton's method on standardised features."""
    useful = [each for each in asked if each.right.any()]
    rows = np.concatenate([each.features for each in useful])
    mean, spread = rows.mean(0), rows.std(0) + 1e-9
    lists = [((each.features - mean) / spread, each.right) for each in useful]
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        slope, curve = 2 * _PENALTY * weights, 2 * _PENALTY * np.eye(len(weights))
        for scaled, right in lists:
            share = _shares(scaled @ weights)
            slope -= scaled.T @ (right - share)
            curve += (scaled.T * share) @ scaled - np.outer(share @ scaled, share @ scaled)
        step, before = np.linalg.solve(curve, slope), _loss(lists, weights)
        while _loss(lists, weights - step) > before:
            step = step / 2
        weights = weights - step
    weights /= spread
    return weights / weights[0]


def _shares(scores: Any) -> Any:
    raised = np.exp(scores - scores.max())
    return raised / raised.sum()


def _loss(lists: Sequence[tuple[Any, Any]], weights: Any) -> float:
    losses = (-float(right @ np.log(_shares(scaled @ weights) + 1e-300)) for scaled, right in lists)
    return sum(losses) + _PENALTY * float(weights @ weights)


def _print(what: str, figures: Sequence[Sequence[float]]) -> None:
    any5, frac10, mrr = np.mean(figures, axis=0)
    print(f"{what:>32}  any@5 {any5:.3f}  frac@10 {frac10:.3f}  mrr {mrr:.3f}")


def main() -> None:
    """Print the trained weights and the figures of both halves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--keep", type=Path, help="keep the indexes in this directory, and reuse them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        asked = list(ask(options.path, options.keep or Path(temporary)))
    shipped = np.array(list(reranker.WEIGHTS.values()))
    trained = train([each for each in asked if each.half == "tune"])
    for name, weight in zip(reranker.WEIGHTS, trained, strict=True):
        print(f"{name:>32}  {weight:+.2f}, shipped {reranker.WEIGHTS[name]:+.2f}")
    for half in ("tune", "report"):
        own = [each for each in asked if each.half == half]
        for what, weights in (("without the stage", None), ("trained on tune", trained), ("shipped", shipped)):
            _print(f"{half}, {what}", [each.figures(weights) for each in own])
    others = {chat: train([each for each in asked if each.chat != chat]) for chat in {each.chat for each in asked}}
    _print("each chat by the others", [each.figures(others[each.chat]) for each in asked])


if __name__ == "__main__":
    main()
