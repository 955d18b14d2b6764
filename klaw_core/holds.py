"""What a thread holds during a block: a lock, an open file, a transaction; and its return, whatever interrupts it.

The handler of a signal may raise an exception (Ctrl-C raises KeyboardInterrupt) after any call, thus also between
acquiring a lock and entering the ``try`` that releases it, and within the ``finally`` itself. A generator behind
``contextmanager`` is not resumed then, and lives as long as somebody keeps the exception. So a hold is noted for its
thread before anything is acquired, and ends in one of two places: at the end of its block, or, if an exception has
prevented that, at the end of the public call around it (:func:`operation`). A single exception prevents only one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from _thread import start_new_thread
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, wraps
from queue import Empty, SimpleQueue
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

from klaw_core.errors import ESCAPING, StoreLockedError, of_system

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that a thread waits for a lock of another thread of this process.
LOCK_SECONDS = 600.0

# Seconds after which a waiting thread looks at its condition without being notified, because whoever should have
# notified it was interrupted.
_LOOK_SECONDS = 1.0
# The flags of the code of generators, coroutines and asynchronous generators (those of `inspect`, which loads much).
_RUNS_IN_PIECES = 0x20 | 0x80 | 0x200
_CALLED_BY_PROTOCOL = ("__enter__", "__exit__")
# The holds of each thread, oldest first, by its identifier. Only the thread itself changes them.
_ledgers: dict[int, list[Hold[Any]]] = {}
# The holds of no thread.
_kept = _ledgers.setdefault(0, [])


def _ledger() -> list[Hold[Any]]:
    return _ledgers.setdefault(threading.get_ident(), [])


class Hold(ABC, Generic[T]):
    """Something that is held during a block, as a context manager. An object is used for one block."""

    __slots__ = ("noted_in",)

    @abstractmethod
    def take(self) -> T:
        """Acquire it, and return the block's value.

        An exception may be raised after every call in here. So what was acquired must be where :meth:`give_back` finds
        it when the call that acquires it returns.
        """

    @abstractmethod
    def give_back(self) -> None:
        """Release what was acquired, if anything was. It may be called again, after an exception within it."""

    def leave(self) -> None:
        """Let go of a copy that a forked child has inherited; the parent still holds the original."""

    def __enter__(self) -> T:
        self.noted_in = noted = _ledger()
        noted.append(self)
        try:
            return self.take()
        except BaseException:
            self.end()
            raise

    def __exit__(self, *_error: object) -> None:
        if self.noted_in is not _kept:
            self.end()

    def keep(self) -> None:
        """Hold it beyond the block and the operation, until :meth:`end`, which any thread may call."""
        _kept.append(self)
        before, self.noted_in = self.noted_in, _kept
        before.remove(self)

    def end(self) -> None:
        """Give it back, unless that was done before: a generator that was left behind ends at any later time."""
        if self in self.noted_in:
            try:
                self.give_back()
            except BaseException:
                self.give_back()
                raise
            finally:
                with suppress(ValueError):
                    self.noted_in.remove(self)


class ThreadLock:
    """A lock between the threads of this process. A thread that holds it may enter it again.

    ``what`` is protected by it; the error of a wait that takes too long says so. A forked child gets a fresh lock,
    because a thread of the parent may have held it.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.lock = threading.RLock()
        self.owner = 0
        _locks.add(self)

    def hold(self, on_wait: Callable[[], None] | None = None) -> Hold[None]:
        """Return the lock as the context manager of a block.

        If another thread holds it, ``on_wait`` is called once before waiting. Raise StoreLockedError after
        ``LOCK_SECONDS``.
        """
        return _LockHold(self, on_wait)

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self.owner == threading.get_ident()


class _LockHold(Hold[None]):
    """The outermost block in which a thread holds a lock; an inner one holds nothing.

    It is entered and left so often that it does what ``Hold`` does in fewer calls.
    """

    __slots__ = ("_is_acquired", "_of", "_on_wait")

    def __init__(self, of: ThreadLock, on_wait: Callable[[], None] | None) -> None:
        self._of = of
        self._on_wait = on_wait
        self._is_acquired = False

    def __enter__(self) -> None:
        thread = threading.get_ident()
        if self._of.owner == thread:
            self.noted_in = []
            return
        self.noted_in = noted = _ledgers.get(thread, _kept)
        if noted is _kept:
            self.noted_in = noted = _ledger()
        noted.append(self)
        try:
            self.take()
        except BaseException:
            self.end()
            raise

    def __exit__(self, *_error: object) -> None:
        if self.noted_in:
            self.end()

    def take(self) -> None:
        of = self._of
        if self._on_wait is not None and not of.lock.acquire(blocking=False):
            self._on_wait()
        # If the first call has acquired it, the second does so again.
        if not of.lock.acquire(True, LOCK_SECONDS):  # faster than by name
            names = {thread.ident: f"the thread {thread.name!r}" for thread in threading.enumerate()}
            who = names.get(of.owner, "another thread")
            raise StoreLockedError(
                f"{of.what} is in use by {who} for more than {LOCK_SECONDS:g} seconds",
                hint="wait for it to finish, then try again",
            )
        self._is_acquired = self._on_wait is None  # once
        of.owner = threading.get_ident()

    def give_back(self) -> None:
        of = self._of
        if of.owner == threading.get_ident():
            of.owner = 0
        try:
            of.lock.release()
            while not self._is_acquired:  # an exception may have come before it was noted how often it was acquired
                of.lock.release()
        except RuntimeError:  # this thread does not hold it (any more)
            pass


class Closing(Hold[T]):
    """The result of ``make``, which must have a method ``close``; it is closed at the end of the block."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []

    def take(self) -> T:
        """Make it."""
        self._made.append(self._make())
        return self._made[0]

    def give_back(self) -> None:
        """Close it, unless that was done."""
        for made in self._made:
            self.close(made)
        self._made.clear()

    def close(self, made: T) -> None:
        """Close it."""
        made.close()  # type: ignore[attr-defined]  # it has this method


class Notifier:
    """Wakes threads that wait for a condition.

    It has no lock, which an exception in ``threading.Condition`` or ``threading.Event`` could leave locked: every
    waiting thread has a queue of its own, whose methods are single calls.
    """

    def __init__(self) -> None:
        self._waiting: list[SimpleQueue[None]] = []

    def notify(self) -> None:
        """Let the waiting threads look at their conditions, which may now hold."""
        for waiting in self._waiting[:]:
            waiting.put(None)

    def wait_for(self, holds: Callable[[], bool], timeout_seconds: float | None = None) -> bool:
        """Wait until a condition holds; return whether it did before the timeout."""
        own: SimpleQueue[None] = SimpleQueue()
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._waiting.append(own)
        try:
            while not holds():
                left = _LOOK_SECONDS if deadline is None else min(deadline - time.monotonic(), _LOOK_SECONDS)
                if left <= 0:
                    return False
                with suppress(Empty):
                    own.get(timeout=left)
            return True
        finally:
            self._waiting.remove(own)


class Flag(Notifier):
    """Something that becomes true, which threads may wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._is_set = False

    def is_set(self) -> bool:
        """Return whether it is true."""
        return self._is_set

    def set(self) -> None:
        """Make it true."""
        self._is_set = True
        self.notify()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until it is true; return whether it was before the timeout."""
        return self.wait_for(self.is_set, timeout_seconds)


def shielded(work: Callable[[], T]) -> T:
    """Return what ``work`` returns. It runs to its end, in a thread that no signal reaches.

    For code of others that an exception of a signal would leave in disorder. If one comes, this raises it at once.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    done: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            done.put((work(),))
        except BaseException as error:  # noqa: BLE001  # raised below
            done.put(error)

    start_new_thread(run, ())
    found = done.get()
    if isinstance(found, BaseException):
        raise found
    return found[0]


def held_elsewhere(kind: type[Hold[Any]]) -> bool:
    """Return whether another thread has a hold of this class."""
    me = threading.get_ident()
    return any(type(hold) is kind for thread, ledger in list(_ledgers.items()) if thread != me for hold in ledger[:])


def operation(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function end its holds when it returns or raises, also those whose end an exception has prevented.

    Errors of the system and of imports become a KlawError, except a closed pipe, which is the caller's own stream.
    """

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        ledger = _ledger()
        before = tuple(ledger)
        try:
            return function(*arguments, **options)
        except BrokenPipeError:
            raise
        except ESCAPING as error:
            raise of_system(error) from error
        finally:
            if len(ledger) > len(before):
                _end_all([hold for hold in reversed(ledger) if hold not in before])

    return call


def _end_all(holds: list[Hold[Any]]) -> None:
    raised: BaseException | None = None
    for hold in holds:
        try:
            hold.end()
        except BaseException as error:  # noqa: BLE001  # raised when the others have ended too
            raised = error
    if raised is not None:
        raise raised


def operations(kind: type[T]) -> type[T]:
    """Make every public method and property that a class defines an :func:`operation`.

    Coroutines and generators are left as they are: they run in pieces, between which others run.
    """
    for name, value in list(vars(kind).items()):
        if not name.startswith("_") or name in _CALLED_BY_PROTOCOL:
            setattr(kind, name, _as_operation(value))
    return kind


def _as_operation(value: Any) -> Any:
    if isinstance(value, classmethod | staticmethod):
        return type(value)(_as_operation(value.__func__))
    if isinstance(value, property):
        return property(_as_operation(value.fget), value.fset, value.fdel, value.__doc__)
    if isinstance(value, cached_property):
        value.func = _as_operation(value.func)
        return value
    if not isinstance(value, FunctionType) or getattr(value, "__isabstractmethod__", False):
        return value
    return value if hasattr(value, "__wrapped__") or value.__code__.co_flags & _RUNS_IN_PIECES else operation(value)


_locks: WeakSet[ThreadLock] = WeakSet()


def _renew_locks() -> None:
    """Replace the locks of cached properties in a forked child, because a thread of the parent may have held one.

    Before Python 3.12, a cached property has one lock for all objects (https://github.com/python/cpython/issues/87634).
    """
    for module in [module for name, module in list(sys.modules.items()) if name.startswith("klaw_")]:
        for kind in [value for value in list(vars(module).values()) if isinstance(value, type)]:
            for value in list(vars(kind).values()):
                if isinstance(value, cached_property) and hasattr(value, "lock"):
                    value.lock = threading.RLock()


def _in_child() -> None:
    """Let go, in a forked child, of what the threads of the parent hold: it has none of these threads but one."""
    for ledger in _ledgers.values():
        for hold in ledger:
            hold.leave()
        ledger.clear()
    for lock in list(_locks):
        lock.lock, lock.owner = threading.RLock(), 0
    _renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
