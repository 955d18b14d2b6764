"""The index that keeps up by itself: never blocking, never raising."""

import logging
import queue
import threading
import time

import pytest

from klaw_core import IndexReport, StoreLockedError
from klaw_core.embedding import run as embedding
from klaw_core.files.atomic import locked
from klaw_core.indexing.collection import BATCH, Collection
from klaw_watch import BackgroundIndexer, background


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def _lacking(memory):
    return memory._assembly.collection("memory").lacking()


def _wait_for_vectors(memory):
    while _lacking(memory):
        threading.Event().wait(0.01)


def test_runs_start_at_the_beginning_and_after_a_request(home, caplog):
    home.write("a.md", "the harbour at night")
    with home.open() as memory, caplog.at_level(logging.INFO, "klaw"):
        memory.index(home.notes)
        home.write("b.md", "a lantern on the pier")
        with BackgroundIndexer(memory, debounce_seconds=0.01) as indexer:
            assert indexer.wait(300)
            assert memory.search("lantern", mode="fts")
            home.write("c.md", "a buoy")
            indexer.request()
            assert indexer.wait(300)
            assert memory.search("buoy", mode="fts")
    assert caplog.messages.count("memory index ready") == 2


def test_a_wait_after_closing_returns(home):
    with home.open() as memory:
        with BackgroundIndexer(memory) as indexer:
            pass
        indexer.request()
        assert not indexer.wait()


def test_requests_in_quick_succession_cause_one_run(home, monkeypatch):
    with home.open() as memory:
        runs = []
        monkeypatch.setattr(memory, "index", lambda **_: runs.append("run") or IndexReport())
        with BackgroundIndexer(memory, debounce_seconds=0.2) as indexer:
            assert indexer.wait(300)
            for _ in range(50):
                indexer.request()
            assert indexer.wait(300)
        assert len(runs) == 2


def test_an_error_is_logged_and_the_next_request_tries_again(home, caplog):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        home.write("b.md", "a lantern on the pier")
        home.recorder.fail_at = 1
        with caplog.at_level(logging.WARNING, "klaw"), BackgroundIndexer(memory, debounce_seconds=0.01) as indexer:
            assert indexer.wait(300)
            assert any("told to fail" in message for message in caplog.messages)
            home.recorder.fail_at = None
            indexer.request()
            assert indexer.wait(300)
        assert memory.search("lantern", mode="fts")


def test_a_request_never_waits_and_closing_waits_for_the_run(home, monkeypatch):
    with home.open() as memory:
        entered, leave = threading.Event(), threading.Event()

        def index(_memory, **_):
            entered.set()
            leave.wait(300)
            return IndexReport()

        monkeypatch.setattr(type(memory), "index", index)
        indexer = BackgroundIndexer(memory, debounce_seconds=0.01)
        assert entered.wait(300)
        indexer.request()  # returns although a run is under way
        assert not indexer.wait(0.05)
        leave.set()
        indexer.close()
        indexer.close()
        assert not indexer._thread.is_alive()


@pytest.mark.promise("D33")
def test_words_are_written_while_another_process_embeds_and_vectors_follow(home, caplog, monkeypatch):
    monkeypatch.setattr(background, "_RETRY_SECONDS", 0.05)
    home.write("a.md", "the harbour at night")
    with home.open() as memory, caplog.at_level(logging.INFO, "klaw"):
        memory.index(home.notes)
        home.write("b.md", "a lantern on the pier")
        with locked(memory.config.data_dir / "embedding.lock"):
            with BackgroundIndexer(memory, debounce_seconds=0.01) as indexer:
                assert indexer.wait(300)  # not for the lock
                assert memory.search("lantern", mode="fts")
                assert _lacking(memory) == 1
                home.write("c.md", "a buoy")
                indexer.request()
                assert indexer.wait(300)
                assert memory.search("buoy", mode="fts")
            assert any("another process is embedding" in message for message in caplog.messages)
        with BackgroundIndexer(memory, debounce_seconds=0.01):
            _wait_for_vectors(memory)


def test_postponed_chunks_are_embedded_without_a_request(home, monkeypatch):
    monkeypatch.setattr(background, "_RETRY_SECONDS", 0.05)
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes, embed=False)
        lock = locked(memory.config.data_dir / "embedding.lock")
        lock.__enter__()
        with BackgroundIndexer(memory) as indexer:
            assert indexer.wait(300)
            assert _lacking(memory) == 1
            lock.__exit__(None, None, None)
            _wait_for_vectors(memory)


def test_embedding_pauses_for_words_and_ends_at_closing(home, monkeypatch):
    for number in range(200):
        home.write(f"{number}.md", f"buoy {number}")
    with home.open() as memory:
        memory.index(home.notes, embed=False)
        asked, answers = threading.Semaphore(0), threading.Semaphore(0)
        embed = memory._assembly.embedder.embed_documents

        def slow(texts):
            if texts == [embedding.PROBE]:
                return embed(texts)
            asked.release()
            assert answers.acquire(timeout=300)
            return embed(texts)

        monkeypatch.setattr(memory._assembly.embedder, "embed_documents", slow)
        monkeypatch.setattr(embedding, "SECONDS_PER_COMMIT", 0.0)
        with BackgroundIndexer(memory, debounce_seconds=0.01) as indexer:
            assert asked.acquire(timeout=300)
            home.write("late.md", "a lantern on the pier")
            indexer.request()
            answers.release()
            assert asked.acquire(timeout=300)  # of the next run, which has written its words
            assert memory.search("lantern", mode="fts")
            threading.Timer(0.1, answers.release).start()
        assert _lacking(memory)  # most of them were left for another run


def test_closing_interrupts_writing_words_and_the_next_run_continues(home, monkeypatch, caplog):
    monkeypatch.setattr(background, "_CLOSING_SECONDS", 0.0)
    files = BATCH + 10  # of a chunk each: two transactions
    with home.open() as memory, caplog.at_level(logging.INFO, "klaw"):
        memory.index(home.notes)
        for number in range(files):
            home.write(f"{number:03}.md", f"buoy {number}")
        entered, leave = threading.Event(), threading.Event()
        replace = Collection.replace

        def slow(self, *arguments, **options):
            entered.set()
            assert leave.wait(300)
            return replace(self, *arguments, **options)

        monkeypatch.setattr(Collection, "replace", slow)
        indexer = BackgroundIndexer(memory)
        assert entered.wait(300)
        assert not indexer.close(0.01)
        leave.set()
        assert indexer.close(20)
        assert "memory index not complete: the next run writes the rest" in caplog.messages
        assert len(memory.documents(limit=files)) == BATCH
        assert memory.index().added == files - BATCH


def test_single_files_and_sources_can_be_requested_and_are_reported(home):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        runs = []
        with BackgroundIndexer(memory, debounce_seconds=0.01, at_start=False, on_run=runs.append) as indexer:
            assert indexer.wait(300)
            assert runs == []
            home.write("b.md", "a lantern on the pier")
            home.write("c.md", "a buoy")
            indexer.request(paths=[home.notes / "b.md"], reason="watch")
            assert indexer.wait(300)
            assert (runs[-1].reasons, runs[-1].report.added, runs[-1].report.unchanged) == (("watch",), 1, 0)
            indexer.request(home.notes.name, reason="interval")
            assert indexer.wait(300)
            assert (runs[-1].reasons, runs[-1].report.added, runs[-1].report.unchanged) == (("interval",), 1, 2)
            indexer.request(force=True, reason="forced")
            assert indexer.wait(300)
            assert runs[-1].report.changed == 3


def test_a_file_of_a_removed_source_does_not_affect_the_others(home, tmp_path):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        with BackgroundIndexer(memory, debounce_seconds=0.01, at_start=False) as indexer:
            home.write("b.md", "a lantern on the pier")
            indexer.request(paths=[tmp_path / "elsewhere.md", home.notes / "b.md"])
            assert indexer.wait(300)
            assert memory.search("lantern", mode="fts")


def test_a_run_that_found_the_store_locked_is_repeated(home, monkeypatch):
    monkeypatch.setattr(background, "_RETRY_SECONDS", 0.05)
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        index, locked_once = type(memory).index, threading.Event()

        def refuse_once(self, *arguments, **options):
            if not locked_once.is_set():
                locked_once.set()
                raise StoreLockedError("the database is locked")
            return index(self, *arguments, **options)

        monkeypatch.setattr(type(memory), "index", refuse_once)
        runs = queue.Queue()
        with BackgroundIndexer(memory, debounce_seconds=0.01, at_start=False, on_run=runs.put) as indexer:
            home.write("b.md", "a lantern on the pier")
            indexer.request(paths=[home.notes / "b.md"])
            assert isinstance(runs.get(timeout=300).error, StoreLockedError)
            assert runs.get(timeout=300).report.added == 1


def test_endless_requests_do_not_postpone_runs_forever(home):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        runs = queue.Queue()
        with BackgroundIndexer(memory, debounce_seconds=0.05, at_start=False, on_run=runs.put) as indexer:
            for _ in range(20_000):
                indexer.request(home.notes.name)
                if not runs.empty():
                    break
                time.sleep(0.001)
            assert runs.get_nowait()
