"""The loop of a watcher with a clock of the test's own: what it requests, and why."""

import threading
from types import SimpleNamespace

import pytest

from klaw_watch.loop import Loop
from klaw_watch.names import INTERVAL, RESUME, START, WATCH
from klaw_watch.options import WatchOptions


@pytest.fixture
def reasons(monkeypatch, tmp_path):
    """Return a function that runs iterations at the given seconds and returns the reasons of the requested runs."""

    def run(*seconds, changes=(), slept=None, **sync):
        settings = {"conversation_messages": 0, "conversation_bytes": 0, "interval_minutes": 0, "on_start": True}
        options = WatchOptions(**{**settings, **sync})
        config = SimpleNamespace(data_dir=tmp_path)
        memory = SimpleNamespace(config=config, sources=list, watch_paths=dict)
        now, stop, asked = [0.0], threading.Event(), []
        waiting, told = list(seconds), list(changes)

        class Events:
            def watch(self, _paths):
                return []

            def wait(self):
                now[0] = waiting.pop(0)
                if not waiting:
                    stop.set()
                return told.pop(0) if told else []

        class Indexer:
            def request(self, _origin=None, *, reason):
                asked.append(reason)

        monkeypatch.setattr("klaw_watch.loop.time.monotonic", lambda: now[0])
        get_slept = slept or (lambda _now: 0.0)
        parts = (options, Indexer(), Events(), stop)
        Loop(memory, *parts, lambda: get_slept(now[0]), 1.0, lambda _count, _problem: None).run()
        return asked

    return run


def test_nothing_is_requested_while_nothing_happens(reasons):
    assert reasons(0.5, 1.0, 1.5, 2.0) == [START]
    assert reasons(0.5, 1.0, 1.5, 2.0, on_start=False) == []


def test_a_process_that_was_stopped_looks_again(reasons):
    """The kernel's queue of changes may have overflowed meanwhile without a report."""
    assert reasons(0.5, 3.4, 3.9, on_start=False) == []
    assert reasons(0.5, 3.6, 4.1, on_start=False) == [RESUME]


def test_lost_changes_cause_a_run(reasons):
    assert reasons(0.5, 1.0, changes=[None], on_start=False) == [WATCH]


def test_a_sleep_of_the_machine_causes_a_run(reasons):
    assert reasons(0.5, 1.5, 2.5, slept=lambda now: 6.0 * (now > 1), on_start=False) == [RESUME]
    assert reasons(0.5, 1.5, 2.5, slept=lambda now: 4.0 * (now > 1), on_start=False) == []


def test_an_interval_causes_a_run_each_time_it_has_passed(reasons):
    seconds = [number * 2.0 for number in range(1, 70)]
    assert reasons(*seconds, interval_minutes=1, on_start=False) == [INTERVAL] * 2
