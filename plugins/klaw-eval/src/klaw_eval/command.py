"""``klaw eval``: measure how often the right chunk is found, on a test set or on the user's own questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

from klaw_core.cli.kit import (
    Number,
    Settings,
    common_options,
    data,
    given_options,
    notify,
    pass_settings,
    print_json,
    tilde,
)

if TYPE_CHECKING:
    from klaw_core import Config
    from klaw_eval.comparing import Comparison
    from klaw_eval.datasets import Format
    from klaw_eval.running import Run
    from klaw_eval.values import Dataset

_FILE = click.Path(path_type=Path)


@frozen
class Arguments:
    """The arguments of the command line."""

    datasets: tuple[Path, ...]
    questions: Path | None
    format: Format | None
    unit: tuple[str, ...]
    pooled: bool
    part: str | None
    bilingual: Path | None
    half: str | None
    limit: int | None
    relevance: bool
    compare: tuple[Path, Path] | None
    fail_under: Mapping[str, float]
    plot: Path | None
    keep: Path | None


def _thresholds(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    from klaw_eval.metrics import METRICS

    thresholds = {}
    for value in values:
        name, separator, number = value.partition("=")
        if not separator or name not in METRICS:
            raise click.BadParameter(f"expected METRIC=VALUE, e.g. ndcg@10=.38; metrics: {', '.join(METRICS)}")
        thresholds[name] = Number().convert(number, parameter, context)
    return thresholds


def _picture(_context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix not in {".svg", ".png"}:
        raise click.BadParameter(f"{value}: the file name must end in .svg or .png")
    return value


class _WithSubcommands(click.Command):
    """A command with datasets as arguments and two subcommands: ``klaw eval facts`` and ``klaw eval poison``."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Return the context of the subcommand if its name is the first argument."""
        found = self.get_command(parent, args[0]) if args else None
        if found is None:
            return super().make_context(info_name, args, parent, **extra)
        return found.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def get_command(self, _context: click.Context | None, name: str) -> click.Command | None:
        """Return the subcommand if this is its name."""
        if name == "facts":
            from klaw_eval.facts_command import command as facts

            return facts
        if name == "poison":
            from klaw_eval.poison_command import command as poison

            return poison
        return None


@click.command(
    "eval", cls=_WithSubcommands, short_help="Measure what a search finds, on your questions or on a dataset."
)
@click.argument("datasets", nargs=-1, type=_FILE, metavar="[DATASET]...")
@click.option("--questions", type=_FILE, metavar="FILE", help="Ask your own questions of your own index.")
@click.option(
    "--format",
    type=click.Choice(("locomo", "beir", "trec", "squad", "beam")),
    help="Format of DATASET. [default: detected]",
)
@click.option(
    "--unit", type=click.Choice(("session", "turn")), multiple=True, help="What is counted, for LoCoMo. [session]"
)
@click.option("--pooled", is_flag=True, help="One index for all conversations, for LoCoMo.")
@click.option("--part", metavar="NAME", help="Name of a qrels/*.tsv file, for BEIR. [test]")
@click.option(
    "--bilingual", type=_FILE, metavar="FILE", help="Every second paragraph from this translation, for SQuAD."
)
@click.option("--half", type=click.Choice(("tune", "report")), help="Ask one half: tune on one, report on the other.")
@click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="Ask only N questions, for a quick look.")
@click.option("--relevance", is_flag=True, help="Measure relevance: ask with and without each question's documents.")
@click.option(
    "--compare", type=(_FILE, _FILE), metavar="A B", help="Compare two configuration files on the same questions."
)
@click.option(
    "--fail-under", multiple=True, callback=_thresholds, metavar="METRIC=VALUE", help="Exit with 1 below this value."
)
@click.option("--plot", type=_FILE, callback=_picture, metavar="FILE", help="Draw a picture (.svg or .png).")
@click.option("--keep", type=_FILE, metavar="DIR", help="Keep the indexes in this directory, and reuse them.")
@common_options
@pass_settings
def command(settings: Settings, /, **options: Any) -> None:
    """Measure how often the right chunk is among the first results: by words, by vectors and fused.

    A DATASET is a LoCoMo file, a BEIR folder (corpus.jsonl, queries.jsonl, qrels/), a folder with documents,
    questions and TREC judgements (Cranfield), or a SQuAD file. It is indexed with your configuration, like your notes,
    in a separate directory.

    `klaw eval facts DATASET...` measures what a context contains, with and without facts.

    Your own questions are lines of JSON: {"question": "...", "path": "notes/a.md"} or {"question": "...", "text":
    "what the chunk contains"}. Klaw searches your current index for them.
    """
    wanted = Arguments(**options)
    _check(settings, wanted)
    from klaw_eval.printing import print_report, report_record

    if wanted.relevance:
        _report_relevance(settings, wanted)
        return
    reports: list[Run | Comparison] = []
    for report in _reports(settings, wanted):
        if not settings.json:
            if reports:
                data().line("")
            print_report(data(), report, wanted.half, verbose=settings.verbose)
        reports.append(report)
    if settings.json:
        records = [report_record(report, wanted.half, verbose=settings.verbose) for report in reports]
        print_json(records[0] if len(records) == 1 else records)
    if wanted.plot is not None:
        from klaw_eval.plotting import plot

        plot(reports, wanted.plot)
        notify(settings, f"plot written to {wanted.plot}")
    _refuse_below(reports, wanted.fail_under)


def _check(settings: Settings, wanted: Arguments) -> None:
    """Raise UsageError for options that cannot be combined."""
    if not wanted.datasets and wanted.questions is None:
        raise click.UsageError("give a DATASET, or --questions FILE")
    of_dataset = ("format", "unit", "pooled", "part", "bilingual", "keep")
    given = given_options(click.get_current_context())
    if not wanted.datasets and (wrong := [given[name] for name in of_dataset if name in given]):
        raise click.UsageError(f"{wrong[0]} is for a DATASET; --questions alone use your index")
    if wanted.compare is not None and settings.config_file is not None:
        raise click.UsageError("--compare names both configurations; leave out --config")
    if wanted.relevance and (wanted.compare or wanted.plot or wanted.fail_under or wanted.questions):
        raise click.UsageError("--relevance cannot be combined with --compare, --plot, --fail-under or --questions")
    if wanted.questions is None and settings.data_dir is not None:
        raise click.UsageError("a DATASET has its own directory (--keep DIR); use --data-dir with --questions")


def _datasets(wanted: Arguments) -> Iterator[Dataset]:
    from klaw_eval.datasets import read_bilingual, read_dataset, read_questions, recognise
    from klaw_eval.errors import DatasetError
    from klaw_eval.split import select

    found: list[Dataset] = []
    for path in wanted.datasets:
        form = wanted.format or recognise(path)
        if form != "locomo" and (wanted.unit or wanted.pooled):
            raise click.UsageError(f"--unit and --pooled are for LoCoMo; {path} has the format {form}")
        if form != "beir" and wanted.part is not None:
            raise click.UsageError(f"--part is for BEIR; {path} has the format {form}")
        if form != "squad" and wanted.bilingual is not None:
            raise click.UsageError(f"--bilingual is for SQuAD; {path} has the format {form}")
        if wanted.bilingual is not None:
            found.append(read_bilingual(path, wanted.bilingual))
            continue
        units = wanted.unit or ("session",)
        found += [read_dataset(path, form, unit=unit, pooled=wanted.pooled, part=wanted.part) for unit in units]
    if wanted.questions is not None:
        found.append(read_questions(wanted.questions))
    for dataset in found:
        chosen = select(dataset, wanted.half, wanted.limit)
        if not chosen.corpora:
            raise DatasetError(f"the half {wanted.half!r} of {dataset.name} has no questions")
        yield chosen


def _reports(settings: Settings, wanted: Arguments) -> Iterator[Run | Comparison]:
    from klaw_eval.comparing import compare
    from klaw_eval.errors import DatasetError
    from klaw_eval.progress import progress_bars
    from klaw_eval.roots import index_root
    from klaw_eval.running import run

    try:
        datasets = list(_datasets(wanted))
    except OSError as error:
        raise DatasetError(f"{error.filename} cannot be read: {error.strerror}") from error
    bars = progress_bars(settings)
    with index_root(wanted.keep) as root:
        configs = _configs(settings, wanted.compare)
        for dataset in datasets:
            runs = [run(dataset, config, name, root, bars) for name, config in configs]
            notify(settings, *dict.fromkeys(notice for one in runs for notice in one.notices))
            yield runs[0] if len(runs) == 1 else compare(*runs)


def _report_relevance(settings: Settings, wanted: Arguments) -> None:
    """Measure and print how well relevance separates answerable questions from others."""
    from klaw_eval.printing import print_relevance, relevance_record
    from klaw_eval.progress import progress_bars
    from klaw_eval.relevance import measure_relevance
    from klaw_eval.roots import index_root

    (config,) = _configs(settings, None)
    records = []
    with index_root(wanted.keep) as root:
        for dataset in _datasets(wanted):
            run = measure_relevance(dataset, config[1], config[0], root, progress_bars(settings))
            records.append(relevance_record(run, wanted.half))
            if not settings.json:
                print_relevance(data(), run, wanted.half)
    if settings.json:
        print_json(records[0] if len(records) == 1 else records)


def _configs(settings: Settings, compared: tuple[Path, Path] | None) -> list[tuple[str, Config]]:
    """Return the configurations to run, each with its name in reports."""
    if compared is None:
        config = settings.load_config()
        return [(", ".join(map(tilde, config.files)) or "the defaults", config)]
    return [(str(path), evolve(settings, config_file=path).load_config()) for path in compared]


def _refuse_below(reports: Sequence[Run | Comparison], thresholds: Mapping[str, float]) -> None:
    """Raise BelowThresholdError if a figure of the fused ranking (of B, if there are two) is below its threshold."""
    from klaw_eval.errors import BelowThresholdError
    from klaw_eval.metrics import METRICS
    from klaw_eval.running import FUSED, Run

    problems = []
    for report in reports:
        run = report if isinstance(report, Run) else report.b
        figures = dict(zip(METRICS, run.scores[FUSED].mean(axis=0).tolist(), strict=True))
        problems += [
            f"{name} of {run.dataset.name}, unit {run.dataset.unit}, is {figures[name]:.4f}, below {demanded:g}"
            for name, demanded in thresholds.items()
            if figures[name] < demanded
        ]
    if problems:
        raise BelowThresholdError("; ".join(problems))
