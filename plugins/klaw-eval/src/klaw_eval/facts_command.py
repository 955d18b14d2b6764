"""``klaw eval facts``: measure the evidence in contexts, with chunks alone and with facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from klaw_core.cli.kit import Output, Settings, common_options, data, notify, pass_settings, print_json

if TYPE_CHECKING:
    from klaw_eval.bootstrap import Interval
    from klaw_eval.contexts import ArmRun
    from klaw_eval.values import Dataset

_FILE = click.Path(path_type=Path)
_ARMS = ("chunks", "marks", "facts", "digests")
_BY_CATEGORY = 1000


@click.command("facts", short_help="Measure what a context contains, with and without facts.")
@click.argument("datasets", nargs=-1, type=_FILE, required=True, metavar="DATASET...")
@click.option("--arm", "arms", type=click.Choice(_ARMS), multiple=True, help="What to measure. [all of them]")
@click.option("--half", type=click.Choice(("tune", "report")), help="Ask about one half of the chats.")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Ask only N questions, for a quick look.")
@click.option("--keep", type=_FILE, metavar="DIR", help="Keep the indexes in this directory, and reuse them.")
@common_options
@pass_settings
def command(settings: Settings, /, **options: Any) -> None:
    """Measure how much of the evidence and of the answer's words `Memory.context` contains.

    The contexts have 250, 500 and 1,000 tokens. A DATASET is a LoCoMo file or a BEAM folder. Each chat is indexed with
    your configuration in a separate directory. The arms are: `chunks` alone; `marks`, chunks that the extension
    `facts` arranges and marks; `facts`, also facts that rules found; `digests`, also digests of days. No model judges
    the results.
    """
    from klaw_eval.contexts import run_arms
    from klaw_eval.progress import progress_bars
    from klaw_eval.roots import index_root

    wanted = [_read(path, options["half"], options["limit"]) for path in options["datasets"]]
    bars = progress_bars(settings)
    records = []
    with index_root(options["keep"]) as root:
        for dataset in wanted:
            runs = list(run_arms(dataset, settings.load_config(), options["arms"] or _ARMS, root, bars))
            notify(settings, *(notice for run in runs for notice in run.notices()))
            if settings.json:
                records.append(_record(dataset, runs, options["half"]))
            else:
                _print(data(), dataset, runs, options["half"])
    if settings.json:
        print_json(records[0] if len(records) == 1 else records)


def _read(path: Path, half: str | None, limit: int | None) -> Dataset:
    """Return a test set of conversations, split into halves by chat. Raise DatasetError."""
    from klaw_eval.datasets import read_dataset, recognise
    from klaw_eval.errors import DatasetError
    from klaw_eval.split import select

    form = recognise(path)
    if form not in {"locomo", "beam"}:
        raise DatasetError(f"{path} has the format {form}; contexts can be measured with LoCoMo or BEAM only")
    dataset = read_dataset(path, form, unit="turn")
    corpora = tuple(
        evolve(corpus, questions=tuple(evolve(question, side=question.group) for question in corpus.questions))
        for corpus in dataset.corpora
    )
    chosen = select(evolve(dataset, corpora=corpora), half, limit)
    if not chosen.corpora:
        raise DatasetError(f"the half {half!r} contains no chat of {dataset.name}")
    return chosen


def _print(output: Output, dataset: Dataset, runs: Sequence[ArmRun], half: str | None) -> None:
    from klaw_eval.bootstrap import LEVEL, resampled_over

    count = len(runs[0].answers)
    part = f", half: {half}" if half else ""
    output.line(f"{dataset.name}: {count} questions of {len(dataset.corpora)} chats{part}")
    figures = [run.figures() for run in runs]
    kinds = [run.by_category(_BY_CATEGORY) for run in runs]
    rows = [["", *(run.arm for run in runs)]]
    rows += [[name, *(_shown(found.get(name)) for found in figures)] for name in figures[0]]
    rows += [[f"frac@{_BY_CATEGORY}, {kind}", *(_shown(found[kind]) for found in kinds)] for kind in kinds[0]]
    rows.append(["facts", *(f"{run.facts:,}" for run in runs)])
    rows.append(["ended by rules", *(f"{run.ended:,}" for run in runs)])
    output.rows(rows, right=tuple(range(1, len(runs) + 1)))
    output.line("")
    if len(runs) > 1:
        base, *others = runs
        gained = [run.differences(base) for run in others]
        output.line(f"Gained over {base.arm}, with the {LEVEL:.0%} interval over {resampled_over(_groups(base))}:")
        output.rows(
            [["", *(run.arm for run in others)]]
            + [[name, *(_gain(found[name]) for found in gained)] for name in gained[0]]
        )
        output.line("")


def _groups(run: ArmRun) -> Sequence[str]:
    return [answer.question.group for answer in run.answers]


def _gain(found: Interval) -> str:
    return f"{found.mean[0]:+.3f} [{found.low[0]:+.3f}, {found.high[0]:+.3f}]"


def _shown(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.3f}"  # noqa: PLR0124  # NaN: nothing was measured


def _record(dataset: Dataset, runs: Sequence[ArmRun], half: str | None) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "questions": len(runs[0].answers),
        "half": half,
        "arms": {
            run.arm: {
                "figures": {name: value for name, value in run.figures().items() if value == value},  # noqa: PLR0124
                "frac@1000 by category": run.by_category(_BY_CATEGORY),
                "gained": {
                    name: {"mean": float(found.mean[0]), "low": float(found.low[0]), "high": float(found.high[0])}
                    for name, found in (run.differences(runs[0]).items() if run is not runs[0] else ())
                },
                "notices": run.notices(),
                "facts": run.facts,
                "ended": run.ended,
            }
            for run in runs
        },
    }
