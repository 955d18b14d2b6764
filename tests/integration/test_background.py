"""The index that keeps up by itself: never blocking, never raising."""

import logging
import threading

import pytest

from klaw_core import IndexReport
from klaw_core.background import BackgroundIndexer


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def test_it_runs_at_the_start_and_after_a_request(home, caplog):
    home.write("a.md", "the harbour at night")
    with home.open() as memory, caplog.at_level(logging.INFO, "klaw"):
        memory.index(home.notes)
        home.write("b.md", "a lantern on the pier")
        with BackgroundIndexer(memory, debounce_seconds=0.01) as indexer:
            assert indexer.wait(20)
            assert memory.search("lantern", mode="fts")
            home.write("c.md", "a buoy")
            indexer.request()
            assert indexer.wait(20)
            assert memory.search("buoy", mode="fts")
    assert caplog.messages.count("memory index ready") == 2


def test_requests_that_come_together_are_one_run(home, monkeypatch):
    with home.open() as memory:
        runs = []
        monkeypatch.setattr(memory, "index", lambda: runs.append("run") or IndexReport())
        with BackgroundIndexer(memory, debounce_seconds=0.2) as indexer:
            assert indexer.wait(20)
            for _ in range(50):
                indexer.request()
            assert indexer.wait(20)
        assert len(runs) == 2


def test_an_error_is_logged_and_the_next_request_tries_again(home, caplog):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        home.write("b.md", "a lantern on the pier")
        home.recorder.fail_at = 1
        with caplog.at_level(logging.WARNING, "klaw"), BackgroundIndexer(memory, debounce_seconds=0.01) as indexer:
            assert indexer.wait(20)
            assert any("told to fail" in message for message in caplog.messages)
            home.recorder.fail_at = None
            indexer.request()
            assert indexer.wait(20)
        assert memory.search("lantern", mode="fts")


def test_a_request_never_waits_and_closing_waits_for_the_run(home, monkeypatch):
    with home.open() as memory:
        entered, leave = threading.Event(), threading.Event()

        def index(_memory):
            entered.set()
            leave.wait(20)
            return IndexReport()

        monkeypatch.setattr(type(memory), "index", index)
        indexer = BackgroundIndexer(memory, debounce_seconds=0.01)
        assert entered.wait(20)
        indexer.request()  # returns although a run is under way
        assert not indexer.wait(0.05)
        leave.set()
        indexer.close()
        indexer.close()
        assert not indexer._thread.is_alive()
