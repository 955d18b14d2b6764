"""A warm helper that does not answer: who examines it, and when it is ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager, suppress

import pytest
from attrs import evolve
from warm_helpers import PATIENCE, QUESTION, all_ended, enable, left_behind, pids_of, run_by_helper, searches_of, until

from klaw_core import StoreLockedError
from klaw_serve.warm.state import HelperFiles, HelperState

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@contextmanager
def _stopped(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_no_search_ends_a_helper_that_is_late(home, files):
    """Neither process answers now, so the searches open the memory themselves. Later both answer, and print nothing.

    Whoever reads the output of such a search sees its end: the streams are not in the queue of a process that hangs.
    """
    enable(home)
    with left_behind(home, files) as (state, first):
        pids = pids_of(files)
        announced = home.data / "server.json"
        hidden = announced.rename(home.data / "hidden.json")  # otherwise a search waits for the server, for 20 seconds
        with _stopped(pids):
            for _ in range(3):
                result = home.run(*QUESTION)
                assert (result.returncode, result.stdout, result.stderr) == (0, first.stdout, "")
        hidden.rename(announced)
        before = searches_of(files)
        assert run_by_helper(home, *QUESTION).stdout == first.stdout
        assert searches_of(files) == before + 1
        assert files.running() == state


@pytest.fixture
def tries(monkeypatch):
    """Make tries short, unlike any other pause, and return the list of all pauses."""
    from klaw_serve.warm import state

    pauses = []
    monkeypatch.setattr(state, "_TRY_SECONDS", 0.013)
    monkeypatch.setattr(state, "_FIRST_TRY_SECONDS", 0.01)
    real = time.sleep
    monkeypatch.setattr(state.time, "sleep", lambda seconds: pauses.append(seconds) or real(seconds))
    return pauses


def _aged(files, seconds=3600.0):
    """Let a helper say that it has been running for a while; return its state."""
    state = evolve(files.running(), since=time.time() - seconds)
    files.write(state)
    return state


@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 2), slice(0, 2)], ids=["helper", "server", "both"])
def test_a_helper_that_answers_no_try_is_ended(home, files, tries, which, monkeypatch):
    """It is told to end and, because a stopped process is not, killed."""
    from klaw_serve.warm import state as module

    monkeypatch.setattr(module, "_STOP_SECONDS", 0.3)
    enable(home)
    with left_behind(home, files):
        _aged(files)
        pids = pids_of(files)
        with _stopped(pids[which]):
            files.end_a_dead_one()
            # a server that hangs is ended with its helper, by whatever process sees that it outlives the helper
            until(lambda: all_ended(pids[which]), what="what did not answer has ended")
        assert tries.count(module._TRY_SECONDS) == module._TRIES


@pytest.mark.usefixtures("tries")
def test_a_helper_that_answers_one_of_the_tries_is_kept(home, files, monkeypatch):
    from klaw_serve.warm import state as module

    enable(home)
    with left_behind(home, files):
        state = _aged(files)
        answers = iter([False, False, False, True])
        monkeypatch.setattr(HelperFiles, "answers", lambda *_: next(answers))
        monkeypatch.setattr(module.os, "kill", lambda *_: pytest.fail("a process was ended"))
        files.end_a_dead_one()
        assert next(answers, None) is None
        assert files.running() == state
        monkeypatch.undo()


def test_a_young_helper_is_not_examined(home, files, monkeypatch):
    enable(home)
    with left_behind(home, files):
        _aged(files, 1.0)
        monkeypatch.setattr(HelperFiles, "answers", lambda *_: pytest.fail("it was asked"))
        assert not files.seems_dead(files.running())
        files.end_a_dead_one()
        monkeypatch.undo()
        assert files.answers(PATIENCE)


def test_one_process_examines_a_helper(home, files, monkeypatch):
    enable(home)
    with left_behind(home, files):
        state = _aged(files)
        monkeypatch.setattr(HelperFiles, "answers", lambda *_: False)
        assert files.seems_dead(state)
        with files._examination():
            assert not files.seems_dead(state)
            with pytest.raises(StoreLockedError, match="another process examines"):
                files.end_a_dead_one()
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("running", "configuration", "dead", "starts"),
    [
        ("nobody", "same", False, True),
        ("starting", "same", False, False),
        ("somebody", "same", False, False),
        ("somebody", "same", True, True),
        ("somebody", "another", True, False),
    ],
)
def test_a_search_starts_a_helper_if_none_runs_or_it_seems_dead(  # noqa: PLR0917  # a table
    files, monkeypatch, running, configuration, dead, starts
):
    """It ends none: the new one does, once it knows more."""
    from klaw_core import SearchEvent
    from klaw_serve.warm import extension
    from klaw_serve.warm.options import WarmOptions

    class Found:
        class config:  # noqa: N801  # an attribute
            fingerprint = "same"

    state = HelperState(os.getpid(), time.time(), 60.0, configuration) if running == "somebody" else None
    started = []
    monkeypatch.setattr(extension, "_settings_of_search", lambda: Found)
    monkeypatch.setattr(extension, "_start", started.append)
    monkeypatch.setattr(HelperFiles, "running", lambda _: state)
    monkeypatch.setattr(HelperFiles, "is_starting", lambda _: running == "starting")
    monkeypatch.setattr(HelperFiles, "seems_dead", lambda *_: dead)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process was ended"))
    event = SearchEvent.__new__(SearchEvent)
    extension.WarmExtension(files.data_dir, WarmOptions(enabled=True)).on(event)
    assert started == ([Found] if starts else [])
