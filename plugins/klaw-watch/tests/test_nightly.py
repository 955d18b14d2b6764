"""Condensing at night: within its hours, once, when nobody uses the memory or the machine, and never in the way."""

from datetime import UTC, date, datetime

import pytest
from attrs import define

from klaw_core import Flag, LiveComponent, Memory, SearchEvent, SearchResults, load_config
from klaw_journals import CondensingExtension
from klaw_watch.nightly import Nightly, night_at
from klaw_watch.options import WatchOptions
from klaw_watch.state import WatchDirectory
from klaw_watch.watcher import Watcher


@define(eq=False)
class Condenser(CondensingExtension):
    """Counts its runs, and fails if told so."""

    name = "condenser"
    runs: int = 0
    error: Exception | None = None

    def condense(self, is_stopped, /):
        self.runs += 1
        if self.error is not None:
            raise self.error
        return f"run {self.runs}, stopped: {is_stopped()}"


class Night:
    """A memory with a condenser, and a clock."""

    def __init__(self, tmp_path, **options):
        self.condenser = Condenser()
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
        live = [LiveComponent("extension", "condenser", self.condenser)]
        self.memory = Memory.open(config, components=live)
        self.seconds, self.clock, self.busy, self.results = 0.0, datetime(2026, 2, 24, 1, 0, tzinfo=UTC), "", []
        self.nightly = Nightly(
            self.memory,
            WatchOptions(**options),
            Flag(),
            self.results.append,
            lambda: self.clock,
            lambda: self.seconds,
            lambda: self.busy,
        )

    def look(self, *, hour, minute=0, day=24, after=3600.0):
        """Let time pass, look, and wait for the run; return how many runs there have been."""
        self.seconds += after
        self.clock = datetime(2026, 2, day, hour, minute, tzinfo=UTC)
        self.nightly.look()
        if self.nightly._thread is not None:
            self.nightly._thread.join(300)
        return self.condenser.runs

    def close(self):
        assert self.nightly.close(60)
        self.memory.close()


@pytest.fixture
def make(tmp_path):
    made = []

    def night(**options):
        made.append(Night(tmp_path, **options))
        return made[-1]

    yield night
    for each in made:
        each.close()


def test_it_runs_once_a_night(make):
    night = make()
    assert night.look(hour=1) == 0
    assert night.look(hour=2) == 1
    assert night.look(hour=4) == 1
    assert night.look(hour=12) == 1
    assert night.look(hour=3, day=25) == 2
    assert [
        result.count(f"condenser: run {number}, stopped: False") for number, result in enumerate(night.results, 1)
    ] == [
        1,
        1,
    ]


def test_it_waits_until_nobody_uses_the_memory(make):
    night = make(idle_minutes=15)
    night.seconds = 10_000.0
    night.memory.extensions.emit(SearchEvent("x", (), SearchResults()))
    assert night.look(hour=2, after=14 * 60) == 0
    night.memory.save("the drink is tea")
    night.memory.search("tea")
    assert night.look(hour=2, minute=10, after=14 * 60) == 0
    assert night.look(hour=2, minute=30, after=16 * 60) == 1


def test_it_waits_while_the_machine_is_busy(make):
    night = make()
    night.busy = "the machine runs on battery"
    assert night.look(hour=2) == 0
    night.busy = ""
    assert night.look(hour=3) == 1


def test_it_is_off_without_hours(make):
    night = make(consolidate="")
    assert [night.look(hour=hour) for hour in range(24)] == [0] * 24


def test_an_error_is_reported_and_the_next_night_tries_again(make):
    night = make()
    night.condenser.error = OSError("no space")
    assert night.look(hour=2) == 1
    assert "condenser: a file cannot be used: OSError: no space" in night.results[0]
    night.condenser.error = None
    assert night.look(hour=2, day=25) == 2


@pytest.mark.parametrize(
    ("hours", "day", "hour", "night"),
    [
        ("02:00-05:00", 24, 2, 24),
        ("02:00-05:00", 24, 5, None),
        ("22:30-04:00", 24, 23, 24),
        ("22:30-04:00", 25, 3, 24),
        ("22:30-04:00", 25, 4, None),
        ("22:30-04:00", 25, 22, None),
        ("", 24, 2, None),
    ],
)
def test_a_night_has_one_date_also_across_midnight(hours, day, hour, night):
    found = night_at(hours, datetime(2026, 2, day, hour, tzinfo=UTC))
    assert found == (None if night is None else date(2026, 2, night))


@pytest.mark.parametrize("hours", ["2-5", "02:00", "25:00-26:00", "02:00-05:60", "night", "02:00–05:00"])
def test_other_hours_are_refused(hours):
    with pytest.raises(ValueError, match="02:00-05:00"):
        WatchOptions(consolidate=hours)


def test_a_watcher_condenses_and_says_so_in_its_state(tmp_path, monkeypatch):
    monkeypatch.setattr("klaw_watch.nightly.night_at", lambda _hours, _now: date(2026, 2, 24))
    condenser = Condenser()
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={"extensions": {"watch": {"idle_minutes": 0, "on_start": False}}},
        environment={"KLAW_EMBEDDER": "none"},
    )
    live = [LiveComponent("extension", "condenser", condenser)]
    with Memory.open(config, components=live) as memory:
        watcher = Watcher(memory, look_seconds=0.0)
        watcher.start()
        done = Flag()
        note = watcher._nightly.on_run
        watcher._nightly.why_busy = str

        def on_run(result):
            note(result)
            done.set()

        watcher._nightly.on_run = on_run
        assert done.wait(300) or watcher.state.runs
        assert watcher.stop(60)
        state = WatchDirectory.of(tmp_path / "data").read()
        assert "condenser: run 1" in state.runs["consolidate"].result
