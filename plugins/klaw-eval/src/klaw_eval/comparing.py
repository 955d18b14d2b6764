"""Means with intervals: of one run, of its fused ranking compared with each retriever, and of two runs compared."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from attrs import frozen

from klaw_eval.bootstrap import Interval, interval
from klaw_eval.metrics import METRICS, Scores
from klaw_eval.running import FUSED, Run


@frozen
class Comparison:
    """Two configurations on the same questions; ``differences`` are B minus A, for each mode that both have."""

    a: Run
    b: Run
    differences: Mapping[str, Interval]


def means(run: Run) -> Mapping[str, Interval]:
    """Return the means over all questions for each mode."""
    return {mode: interval(scores, run.groups) for mode, scores in run.scores.items()}


def against_retrievers(run: Run) -> Mapping[str, Interval]:
    """Return the differences of the fused ranking and each retriever, paired by question; empty for one retriever."""
    return {
        mode: interval(run.scores[FUSED] - scores, run.groups) for mode, scores in run.scores.items() if mode != FUSED
    }


def by_category(run: Run) -> Mapping[str, tuple[int, Mapping[str, Scores]]]:
    """Return for each category, if there are any, its number of questions and the means of each mode."""
    rows = [(question.category, row) for row, question in enumerate(run.questions) if question.category]
    members = {name: [row for _, row in found] for name, found in groupby(sorted(rows), key=lambda item: item[0])}
    for name, parts in run.dataset.combined.items():
        members[name] = [row for part in parts for row in members.get(part, [])]
    return {
        name: (len(chosen), {mode: scores[chosen].mean(axis=0) for mode, scores in run.scores.items()})
        for name, chosen in members.items()
        if chosen
    }


def informative_metrics(run: Run) -> list[int]:
    """Return the columns to print. If each question has one right id, frac and all equal any and are left out."""
    alike = ("frac", "all") if has_one_each(run) else ()
    return [at for at, name in enumerate(METRICS) if not name.startswith(alike)]


def has_one_each(run: Run) -> bool:
    """Return whether each question has exactly one right id."""
    return all(len(question.gold) == 1 for question in run.questions)


def compare(a: Run, b: Run) -> Comparison:
    """Compare two runs of one test set. Raise ValueError if their questions differ."""
    if a.questions != b.questions:
        raise ValueError("only runs with the same questions can be compared")
    modes = [mode for mode in a.scores if mode in b.scores]
    return Comparison(a, b, {mode: interval(b.scores[mode] - a.scores[mode], a.groups) for mode in modes})
