"""Reports as text and as JSON, with the conditions under which their figures are comparable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from klaw_core.cli.kit import Output, StyledText, counted, duration
from klaw_eval.bootstrap import LEVEL, RESAMPLES, SEED, Interval, resampled_over
from klaw_eval.comparing import Comparison, against_retrievers, by_category, has_one_each, informative_metrics, means
from klaw_eval.metrics import CUTS, METRICS, Scores
from klaw_eval.relevance import RelevanceRun
from klaw_eval.running import FUSED, Run

_HEADLINE = METRICS.index("ndcg@10")
_SHOWN_MISSES = 20


def print_report(output: Output, report: Run | Comparison, half: str | None, *, verbose: bool = False) -> None:
    """Print the figures of one or two configurations; with ``verbose``, also the questions that one did not answer."""
    if isinstance(report, Comparison):
        _print_comparison(output, report, half)
        return
    _print_run(output, report, half)
    if verbose:
        _print_misses(output, report)
    times = [f"asking {duration(report.asking_seconds)}"]
    if not report.dataset.own:
        times.insert(0, f"indexing {duration(report.indexing_seconds)}")
    output.line("")
    output.line(StyledText(", ".join(times), "dim"))


def report_record(report: Run | Comparison, half: str | None, *, verbose: bool = False) -> dict[str, Any]:
    """Return the output of ``--json``; with ``verbose``, including the questions for which nothing right was found."""
    if isinstance(report, Comparison):
        return _comparison_record(report, half)
    return _run_record(report, half) | ({"missed": _misses(report)} if verbose else {})


def print_relevance(output: Output, run: RelevanceRun, half: str | None) -> None:
    """Print how well relevance separates the questions that an index answers from others."""
    dataset = run.dataset
    asked = f"{counted(len(run.present), 'question')}, each with and without its documents"
    output.line(StyledText(dataset.name, "bold"), f": {asked}, unit {dataset.unit}, {dataset.setting}")
    if half:
        output.line(f"half: {half}")
    if run.left_out:
        output.line(f"left out: {counted(run.left_out, 'question')} about all there is in the index, or nothing in it")
    mean, low, high = run.auroc
    there, gone = run.weak
    rows = [
        ("config", run.config),
        ("embedder", run.embedder),
        ("auroc", f"{_figure(mean)} [{_figure(low)}, {_figure(high)}]"),
        ("weak matches only", f"{there:.1%} of the questions with their documents, {gone:.1%} without"),
        ("calibration error", _figure(run.calibration_error)),
    ]
    output.rows(rows)
    output.line("")
    heads = [StyledText(head, "bold") for head in ("first results", "relevance", "right")]
    bins = [(f"{each.count:,}", _figure(each.relevance), _figure(each.right)) for each in run.bins]
    output.rows([heads, *bins], right=range(3))
    output.line(StyledText(duration(run.seconds), "dim"))


def relevance_record(run: RelevanceRun, half: str | None) -> dict[str, Any]:
    """Return the output of ``--json`` for it."""
    mean, low, high = (round(value, 4) for value in run.auroc)
    there, gone = (round(value, 4) for value in run.weak)
    return {
        "dataset": run.dataset.name,
        "n": len(run.present),
        "unit": run.dataset.unit,
        "setting": run.dataset.setting,
        "half": half,
        "left_out": run.left_out,
        "config": run.config,
        "embedder": run.embedder,
        "auroc": {"mean": mean, "low": low, "high": high},
        "weak": {"present": there, "absent": gone},
        "calibration_error": round(run.calibration_error, 4),
        "bins": [
            {"n": each.count, "relevance": round(each.relevance, 4), "right": round(each.right, 4)} for each in run.bins
        ],
    }


def _print_run(output: Output, run: Run, half: str | None) -> None:
    """Print the conditions, the means of each mode, the fused ranking against its retrievers, and categories."""
    _print_terms(output, run, half)
    output.rows([("config", run.config), *_configured(run)])
    figures = means(run)
    table = [_header("", tuple(figures))]
    table += [
        [METRICS[at], *(_with_interval(found, at) for found in figures.values())] for at in informative_metrics(run)
    ]
    output.line("")
    output.rows(table)
    differences = against_retrievers(run)
    if differences:
        output.line("")
        name = METRICS[_HEADLINE]
        output.rows([(name, f"fused - {mode}", _difference(found, _HEADLINE)) for mode, found in differences.items()])
    _print_categories(output, run)


def _print_comparison(output: Output, comparison: Comparison, half: str | None) -> None:
    """Print two configurations next to each other, with paired intervals."""
    a, b = comparison.a, comparison.b
    _print_terms(output, a, half)
    output.rows([("A", a.config), *_configured(a, ""), ("B", b.config), *_configured(b, "")])
    for mode, found in reversed(list(comparison.differences.items())):
        output.line("")
        if not np.any(a.scores[mode] != b.scores[mode]):
            output.line(StyledText(mode, "bold"), ": the same for every question")
            continue
        rows: list[Sequence[StyledText | str]] = [_header(mode, ("A", "B", "B - A"))]
        for at in informative_metrics(a):
            pair = (_figure(float(one.scores[mode][:, at].mean())) for one in (a, b))
            rows.append((METRICS[at], *pair, _difference(found, at), _verdict(found, at)))
        output.rows(rows)


def _run_record(run: Run, half: str | None) -> dict[str, Any]:
    return {
        **_terms(run, half),
        **_configuration(run),
        "modes": {mode: _intervals(found) for mode, found in means(run).items()},
        "differences": {f"{FUSED}-{mode}": _intervals(found) for mode, found in against_retrievers(run).items()},
        "categories": {
            name: {"n": count, "modes": {mode: _named(values) for mode, values in modes.items()}}
            for name, (count, modes) in by_category(run).items()
        },
    }


def _comparison_record(comparison: Comparison, half: str | None) -> dict[str, Any]:
    a, b = comparison.a, comparison.b
    sides = {
        key: {**_configuration(run), "modes": {mode: _intervals(found) for mode, found in means(run).items()}}
        for key, run in (("a", a), ("b", b))
    }
    differences = {mode: _intervals(found) for mode, found in comparison.differences.items()}
    return {**_terms(a, half), **sides, "differences": differences}


def _terms(run: Run, half: str | None) -> dict[str, Any]:
    dataset = run.dataset
    return {
        "dataset": dataset.name,
        "n": len(run.questions),
        "available": dataset.available,
        "unit": dataset.unit,
        "setting": dataset.setting,
        "k": list(CUTS),
        "half": half,
        "left_out": dict(dataset.left_out),
        "missing_ids": run.missing,
        "interval": {"level": LEVEL, "over": resampled_over(run.groups), "resamples": RESAMPLES, "seed": SEED},
    }


def _configuration(run: Run) -> dict[str, Any]:
    return {
        "config": run.config,
        "embedder": run.embedder,
        "retrievers": run.retrievers,
        "notices": list(run.notices),
        "seconds": {"indexing": round(run.indexing_seconds, 1), "asking": round(run.asking_seconds, 1)},
    }


def _print_terms(output: Output, run: Run, half: str | None) -> None:
    dataset = run.dataset
    count = len(run.questions)
    asked = counted(count, "question")
    if count < dataset.available:
        asked = f"{count:,} of {counted(dataset.available, 'question')}"
    output.line(StyledText(dataset.name, "bold"), f": {asked}, unit {dataset.unit}, {dataset.setting}")
    cuts = " and ".join(map(str, CUTS))
    output.line(f"k = {cuts}; in brackets {LEVEL:.0%} intervals, by bootstrap over {resampled_over(run.groups)}")
    notes = [f"{count} {reason}" for reason, count in dataset.left_out.items()]
    if notes:
        output.line(f"left out: {', '.join(notes)}")
    if run.missing:
        output.line(f"not in the index, so never found: {counted(run.missing, 'expected id')}")
    if has_one_each(run):
        output.line("each question has one right id: frac and all are the same as any")
    if half:
        output.line(f"half: {half}")


def _configured(run: Run, name: str = "embedder") -> Iterator[tuple[str, str]]:
    yield name, run.embedder
    yield "retrievers" if name else "", run.retrievers


def _header(name: str, columns: Sequence[str]) -> list[StyledText | str]:
    return [StyledText(name, "bold"), *(StyledText(column, "bold") for column in columns)]


def _print_categories(output: Output, run: Run) -> None:
    categories = by_category(run)
    if categories:
        output.line("")
        columns = informative_metrics(run)
        rows: list[Sequence[StyledText | str]] = [_header(FUSED, ("n", *(METRICS[at] for at in columns)))]
        for name, (count, modes) in categories.items():
            rows.append((name, str(count), *(_figure(modes[FUSED][at]) for at in columns)))
        output.rows(rows, right=range(1, len(columns) + 2))


def _misses(run: Run) -> list[dict[str, Any]]:
    """Return the questions without a gold id among the first ten results."""
    found = run.scores[FUSED][:, METRICS.index("any@10")] > 0
    missed = (question for question, hit in zip(run.questions, found, strict=True) if not hit)
    return [{"id": question.id, "question": question.text, "wanted": list(question.gold)} for question in missed]


def _print_misses(output: Output, run: Run) -> None:
    misses = _misses(run)
    if misses:
        output.line("")
        output.line(StyledText("not among the first ten", "bold"))
        output.rows([(miss["question"], ", ".join(miss["wanted"])) for miss in misses[:_SHOWN_MISSES]], indent=2)
        if len(misses) > _SHOWN_MISSES:
            output.line(f"and {len(misses) - _SHOWN_MISSES:,} more; --json --verbose lists all", indent=2)


def _figure(value: float, *, sign: bool = False) -> str:
    """Return ``.731``, ``1.000``, or with a sign ``+.012``."""
    return f"{value:+.3f}".replace("0.", ".", 1) if sign else f"{value:.3f}".removeprefix("0")


def _with_interval(found: Interval, at: int) -> str:
    return f"{_figure(found.mean[at])} [{_figure(found.low[at])}, {_figure(found.high[at])}]"


def _difference(found: Interval, at: int) -> str:
    if found.low[at] == found.high[at] == 0:
        return "none"
    low, high = _figure(found.low[at], sign=True), _figure(found.high[at], sign=True)
    return f"{_figure(found.mean[at], sign=True)} [{low}, {high}]"


def _verdict(found: Interval, at: int) -> StyledText:
    """Return the conclusion from an interval that does not contain zero."""
    if found.low[at] > 0:
        return StyledText("better", "green")
    return StyledText("worse", "red") if found.high[at] < 0 else StyledText("")


def _intervals(found: Interval) -> dict[str, dict[str, float]]:
    rows = zip(METRICS, *(side.tolist() for side in (found.mean, found.low, found.high)), strict=True)
    return {
        name: {"mean": round(mean, 4), "low": round(low, 4), "high": round(high, 4)} for name, mean, low, high in rows
    }


def _named(values: Scores) -> dict[str, float]:
    return {name: round(value, 4) for name, value in zip(METRICS, values.tolist(), strict=True)}
