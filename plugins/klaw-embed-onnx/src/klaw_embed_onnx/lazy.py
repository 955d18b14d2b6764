"""A value that is made when it is needed, or shortly before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value made at its first use, once, whichever thread comes first. A failure is tried again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: T | None = None

    def begin(self) -> None:
        """Begin to make the value in a thread; :meth:`get` waits for it, and raises what it may raise."""
        Thread(target=self._try, name="klaw-load", daemon=True).start()

    def _try(self) -> None:
        with suppress(Exception):
            self.get()

    def get(self) -> T:
        """Return the value, making it if need be."""
        made = self._made
        if made is None:
            with self._lock:
                made = self._made
                if made is None:
                    made = self._made = self._make()
        return made
