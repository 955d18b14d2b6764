"""A lazy value is made once, by the first thread that needs it; a failure is tried again."""

from __future__ import annotations

import threading

import pytest

from klaw_core import Lazy


class Factory:
    """Fails the first ``failures`` times; notes the threads that call it."""

    def __init__(self, value: object = "made", failures: int = 0) -> None:
        self.value = value
        self.failures = failures
        self.called = threading.Event()
        self.threads: list[str] = []

    def __call__(self) -> object:
        self.threads.append(threading.current_thread().name)
        self.called.set()
        if len(self.threads) <= self.failures:
            raise OSError("not yet")
        return self.value


def test_the_value_is_created_by_the_first_get():
    factory = Factory()
    lazy = Lazy(factory)
    assert not factory.threads
    assert (lazy.get(), lazy.get()) == ("made", "made")
    assert len(factory.threads) == 1


@pytest.mark.parametrize("value", [None, "", 0, ()], ids=repr)
def test_a_false_value_is_created_once(value):
    factory = Factory(value)
    lazy = Lazy(factory)
    assert (lazy.get(), lazy.get()) == (value, value)
    assert len(factory.threads) == 1


def test_an_exception_is_not_cached():
    factory = Factory(failures=1)
    lazy = Lazy(factory)
    with pytest.raises(OSError, match="not yet"):
        lazy.get()
    assert (lazy.get(), lazy.get()) == ("made", "made")
    assert len(factory.threads) == 2


def test_concurrent_threads_wait_for_the_first():
    entered, go = threading.Event(), threading.Event()
    made: list[object] = []

    def make() -> object:
        entered.set()
        assert go.wait(300)
        made.append(object())
        return made[-1]

    lazy = Lazy(make)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(lazy.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert entered.wait(300)
    assert not found
    go.set()
    for thread in threads:
        thread.join(300)
    assert len(made) == 1
    assert found == made * 8


def test_preloading_creates_the_value_in_a_thread():
    factory = Factory()
    lazy = Lazy(factory)
    lazy.preload()
    assert factory.called.wait(300)
    assert lazy.get() == "made"
    assert factory.threads == ["klaw-load"]


def test_get_tries_again_after_a_failed_preload():
    factory = Factory(failures=1)
    lazy = Lazy(factory)
    lazy.preload()
    assert factory.called.wait(300)
    assert lazy.get() == "made"
    assert factory.threads == ["klaw-load", threading.current_thread().name]
