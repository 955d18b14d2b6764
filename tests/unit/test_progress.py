"""The bar of an index run: the rate and the time left are those of the whole stage so far."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress as Bar

from klaw_core import Progress
from klaw_core.cli import progress
from klaw_core.cli.progress import _make_bar, _Painter


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def bar():
    made = _make_bar()
    made.live.console = Console(file=io.StringIO(), width=200)
    return made


def line(bar: Bar) -> str:
    bar.live.console.print(bar.get_renderable())
    return bar.live.console.file.getvalue().splitlines()[-1]


def test_the_time_left_is_shown_after_one_call_and_decreases(bar, clock):
    painter = _Painter(bar)
    painter.show(Progress("embed", 0, 1200))
    assert "left" not in line(bar)
    clock[0] += 10
    painter.show(Progress("embed", 100, 1200))
    assert line(bar).rstrip().endswith("100 of 1,200 chunks 10 chunks/s 0:01:50 left")
    clock[0] += 20
    assert line(bar).rstrip().endswith("0:01:30 left")
    clock[0] += 10
    painter.show(Progress("embed", 800, 1200))
    assert line(bar).rstrip().endswith("800 of 1,200 chunks 20 chunks/s 0:00:20 left")
    clock[0] += 3600
    assert line(bar).rstrip().endswith("0:00:00 left")


def test_each_stage_measures_its_own_time(bar, clock):
    painter = _Painter(bar)
    painter.show(Progress("index", 0, 4000))
    clock[0] += 100
    painter.show(Progress("index", 2000, 4000, documents=3, chunks=7))
    assert line(bar).rstrip().endswith("3 notes, 7 chunks 20 B/s 0:01:40 left")
    painter.show(Progress("embed", 0, 10))
    clock[0] += 1
    painter.show(Progress("embed", 5, 10))
    assert line(bar).rstrip().endswith("5 of 10 chunks 5 chunks/s 0:00:01 left")


def test_no_bar_is_shown_without_work(bar):
    painter = _Painter(bar)
    painter.show(Progress("embed", 0, 0))
    assert bar.task_ids == []


def test_vectors_computed_in_advance_count_as_chunks(bar, clock):
    painter = _Painter(bar)
    painter.show(Progress("ahead", 0, 4000))
    clock[0] += 100
    painter.show(Progress("ahead", 2000, 4000, documents=3, chunks=50))
    assert line(bar).lstrip().startswith("embedding")
    assert line(bar).rstrip().endswith("50 chunks 0.5 chunks/s 0:01:40 left")
