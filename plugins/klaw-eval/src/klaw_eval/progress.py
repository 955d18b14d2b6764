"""Progress bars on stderr, only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from klaw_core.cli.kit import Settings, progress_bar, trusted
from klaw_eval.running import ProgressBars


def progress_bars(settings: Settings) -> ProgressBars:
    """Return the bars of a run; they are silent with ``--quiet`` and unless stderr is a terminal."""
    return ProgressBars(partial(progress_bar, settings), partial(_asking, settings))


@contextmanager
def _asking(settings: Settings, total: int) -> Iterator[Callable[[], None]]:
    if settings.quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("asking"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("questions", style="dim"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(file=trusted(sys.stderr)), transient=True, refresh_per_second=8) as bar:
        task = bar.add_task("asking", total=total)
        yield partial(bar.advance, task)
