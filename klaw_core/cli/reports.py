"""What an index run did: one line for people, the skipped files below it, or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import click

from klaw_core.cli.output import Part, counted, data, duration, notices, notify, print_json
from klaw_core.cli.settings import Settings
from klaw_core.values import IndexReport, Skipped

_NAMED = 3  # skipped files named for each reason, without --verbose


def report_run(settings: Settings, name: str, report: IndexReport) -> None:
    """Print a run's summary on stdout and what it skipped on stderr."""
    if settings.json:
        print_json(as_dict(name, report))
        return
    if settings.quiet:
        return
    data().line(Part(f"{name}: ", "bold"), summary(report))
    _show_skipped(report.skipped, verbose=settings.verbose)


def as_dict(name: str, report: IndexReport) -> dict[str, Any]:
    """Return a run's report for JSON."""
    return {"workspace": name, **attrs.asdict(report)}


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
    parts = [", ".join(documents) or "no notes", ", ".join(chunks)]
    return f"{'; '.join(filter(None, parts))} in {duration(report.seconds)}"


def _show_skipped(skipped: tuple[Skipped, ...], *, verbose: bool) -> None:
    reasons: dict[str, list[str]] = {}
    for item in skipped:
        reasons.setdefault(item.reason, []).append(item.path)
    for reason, paths in reasons.items():
        named = paths if verbose else paths[:_NAMED]
        more = f" and {len(paths) - len(named):,} more (-v names them)" if len(paths) > len(named) else ""
        notices().line(Part("skipped ", "yellow"), f"{', '.join(named)}{more}: {reason}")


@contextmanager
def interruptible(settings: Settings, kept: str) -> Iterator[None]:
    """Let Ctrl-C end a run with exit status 130 and a word on what is ``kept``."""
    try:
        yield
    except KeyboardInterrupt:
        notify(settings, f"interrupted; {kept}")
        raise click.exceptions.Exit(130) from None
