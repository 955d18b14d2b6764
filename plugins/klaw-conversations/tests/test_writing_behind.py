"""The thread that writes behind its caller: nobody waits forever for work that ended badly, and later work runs."""

import threading

import pytest

from klaw_conversations.writing_behind import WriteBehind

SECONDS = 30.0


def end():
    raise SystemExit(1)


def test_work_that_would_end_the_thread_is_waited_for_no_longer():
    writer = WriteBehind()
    writer.submit("a message", end)
    assert writer.flush(SECONDS)


def test_what_follows_such_work_runs():
    writer, done = WriteBehind(), threading.Event()
    writer.submit("a message", end)
    writer.submit("another message", done.set)
    assert writer.flush(SECONDS)
    assert done.is_set()


def test_a_thread_that_has_ended_is_started_again(monkeypatch):
    writer, done = WriteBehind(), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(writer, "_run", lambda: None)
        writer.submit("a message", lambda: None)
        writer._thread.join()
    assert writer.flush(SECONDS)
    writer.submit("another message", done.set)
    assert writer.flush(SECONDS)
    assert done.is_set()


def test_a_thread_that_cannot_be_started_is_tried_again(monkeypatch):
    writer, done = WriteBehind(), threading.Event()

    def fail(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            writer.submit("a message", done.set)
    writer.submit("a message", done.set)
    assert writer.flush(SECONDS)
    assert done.is_set()
