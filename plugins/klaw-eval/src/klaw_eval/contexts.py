"""Measure how much of the evidence for an answer ``Memory.context`` contains within a token budget. No model judges.

Evidence means the messages that a test set names. A chunk shows the messages whose lines it contains, and a fact those
that it quotes. A shown message need not contain the decisive sentence, so the words of the answer are also searched for
in the text. Neither figure alone shows that one kind of context is better.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, field, frozen

from klaw_core import Memory, install_extras, load_config
from klaw_eval.bootstrap import Interval, interval
from klaw_eval.building import OpenIndex, build, index_directory
from klaw_eval.errors import DatasetError
from klaw_eval.running import ProgressBars
from klaw_eval.values import Corpus, Dataset, Question
from klaw_tools import Context, ContextItem

if TYPE_CHECKING:
    from klaw_core import Config

#: The budgets of contexts in tokens.
BUDGETS = (250, 500, 1000)
#: The kinds of contexts: only chunks; chunks arranged and marked by the extension; with facts that rules extract; and
#: with digests of days.
ARMS: Mapping[str, str] = {"chunks": "", "marks": "none", "facts": "rules", "digests": "rules"}

_WORD = re.compile(r"\w+")
_MARKS = ("(perhaps outdated:", "no longer true", "(was ")
_CHUNKS_SEARCHED = 50  # the number that a context searches for
_TIMED = 3  # repetitions, alternating; the median is reported, because other processes run as well
_EXTENSION = "facts"
_TABLE = {"extensions": {_EXTENSION: {"extractor": "none"}}}


@frozen
class ContextAnswer:
    """The contents of one context for one question, by budget where that matters.

    ``updates`` is for questions about something that changed: whether the current statement was in the context, whether
    the outdated one was, whether every outdated one was marked, and whether an unmarked one came before the current
    one.
    """

    question: Question
    found: Mapping[int, float]
    words: Mapping[int, bool]
    updates: Mapping[str, bool]
    evidence_marked: bool
    declined: bool
    search_seconds: float
    context_seconds: float
    notices: tuple[str, ...] = ()


@frozen
class ArmRun:
    """The contexts of one arm. ``facts`` is the number of facts, ``ended`` the number of those that rules ended."""

    dataset: Dataset
    arm: str
    answers: tuple[ContextAnswer, ...] = field(repr=False)
    facts: int = 0
    ended: int = 0

    def notices(self) -> list[str]:
        """Return the notices of contexts, such as the reason why nothing was found by vectors, with their counts."""
        counts = Counter(
            notice
            for answer in self.answers
            for notice in answer.notices
            if not notice.startswith(("did you mean", "nothing fits"))
        )
        return [f"{self.arm}: {notice} ({count:,} contexts)" for notice, count in counts.items()]

    def figures(self) -> dict[str, float]:
        """Return every figure by name: means over questions, and ratios of times."""
        answers = self.answers
        figures = {}
        for budget in BUDGETS:
            figures[f"any@{budget}"] = _mean([item.found[budget] > 0 for item in answers])
            figures[f"frac@{budget}"] = _mean([item.found[budget] for item in answers])
        for budget in BUDGETS[1:]:
            told = [item.words[budget] for item in answers if budget in item.words]
            figures |= {f"words@{budget}": _mean(told)} if told else {}
        figures |= _update_figures([item.updates for item in answers if item.updates])
        figures["evidence marked"] = _mean([item.evidence_marked for item in answers])
        figures["declined"] = _mean([item.declined for item in answers])
        p95 = [np.percentile([getattr(item, name) for item in answers], 95) for name in _TIMES]
        figures["p95 / search"] = float(p95[1] / p95[0])
        return figures

    def differences(self, other: ArmRun) -> dict[str, Interval]:
        """Return what each figure of evidence and words gained over another arm on the same questions.

        Each interval has one column. Chats are resampled, or questions if there is one chat.
        """
        pairs = [*zip(self.answers, other.answers, strict=True)]
        groups = [mine.question.group for mine, _ in pairs]
        found = {
            f"any@{budget}": [float(a.found[budget] > 0) - float(b.found[budget] > 0) for a, b in pairs]
            for budget in BUDGETS
        }
        found |= {f"frac@{budget}": [a.found[budget] - b.found[budget] for a, b in pairs] for budget in BUDGETS}
        gained = {name: interval(np.array([values], np.float64).T, groups) for name, values in found.items()}
        told = [(a, b) for a, b in pairs if a.words and b.words]
        for budget in BUDGETS[1:] if told else ():
            values = [float(a.words[budget]) - float(b.words[budget]) for a, b in told]
            gained[f"words@{budget}"] = interval(np.array([values]).T, [a.question.group for a, _ in told])
        return gained

    def by_category(self, budget: int) -> dict[str, float]:
        """Return frac at a budget for each category of questions."""
        kinds = sorted({item.question.category for item in self.answers})
        return {
            kind: _mean([item.found[budget] for item in self.answers if item.question.category == kind])
            for kind in kinds
        }


_TIMES = ("search_seconds", "context_seconds")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


def _update_figures(updates: Sequence[Mapping[str, bool]]) -> dict[str, float]:
    if not updates:
        return {}
    both = [item for item in updates if item["current"] and item["outdated"]]
    return {
        "update found": _mean([item["current"] for item in updates]),
        "outdated found too": _mean([item["outdated"] for item in updates]),
        "outdated marked": _mean([item["marked"] for item in both]),
        "outdated first, unmarked": _mean([item["wrong order"] for item in both]),
    }


def run_arms(dataset: Dataset, config: Config, arms: Sequence[str], root: Path, bars: ProgressBars) -> Iterator[ArmRun]:
    """Index a test set below ``root`` and ask its questions in each arm. Raise DatasetError, KlawError."""
    parts: dict[str, list[ArmRun]] = {arm: [] for arm in arms}
    for corpus in dataset.corpora:
        with build(corpus, "turn", _without_facts(config), root, bars.indexing) as index:
            if "chunks" in arms:
                parts["chunks"].append(_ask_all(dataset, corpus, index, index.memory, arm="chunks", bars=bars))
        for arm in arms:
            if arm != "chunks":
                with _opened(arm, corpus, config, root) as memory:
                    parts[arm].append(_ask_all(dataset, corpus, index, memory, arm=arm, bars=bars))
    for arm, found in parts.items():
        answers = tuple(answer for part in found for answer in part.answers)
        yield ArmRun(dataset, arm, answers, sum(part.facts for part in found), sum(part.ended for part in found))


def _without_facts(config: Config) -> Config:
    return evolve(config, disabled_plugins=(*config.disabled_plugins, "klaw-facts"))


@contextmanager
def _opened(arm: str, corpus: Corpus, config: Config, root: Path) -> Iterator[Memory]:
    """Yield a copy of an index with the additions of an arm. An existing copy is updated."""
    place = index_directory(corpus, _without_facts(config), root)
    copy = place / arm
    if not copy.exists():
        partial = place / f"{arm}.new"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(place / "data", partial)
        partial.rename(copy)
    known = config.extensions.get(_EXTENSION) or load_config(overrides=_TABLE).extensions[_EXTENSION]
    chosen = evolve(known, options={**known.options, "extractor": ARMS[arm]})
    extensions = {**config.extensions, _EXTENSION: chosen}
    with Memory.open(evolve(config, data_dir=copy, sources=(), extensions=extensions)) as memory:
        facts = _facts_of(memory)
        if ARMS[arm] != "none":
            facts.extract()
        if arm == "digests":
            facts.compress()
        yield memory


def _facts_of(memory: Memory) -> Any:
    """Return the extension ``facts``. Raise DatasetError if it is not installed."""
    found = dict(memory.extensions.all()).get(_EXTENSION)
    if found is None:
        raise DatasetError(
            f"the extension {_EXTENSION!r} is not installed",
            hint=f"{install_extras(['facts'])}, or measure --arm chunks alone",
        )
    return found


def _ask_all(
    dataset: Dataset, corpus: Corpus, index: OpenIndex, memory: Memory, *, arm: str, bars: ProgressBars
) -> ArmRun:
    facts = None if arm == "chunks" else _facts_of(memory)
    asker = _Asker(index, memory, facts)
    answers = []
    with bars.asking(len(corpus.questions)) as asked_one:
        for question in corpus.questions:
            answers.append(asker.ask(question))
            asked_one()
    known = [] if facts is None else facts.list(everything=True)
    return ArmRun(dataset, arm, tuple(answers), len(known), sum(fact.ended_by is not None for fact in known))


@frozen(eq=False)
class _Asker:
    """Asks one memory for contexts, and evaluates them."""

    index: OpenIndex
    memory: Memory
    facts: Any

    def ask(self, question: Question) -> ContextAnswer:
        contexts = {BUDGETS[-1]: self.memory.context(question.text, budget=BUDGETS[-1])}
        times = [self._times(question.text) for _ in range(_TIMED)]  # of questions that were asked before
        contexts |= {budget: self.memory.context(question.text, budget=budget) for budget in BUDGETS[:-1]}
        largest = contexts[BUDGETS[-1]]
        shown = {id(item): self.messages_of(item) for context in contexts.values() for item in context.items}
        marked = {name for item in largest.items if _is_marked(item) for name in shown[id(item)]}
        return ContextAnswer(
            question,
            {budget: _frac(context, shown, question) for budget, context in contexts.items()},
            {budget: _holds_words(str(context), question.answer) for budget, context in contexts.items()}
            if question.answer
            else {},
            self._updates(question, largest, shown) if question.current and question.outdated else {},
            not question.current and not marked.isdisjoint(question.gold),
            bool(largest.declined),
            search_seconds=median(searched for searched, _ in times),
            context_seconds=median(whole for _, whole in times),
            notices=largest.notices,
        )

    def _times(self, text: str) -> tuple[float, float]:
        """Return the seconds that a search takes, and those that a context takes."""
        began = time.perf_counter()
        self.memory.search(text, _CHUNKS_SEARCHED)
        searched = time.perf_counter()
        self.memory.context(text, budget=BUDGETS[-1])
        return searched - began, time.perf_counter() - searched

    def messages_of(self, item: ContextItem) -> frozenset[str]:
        """Return the ids of the messages that an item shows."""
        kind, _, rest = item.source.partition("/")
        if kind == "facts":
            return frozenset(quote.message for quote in self.facts.get(rest).quotes)
        if kind == "digests":
            chat, _, day = rest.partition("/")
            digest = self.facts.journal.state().digests.get((chat, day))
            return frozenset(quote.message for quote in digest.quotes) if digest else frozenset()
        path, _, lines = item.source.rpartition(":")
        first, _, last = lines.partition("-")
        if not first.isdecimal() or not last.isdecimal():
            return frozenset()
        found = (self.index.units.get((path, line)) for line in range(int(first), int(last) + 1))
        return frozenset(name for name in found if name)

    def _updates(self, question: Question, context: Context, shown: Mapping[int, frozenset[str]]) -> Mapping[str, bool]:
        """Return the figures about current and outdated statements, given the order in which they are shown."""
        text = str(context)
        items = sorted(context.items, key=lambda item: text.find(item.text))
        new = [place for place, item in enumerate(items) if not shown[id(item)].isdisjoint(question.current)]
        old = [
            place
            for place, item in enumerate(items)
            if place not in new and not shown[id(item)].isdisjoint(question.outdated)
        ]
        unmarked = [place for place in old if not _is_marked(items[place])]
        return {
            "current": bool(new),
            "outdated": bool(old),
            "marked": bool(old) and not unmarked,
            "wrong order": bool(unmarked) and bool(new) and unmarked[0] < new[0],
        }


def _is_marked(item: ContextItem) -> bool:
    return any(mark in item.text + item.note for mark in _MARKS)


def _frac(context: Context, shown: Mapping[int, frozenset[str]], question: Question) -> float:
    found = {name for item in context.items for name in shown[id(item)]}
    return len(found & question.gold.keys()) / len(question.gold)


def _holds_words(text: str, answer: str) -> bool:
    """Return whether every word of an answer is in a text."""
    return set(_WORD.findall(answer.casefold())) <= set(_WORD.findall(text.casefold()))
