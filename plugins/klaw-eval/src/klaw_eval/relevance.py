"""Measure whether relevance separates questions that the index answers from those that it does not.

Every question is asked twice: with the whole index, and without its documents. If relevance is comparable between
questions, it is higher the first time, even for two different questions. The area under the curve (AUROC) is the
probability of that; 0.5 means chance.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from attrs import field, frozen

from klaw_eval.bootstrap import LEVEL, SEED
from klaw_eval.building import OpenIndex, build
from klaw_eval.errors import DatasetError
from klaw_eval.metrics import DEPTH, Scores
from klaw_eval.values import Corpus, Dataset, Question

if TYPE_CHECKING:
    from klaw_core import Config
    from klaw_eval.running import ProgressBars

_RESAMPLES = 500


@frozen
class _Best:
    """The best relevance of a result list, and whether it has only weak matches."""

    relevance: float
    is_weak: bool


@frozen
class RelevanceRun:
    """The relevance of the best result of each question: with its documents in the index, and without.

    ``weak`` are the shares of questions with only weak matches, with their documents and without. ``left_out`` is the
    number of questions whose documents are the whole index. Times are in seconds.
    """

    dataset: Dataset
    config: str
    embedder: str
    present: Scores = field(eq=False, repr=False)
    absent: Scores = field(eq=False, repr=False)
    weak: tuple[float, float]
    left_out: int
    seconds: float

    @property
    def auroc(self) -> tuple[float, float, float]:
        """The area under the curve and its 95 % interval, by bootstrap over questions."""
        generator = np.random.default_rng(SEED)
        count = len(self.present)
        draws = (generator.integers(count, size=count) for _ in range(_RESAMPLES))
        areas = [area(self.present[drawn], self.absent[drawn]) for drawn in draws]
        low, high = np.quantile(areas, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        return area(self.present, self.absent), float(low), float(high)


def area(positive: Scores, negative: Scores) -> float:
    """Return the probability that one of ``positive`` is above one of ``negative``; equal values count half."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, "left") + np.searchsorted(ordered, positive, "right")
    return float(below.sum() / (2 * len(positive) * len(negative)))


def measure_relevance(dataset: Dataset, config: Config, name: str, root: Path, bars: ProgressBars) -> RelevanceRun:
    """Index a test set below ``root`` and ask its questions with and without their documents.

    Raise DatasetError for a set of questions for the user's own index, or with conversation turns as gold ids.
    """
    if dataset.own or dataset.unit == "turn":
        raise DatasetError(f"--relevance takes whole documents out of an index of its own, not {dataset.unit}s")
    started = time.perf_counter()
    pairs: list[tuple[_Best, _Best]] = []
    embedder, left_out = "none", 0
    for corpus in dataset.corpora:
        with build(corpus, dataset.unit, config, root, bars.indexing) as index:
            embedder = str(index.memory.status().space or "none")
            found = list(_ask(corpus, index, bars))
        left_out += len(corpus.questions) - len(found)
        pairs += found
    if not pairs:
        raise DatasetError(f"{dataset.name}: no question can be asked without its documents")
    present, absent = (np.array([best.relevance for best in side]) for side in zip(*pairs, strict=True))
    weak = tuple(sum(best.is_weak for best in side) / len(side) for side in zip(*pairs, strict=True))
    seconds = time.perf_counter() - started
    return RelevanceRun(dataset, name, embedder, present, absent, (weak[0], weak[1]), left_out, seconds)


def _ask(corpus: Corpus, index: OpenIndex, bars: ProgressBars) -> Iterator[tuple[_Best, _Best]]:
    """Yield the best relevance of each question with its documents and without."""
    by_files: dict[frozenset[Path], list[Question]] = {}
    for question in corpus.questions:
        by_files.setdefault(frozenset(index.files_of(question.gold)), []).append(question)
    with bars.asking(len(corpus.questions)) as asked_one, index.unfinished():
        for files, questions in by_files.items():
            present = [_best(index, question) for question in questions]
            if not files or files == index.files:
                continue
            with _without_files(index, sorted(files)):
                absent = [_best(index, question) for question in questions]
            for pair in zip(present, absent, strict=True):
                asked_one()
                yield pair


def _best(index: OpenIndex, question: Question) -> _Best:
    results = index.memory.search(question.text, DEPTH)
    relevance = max((result.relevance or 0.0 for result in results), default=0.0)
    return _Best(relevance, all(result.is_weak for result in results))


@contextmanager
def _without_files(index: OpenIndex, files: Sequence[Path]) -> Iterator[None]:
    """Remove files from the index during the block; their vectors stay in the cache."""
    with TemporaryDirectory(dir=files[0].parent.parent, prefix=".aside-") as aside:
        away = {file: Path(aside) / str(number) for number, file in enumerate(files)}
        for file, place in away.items():
            file.rename(place)
        try:
            index.memory.index(paths=files)
            yield
        finally:
            for file, place in away.items():
                place.rename(file)
            index.memory.index(paths=files)
