"""The progress bar of index runs, on stderr, only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from klaw_core.cli.notices import notify
from klaw_core.cli.output import counted, size
from klaw_core.cli.settings import Settings
from klaw_core.cli.streams import trusted
from klaw_core.values.runs import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import Task
    from rich.text import Text


_WAITING = "waiting for another process that is embedding"
_NOTHING = Progress("", 0, 0)


@contextmanager
def progress_bar(settings: Settings) -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar while the block runs; yield the callback for its progress.

    If stderr is not a terminal, only a notice is printed if the run has to wait for another process.
    """
    if settings.quiet or not sys.stderr.isatty():
        yield partial(_note_waiting, settings)
        return
    with _make_bar() as bar:
        yield _Painter(bar).show


def _note_waiting(settings: Settings, progress: Progress) -> None:
    if progress.stage == "wait":
        notify(settings, f"{_WAITING} (Ctrl-C is safe: new text can already be found by words)")


class _Painter:
    """Shows the progress of a run as one bar, which starts again for each stage and each source.

    The rate and the time left are averages since the start of the stage. rich's own columns use the last few updates,
    which vary too much: each update is a call of the embedder, with long or with short texts.
    """

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._stage: tuple[str, int] | None = None
        self._done = 0
        self._began = 0.0
        self._first = _NOTHING

    def show(self, progress: Progress) -> None:
        """Show one progress value."""
        if progress.stage == "wait":
            self._begin(_WAITING, None)
            return
        if progress.total <= 0:
            return
        stage = (progress.stage, progress.total)
        if stage != self._stage or progress.done < self._done:
            self._begin("reading notes" if progress.stage == "index" else "embedding", progress.total)
            self._first = progress
            self._stage = stage
            self._began = time.monotonic()
        self._done = progress.done
        rate, ends = "", None
        taken = time.monotonic() - self._began
        if progress.done > self._first.done and taken:
            # Measured from the first value of the stage: the cached chunks in it took no time.
            done, chunks = progress.done - self._first.done, progress.chunks - self._first.chunks
            rate = _rate(progress, (chunks if progress.stage == "ahead" else done) / taken)
            ends = self._began + taken * (progress.total - self._first.done) / done if done else None
        self._bar.update(self._bar.task_ids[0], completed=progress.done, counts=_counts(progress), rate=rate, ends=ends)

    def _begin(self, label: str, total: int | None) -> None:
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._bar.add_task(label, total=total, counts="", rate="", ends=None)


def _counts(progress: Progress) -> str:
    if progress.stage == "ahead":
        return counted(progress.chunks, "chunk")
    if progress.stage != "embed":
        return f"{counted(progress.documents, 'note')}, {counted(progress.chunks, 'chunk')}"
    return f"{progress.done:,} of {counted(progress.total, 'chunk')}"


def _rate(progress: Progress, per_second: float) -> str:
    return f"{per_second:,.3g} chunks/s" if progress.stage in {"embed", "ahead"} else f"{size(int(per_second))}/s"


def _make_bar() -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        """Counts down to the estimated end of the stage."""

        def render(self, task: Task) -> Text:
            ends: float | None = task.fields["ends"]
            if ends is None:
                return Text("")
            left = timedelta(seconds=max(0, round(ends - time.monotonic())))
            return Text(f"{left} left", "progress.remaining")

    return Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TextColumn("{task.fields[counts]}", style="dim"),
        TextColumn("{task.fields[rate]}", style="dim"),
        TimeLeft(),
        console=Console(file=trusted(sys.stderr)),
        transient=True,
        refresh_per_second=8,
    )
