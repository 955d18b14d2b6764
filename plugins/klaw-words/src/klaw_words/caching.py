"""A cache, for all threads, of data that never changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from klaw_core import ThreadLock


class Sized(Protocol):
    """A value that knows its size."""

    @property
    def nbytes(self) -> int:
        """Return the approximate size in bytes."""


T = TypeVar("T", bound=Sized)


class Kept:
    """Drops the least recently used values if all together have more than ``most`` bytes, but keeps at least one."""

    def __init__(self, most: int = 96 << 20) -> None:
        self._most, self._bytes = most, 0
        self._held: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = ThreadLock("a cache of words")

    def get(self, key: Hashable) -> Any:
        """Return the cached value of a key, or None."""
        return self.get_all([key])[0]

    def get_all(self, keys: Sequence[Hashable]) -> list[Any]:
        """Return the cached value of each key, or None."""
        with self._lock.hold():
            values = [self._held.get(key) for key in keys]
            for key, value in zip(keys, values, strict=True):
                if value is not None:
                    self._held.move_to_end(key)
            return values

    def put(self, key: Hashable, value: T) -> T:
        """Cache a value under a key, replacing the old one, and return it."""
        with self._lock.hold():
            old = self._held.pop(key, None)
            self._held[key] = value
            self._bytes += value.nbytes - (0 if old is None else old.nbytes)
            while self._bytes > self._most and len(self._held) > 1:
                self._bytes -= self._held.popitem(last=False)[1].nbytes
        return value

    def drop(self, keys: Iterable[Hashable]) -> None:
        """Drop the values of these keys."""
        with self._lock.hold():
            for key in keys:
                value = self._held.pop(key, None)
                self._bytes -= 0 if value is None else value.nbytes
