"""The progress bar of index runs: on stderr, only where somebody looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from klaw_core.cli.output import counted, size
from klaw_core.cli.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import Task
    from rich.text import Text

    from klaw_core.values import Progress


@contextmanager
def progress_bar(settings: Settings) -> Iterator[Callable[[Progress], None]]:
    """Show a bar while the block runs; yield what takes its progress. Silent unless stderr is a terminal."""
    if settings.quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    with _make_bar() as bar:
        yield _Painter(bar).show


class _Painter:
    """Turns the values of a run into one bar, begun anew for each stage and each source."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._stage: tuple[str, int] | None = None
        self._done = 0

    def show(self, progress: Progress) -> None:
        """Paint one value."""
        if progress.total <= 0:
            return
        stage = (progress.stage, progress.total)
        if stage != self._stage or progress.done < self._done:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            label = "reading notes" if progress.stage == "index" else "embedding"
            unit = "chunks" if progress.stage == "embed" else "bytes"
            self._bar.add_task(label, total=progress.total, counts="", unit=unit)
            self._stage = stage
        self._done = progress.done
        self._bar.update(self._bar.task_ids[0], completed=progress.done, counts=_counts(progress))


def _counts(progress: Progress) -> str:
    if progress.stage != "embed":
        return f"{counted(progress.documents, 'note')}, {counted(progress.chunks, 'chunk')}"
    return f"{progress.done:,} of {counted(progress.total, 'chunk')}"


def _make_bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    class Rate(ProgressColumn):
        """Bytes or chunks a second."""

        def render(self, task: Task) -> Text:
            from rich.text import Text

            speed = task.speed or 0.0
            amount = f"{size(int(speed))}/s" if task.fields["unit"] == "bytes" else f"{speed:.0f} chunks/s"
            return Text(amount if speed else "", "dim")

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TextColumn("{task.fields[counts]}", style="dim"),
        Rate(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=8,
    )
