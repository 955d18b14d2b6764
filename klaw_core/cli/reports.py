"""Print the report of an index run: one line and the skipped files, or JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from klaw_core.cli.json_forms import to_json
from klaw_core.cli.notices import notify
from klaw_core.cli.output import StyledText, counted, data, duration, notices, print_json
from klaw_core.cli.settings import Settings
from klaw_core.cli.streams import ReaderGoneError
from klaw_core.embedding.run import ALL_ANEW
from klaw_core.values.runs import IndexReport, SkippedEntry

_MAX_NAMED = 3  # skipped files that are listed without --verbose; if there are more, only their number is shown
_MAX_REASONS = 5  # for which the number of skipped files is shown
_DETAIL = re.compile(r" \([^)]*\)|: .*", re.DOTALL)  # the part of a reason that differs between files
# The first words of reasons, for one file and for several.
_PLURALS = {
    "contains": "contain",
    "does": "do",
    "leads": "lead",
    "points": "point",
    "has": "have",
    "holds": "hold",
    "was": "were",
}


def report_run(settings: Settings, name: str, report: IndexReport) -> None:
    """Print a run's summary on stdout, and the skipped files and notices on stderr."""
    if settings.json:
        print_json(as_dict(name, report))
        return
    if settings.quiet:
        return
    # A closed pipe must not prevent the next directory from being indexed.
    with suppress(ReaderGoneError):
        data().line(StyledText(f"{name}: ", "bold"), summary(report))
    _show_skipped(report.skipped, verbose=settings.verbose)
    if report.lacking:
        what = f"{counted(report.lacking, 'chunk')} found by words alone: "
        why = "; ".join(report.notices) or "not embedded yet"
        # `klaw embed` does not help if the index has another model's vectors; the notice names the right command.
        hint = "" if ALL_ANEW in why else " → klaw embed"
        notices().line(StyledText(what, "yellow"), f"{why}{hint}")
    else:
        for notice in report.notices:
            notices().line(StyledText("! ", "yellow"), notice)


def as_dict(name: str, report: IndexReport) -> dict[str, Any]:
    """Return a run's report for JSON."""
    return {"workspace": name, **to_json(report)}


def summary(report: IndexReport) -> str:
    """Return a run's counts in one line, without those that are 0."""
    documents = [
        f"{number:,} {word}"
        for number, word in (
            (report.added, "new"),
            (report.changed, "changed"),
            (report.unchanged, "unchanged"),
            (report.removed, "removed"),
            (len(report.skipped), "skipped"),
        )
        if number
    ]
    chunks = [counted(report.chunks, "chunk")] if report.chunks else []
    chunks += [f"{report.embedded:,} embedded"] if report.embedded else []
    chunks += [f"{report.cached:,} from the cache"] if report.cached else []
    nothing = "nothing" if report.lacking else "no notes"
    parts = [", ".join(documents) or ("" if chunks else nothing), ", ".join(chunks)]
    return f"{'; '.join(filter(None, parts))} in {duration(report.seconds)}"


def _show_skipped(skipped: tuple[SkippedEntry, ...], *, verbose: bool) -> None:
    """Print the skipped files by reason; without ``verbose``, print only the number if there are many."""
    if not verbose and len(skipped) > _MAX_NAMED:
        notices().line(StyledText(f"{len(skipped):,} skipped: ", "yellow"), f"{by_reason(skipped)}; -v lists them")
        return
    reasons: dict[str, list[str]] = {}
    for item in skipped:
        reasons.setdefault(item.reason, []).append(item.path)
    for reason, paths in reasons.items():
        notices().line(StyledText("skipped ", "yellow"), f"{', '.join(paths)}: {reason}")


def by_reason(skipped: Sequence[SkippedEntry]) -> str:
    """Return the number of skipped files by reason: ``7 empty, 2 point outside the workspace``."""
    counts = Counter(_DETAIL.sub("", item.reason).removeprefix("is ") for item in skipped)
    most = counts.most_common(_MAX_REASONS)
    parts = [f"{count:,} {_plural_reason(reason) if count > 1 else reason}" for reason, count in most]
    others = len(skipped) - sum(count for _, count in most)
    return ", ".join([*parts, f"{others:,} for other reasons"] if others else parts)


def _plural_reason(reason: str) -> str:
    verb, space, rest = reason.partition(" ")
    return f"{_PLURALS.get(verb, verb)}{space}{rest}"


@contextmanager
def interruptible(settings: Settings, kept: str) -> Iterator[None]:
    """Exit with status 130 on Ctrl-C, with a notice on what is ``kept``, or the notes of the interrupt."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        notify(settings, f"interrupted; {'; '.join(getattr(interrupt, '__notes__', ())) or kept}")
        raise click.exceptions.Exit(130) from None
