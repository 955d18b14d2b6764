"""Plot a report: each metric with its interval. Only this module imports Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from klaw_core.cli.kit import write_file
from klaw_eval.bootstrap import LEVEL, Interval
from klaw_eval.comparing import Comparison, informative_metrics, means
from klaw_eval.metrics import METRICS
from klaw_eval.running import Run

_PANEL = (5.2, 4.2)  # inches
_SPREAD = 0.5  # the share of the distance between two metrics over which the modes are spread
# Blue, orange and green of Okabe and Ito (2008), which can be distinguished with colour vision deficiencies.
_COLOURS = {"words": "#0072B2", "vectors": "#E69F00", "fused": "#009E73"}


def plot(reports: Sequence[Run | Comparison], file: Path) -> None:
    """Write a figure with a panel for each report; the output is deterministic. Raise StoreError."""
    # Text instead of outlines, so that it can be searched and the file is small.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "klaw", "font.size": 9}):
        figure = Figure(figsize=(_PANEL[0] * len(reports), _PANEL[1]), layout="constrained")
        panels = figure.subplots(1, len(reports), squeeze=False)[0]
        for axes, report in zip(panels, reports, strict=True):
            _panel(axes, report)
        drawn = BytesIO()
        kind = file.suffix.removeprefix(".")
        figure.savefig(drawn, format=kind, dpi=144, metadata={"Date": None} if kind == "svg" else None)
    write_file(file, drawn.getvalue())


def _panel(axes: Axes, report: Run | Comparison) -> None:
    if isinstance(report, Comparison):
        run, intervals = report.a, report.differences
        axes.axvline(0, color="#888888", linewidth=0.8)
        axes.set_xlabel(f"{report.b.config} - {report.a.config}, {LEVEL:.0%} intervals")
    else:
        run, intervals = report, means(report)
        axes.set_xlabel(f"mean over questions, {LEVEL:.0%} intervals")
    dataset = run.dataset
    asked = f"{len(run.questions):,} questions, unit {dataset.unit}"
    axes.set_title(f"{dataset.name}: {asked}\n{dataset.setting}", fontsize=9)
    _draw(axes, intervals, informative_metrics(run))


def _draw(axes: Axes, intervals: Mapping[str, Interval], metrics: Sequence[int]) -> None:
    places = range(len(metrics))
    for number, (mode, found) in enumerate(intervals.items()):
        shift = _SPREAD * (number / max(len(intervals) - 1, 1) - 0.5) if len(intervals) > 1 else 0.0
        # A percentile interval of skewed resamples may not contain the mean.
        mean, low, high = found.mean[metrics], found.low[metrics], found.high[metrics]
        reach = [(mean - low).clip(0), (high - mean).clip(0)]
        heights = [place + shift for place in places]
        axes.errorbar(mean, heights, xerr=reach, fmt="o", ms=4, capsize=2, color=_COLOURS[mode], label=mode)
    axes.set_yticks(places, [METRICS[at] for at in metrics])
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if len(intervals) > 1:
        axes.legend(frameon=False, loc="best")
