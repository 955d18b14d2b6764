"""A cache, for all agents of a process, of data from the server that never changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from functools import partial
from typing import Any, Protocol, TypeVar

from attrs import define, field

from klaw_core import ThreadLock

_MAX_BYTES = 96 << 20


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=_Sized)


@define(eq=False)
class Kept:
    """So many bytes of it: the least recently used leaves first. Safe for threads."""

    _held: OrderedDict[Hashable, Any] = field(factory=OrderedDict, init=False)
    _bytes: int = field(default=0, init=False)
    _lock: ThreadLock = field(factory=partial(ThreadLock, "a cache of the server's data"), init=False)

    def get(self, key: Hashable) -> Any:
        """Return the cached value of a key, or None."""
        with self._lock.hold():
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
            return found

    def put(self, key: Hashable, found: T) -> T:
        """Cache a value under a key, replacing the old one, and return it."""
        with self._lock.hold():
            old = self._held.pop(key, None)
            self._held[key] = found
            self._bytes += found.nbytes - (0 if old is None else old.nbytes)
            while self._bytes > _MAX_BYTES and len(self._held) > 1:
                self._bytes -= self._held.popitem(last=False)[1].nbytes
        return found
