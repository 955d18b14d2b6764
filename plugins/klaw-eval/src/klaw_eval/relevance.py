"""Measure whether relevance separates questions that the index answers from those that it does not.

Every question is asked twice: with the whole index, and without its documents. If relevance is comparable between
questions, it is higher the first time, even for two different questions. The area under the curve (AUROC) is the
probability of that; 0.5 means chance.

A relevance is also a probability: of all first results with a relevance of .7, seven in ten should be right. The
calibration error is the mean difference, over ten bins of equal width (Naeini et al., *Obtaining Well Calibrated
Probabilities Using Bayesian Binning*, AAAI 2015). First results of questions without their documents count as wrong.
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
_BINS = 10


@frozen
class Best:
    """The best relevance of a result list, whether it has only weak matches, and its first result.

    ``first`` is the relevance of that, None if there is no result; ``is_right``: it is one of the question's ids.
    """

    relevance: float
    is_weak: bool
    first: float | None
    is_right: bool


@frozen
class Bin:
    """First results whose relevance is in one tenth: their number, mean relevance, and the share that is right."""

    count: int
    relevance: float
    right: float


@frozen
class RelevanceRun:
    """The relevance of the best result of each question: with its documents in the index, and without.

    ``weak`` are the shares of questions with only weak matches, with their documents and without. ``bins`` are those of
    the first results that are not empty, by relevance. ``left_out`` is the number of questions whose documents are the
    whole index. Times are in seconds.
    """

    dataset: Dataset
    config: str
    embedder: str
    present: Scores = field(eq=False, repr=False)
    absent: Scores = field(eq=False, repr=False)
    weak: tuple[float, float]
    bins: Sequence[Bin]
    left_out: int
    seconds: float

    @property
    def calibration_error(self) -> float:
        """The mean difference between relevance and the share that is right, over the bins; 0 is perfect."""
        total = sum(each.count for each in self.bins)
        return sum(each.count * abs(each.relevance - each.right) for each in self.bins) / max(total, 1)

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

    The documents of a conversation's turns are its days. Raise DatasetError for a set of questions for the user's own
    index.
    """
    if dataset.own:
        raise DatasetError("--relevance takes whole documents out of an index of its own; give a DATASET")
    started = time.perf_counter()
    pairs: list[tuple[Best, Best]] = []
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
    bins = bins_of([best for pair in pairs for best in pair])
    return RelevanceRun(dataset, name, embedder, present, absent, (weak[0], weak[1]), bins, left_out, seconds)


def bins_of(found: Sequence[Best]) -> Sequence[Bin]:
    """Return the bins of the first results, by relevance, without empty ones."""
    known = [(best.first, best.is_right) for best in found if best.first is not None]
    tenths: list[list[tuple[float, bool]]] = [[] for _ in range(_BINS)]
    for relevance, is_right in known:
        tenths[min(int(relevance * _BINS), _BINS - 1)].append((relevance, is_right))
    return [
        Bin(len(each), sum(first for first, _ in each) / len(each), sum(right for _, right in each) / len(each))
        for each in tenths
        if each
    ]


def _ask(corpus: Corpus, index: OpenIndex, bars: ProgressBars) -> Iterator[tuple[Best, Best]]:
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


def _best(index: OpenIndex, question: Question) -> Best:
    results = index.memory.search(question.text, DEPTH)
    relevance = max((result.relevance or 0.0 for result in results), default=0.0)
    first = results[0] if results else None
    is_right = first is not None and not set(question.gold).isdisjoint(index.units_of(first, question))
    return Best(
        relevance, all(result.is_weak for result in results), None if first is None else first.relevance, is_right
    )


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
