"""A value that is created at its first use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

from klaw_core.holds import ThreadLock

T = TypeVar("T")


class Lazy(Generic[T]):
    """Calls ``factory`` at the first :meth:`get` and then always returns the same value. Safe to use from threads.

    An exception is not stored: the next call tries again.
    """

    def __init__(self, factory: Callable[[], T]) -> None:
        self._factory = factory
        self._made: tuple[T] | tuple[()] = ()
        self._lock = ThreadLock("a value that is being made")

    def get(self) -> T:
        """Return the value, which the first call creates. Raise what the factory raises."""
        made = self._made
        if not made:
            with self._lock.hold():
                made = self._made = self._made or (self._factory(),)
        return made[0]

    def preload(self) -> None:
        """Start to create the value in a thread; :meth:`get` waits for it, and tries again if that failed."""
        Thread(target=self._try, name="klaw-load", daemon=True).start()

    def _try(self) -> None:
        with suppress(Exception):
            self.get()
