"""What an index run did: one line for people, the skipped files below it, or JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from klaw_core.cli.output import StyledText, counted, data, duration, notices, notify, print_json
from klaw_core.cli.settings import Settings
from klaw_core.cli.streams import ReaderGoneError
from klaw_core.embedding.run import ALL_ANEW
from klaw_core.extensions.json_forms import to_json
from klaw_core.values.runs import IndexReport, SkippedEntry

_NAMED = 3  # skipped files that are named without --verbose; of more there is one line in all
_REASONS = 5  # reasons in that line
_DETAIL = re.compile(r" \([^)]*\)|: .*", re.DOTALL)  # what differs between files that are skipped for one reason
_PLURALS = {
    "contains": "contain",
    "does": "do",
    "leads": "lead",
    "points": "point",
    "has": "have",
    "holds": "hold",
    "was": "were",
}
# What an export's records are called.
_RECORDS = {
    "workspace": ("workspace", "workspaces"),
    "core": ("fact of core memory", "facts of core memory"),
    "saved": ("saved memory", "saved memories"),
    "message": ("message", "messages"),
    "summary": ("summary", "summaries"),
}


def report_run(settings: Settings, name: str, report: IndexReport) -> None:
    """Print a run's summary on stdout and what it skipped on stderr."""
    if settings.json:
        print_json(as_dict(name, report))
        return
    if settings.quiet:
        return
    # A reader that has gone must not keep the next directory from being indexed.
    with suppress(ReaderGoneError):
        data().line(StyledText(f"{name}: ", "bold"), summary(report))
    _show_skipped(report.skipped, verbose=settings.verbose)
    if report.lacking:
        what = f"{counted(report.lacking, 'chunk')} found by words alone: "
        why = "; ".join(report.notices) or "not embedded yet"
        # Vectors of another model are no gap that could be filled: their notice names the one thing that helps.
        hint = "" if ALL_ANEW in why else " → klaw embed"
        notices().line(StyledText(what, "yellow"), f"{why}{hint}")
    else:
        for notice in report.notices:
            notices().line(StyledText("! ", "yellow"), notice)


def as_dict(name: str, report: IndexReport) -> dict[str, Any]:
    """Return a run's report for JSON."""
    return {"workspace": name, **to_json(report)}


def summary(report: IndexReport) -> str:
    """Return a run's counts in one line; what did not happen is left out, except what is unchanged."""
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
    nothing = "nothing" if report.lacking else "no notes"  # an index run over chunks has notes to count
    parts = [", ".join(documents) or ("" if chunks else nothing), ", ".join(chunks)]
    return f"{'; '.join(filter(None, parts))} in {duration(report.seconds)}"


def _show_skipped(skipped: tuple[SkippedEntry, ...], *, verbose: bool) -> None:
    """Name what was skipped, by reason; of many files only how many there are, as most of them are no news."""
    if not verbose and len(skipped) > _NAMED:
        notices().line(StyledText(f"{len(skipped):,} skipped: ", "yellow"), f"{by_reason(skipped)}; -v lists them")
        return
    reasons: dict[str, list[str]] = {}
    for item in skipped:
        reasons.setdefault(item.reason, []).append(item.path)
    for reason, paths in reasons.items():
        notices().line(StyledText("skipped ", "yellow"), f"{', '.join(paths)}: {reason}")


def by_reason(skipped: Sequence[SkippedEntry]) -> str:
    """Return how many were skipped for each reason: ``7 empty, 2 point outside the workspace``."""
    counts = Counter(_DETAIL.sub("", item.reason).removeprefix("is ") for item in skipped)
    most = counts.most_common(_REASONS)
    parts = [f"{count:,} {_for_several(reason) if count > 1 else reason}" for reason, count in most]
    others = len(skipped) - sum(count for _, count in most)
    return ", ".join([*parts, f"{others:,} for other reasons"] if others else parts)


def _for_several(reason: str) -> str:
    verb, space, rest = reason.partition(" ")
    return f"{_PLURALS.get(verb, verb)}{space}{rest}"


def records(counts: Mapping[str, int]) -> str:
    """Return the records of an export by kind: ``1 workspace, 2 saved memories``; empty if there are none."""
    return ", ".join(counted(count, *_RECORDS.get(kind, (kind, kind))) for kind, count in counts.items())


@contextmanager
def interruptible(settings: Settings, kept: str) -> Iterator[None]:
    """Let Ctrl-C end a run with exit status 130 and a word on what is ``kept``."""
    try:
        yield
    except KeyboardInterrupt:
        notify(settings, f"interrupted; {kept}")
        raise click.exceptions.Exit(130) from None
