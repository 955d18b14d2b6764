"""Ask every question of a test set in each mode of a configuration."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from attrs import field, frozen

from klaw_core import EmbeddingError, Memory, QueryError, RetrievalError, Status, VectorSpaceError
from klaw_eval.building import IndexingProgress, OpenIndex, build, open_own_index
from klaw_eval.errors import DatasetError
from klaw_eval.metrics import DEPTH, Scores, distinct, score
from klaw_eval.values import Corpus, Dataset, Question

if TYPE_CHECKING:
    from klaw_core import Config

Mode = Literal["fts", "vector", "hybrid"]
#: The names of search modes in a report.
MODES: Mapping[str, Mode] = {"words": "fts", "vectors": "vector", "fused": "hybrid"}
FUSED = "fused"

_MAX_DEPTH = 1_000  # chunks


@frozen
class ProgressBars:
    """Show the progress of an index run, and of questions: the second takes their number and is called after each."""

    indexing: IndexingProgress
    asking: Callable[[int], AbstractContextManager[Callable[[], None]]]


@frozen
class Run:
    """The scores of one configuration on a test set.

    ``scores`` has for each mode one row per question, in the order of ``questions``. ``missing`` is the number of
    wanted ids that are not in the index; they count as not found. Times are in seconds and only approximate.
    """

    dataset: Dataset
    config: str
    embedder: str
    retrievers: str
    questions: tuple[Question, ...] = field(repr=False)
    scores: Mapping[str, Scores] = field(eq=False, repr=False)
    missing: int
    notices: tuple[str, ...]
    indexing_seconds: float
    asking_seconds: float

    @property
    def groups(self) -> tuple[str, ...]:
        """The conversation of each question, if there are any."""
        return tuple(question.group for question in self.questions)


@frozen
class _IndexAnswers:
    """The answers of one index."""

    status: Status
    scores: Mapping[str, list[Scores]]
    missing: int
    notices: Counter[str]
    indexing_seconds: float
    asking_seconds: float


def run(dataset: Dataset, config: Config, name: str, root: Path, bars: ProgressBars) -> Run:
    """Index a test set below ``root`` and ask its questions. Raise DatasetError if no wanted id is in the index.

    ``name`` is the name of the configuration in reports. Raise KlawError for errors of Klaw.
    """
    parts: list[_IndexAnswers] = []
    matching = False
    for corpus in dataset.corpora:
        started = time.perf_counter()
        opened = (
            open_own_index(corpus, config) if dataset.own else build(corpus, dataset.unit, config, root, bars.indexing)
        )
        with opened as index:
            matching = matching or not index.known.isdisjoint(_wanted(corpus))
            if not matching and corpus is dataset.corpora[-1]:
                raise _mismatch(corpus, index)
            parts.append(_ask_all(corpus, index, bars, time.perf_counter() - started))
    modes = [mode for mode in MODES if all(mode in part.scores for part in parts)]
    notices = sum((part.notices for part in parts), Counter[str]())
    first = parts[0].status
    weights = {item.type: item.weight for item in config.retrieval}
    retrievers = ", ".join(f"{name} x {weights.get(name, 1.0):g}" for name in first.retrievers)
    retrievers += f"; {first.fusion}" if len(first.retrievers) > 1 else ""
    retrievers += "".join(f"; then {item.type}" for item in config.reranking)
    return Run(
        dataset,
        name,
        str(first.space or "none"),
        retrievers,
        tuple(dataset.questions()),
        {mode: np.array([row for part in parts for row in part.scores[mode]]) for mode in modes},
        sum(part.missing for part in parts),
        tuple(notice if count == 1 else f"{notice} ({count} times)" for notice, count in notices.items()),
        sum(part.indexing_seconds for part in parts),
        sum(part.asking_seconds for part in parts),
    )


def _wanted(corpus: Corpus) -> list[str]:
    """Return the gold ids of all questions, each once."""
    return distinct(name for question in corpus.questions for name in question.gold)


def _mismatch(corpus: Corpus, index: OpenIndex) -> DatasetError:
    """Return the error for an index without any wanted id, in which every result would count as wrong."""
    there = ", ".join(map(repr, index.shown)) or "nothing"
    return DatasetError(
        f"{corpus.name}: the expected ids and the index do not match: "
        f"the questions expect {', '.join(map(repr, _wanted(corpus)[:2]))}; the index has {there}",
        hint="check that the questions belong to these documents",
    )


def _ask_all(corpus: Corpus, index: OpenIndex, bars: ProgressBars, indexing_seconds: float) -> _IndexAnswers:
    modes = _modes(index.memory, corpus.questions[0].text)
    scores: dict[str, list[Scores]] = {name: [] for name in modes}
    notices = Counter(index.notices)
    started = time.perf_counter()
    with bars.asking(len(corpus.questions)) as asked_one:
        for question in corpus.questions:
            for name, mode in modes.items():
                scores[name].append(score(ranked(index, question, mode, notices), question.gold))
            asked_one()
    missing = len(set(_wanted(corpus)) - index.known)
    asking_seconds = time.perf_counter() - started
    return _IndexAnswers(index.memory.status(), scores, missing, notices, indexing_seconds, asking_seconds)


def _modes(memory: Memory, text: str) -> dict[str, Mode]:
    """Return the modes in which a question can be answered: all of them, if there are retrievers of both kinds."""
    available: dict[str, Mode] = {}
    for name, mode in MODES.items():
        if mode == "vector" and memory.status().space is None:
            continue
        try:
            memory.search(text, 1, mode=mode)
        except (QueryError, RetrievalError, EmbeddingError, VectorSpaceError):
            if mode == "hybrid":
                raise
        else:
            available[name] = mode
    return available if len(available) == len(MODES) else {FUSED: "hybrid"}


def ranked(index: OpenIndex, question: Question, mode: Mode, notices: Counter[str]) -> list[str]:
    """Return the first ten distinct ids: those of a search for ten chunks, then those of deeper searches.

    So the first ranks are those that a user sees; a deeper search may have another order.
    """
    found: list[str] = []
    limit = DEPTH
    while True:
        results = index.memory.search(question.text, limit, mode=mode)
        notices.update(notice for notice in results.notices if not notice.startswith(("did you mean", "nothing fits")))
        found = distinct([*found, *(name for result in results for name in index.units_of(result, question))])
        if len(found) >= DEPTH or len(results) < limit or limit >= _MAX_DEPTH:
            return found[:DEPTH]
        limit *= 4
