"""The progress bar of a download, on stderr and only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from klaw_core.cli.kit import Settings, trusted


@contextmanager
def bytes_progress(settings: Settings, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar for ``total`` bytes during the block; yield a function that takes the number of received bytes."""
    if settings.quiet or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(bar_width=30), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(file=trusted(sys.stderr)), transient=True, refresh_per_second=8) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)
