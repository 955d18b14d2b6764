"""Make forks safe: wait for threads that are inside SQLite, and reset inherited objects in the child.

SQLite protects data that all connections share with mutexes. A child that is forked while another thread holds one
would wait for it forever, even with a new connection (https://sqlite.org/howtocorrupt.html, 2.6). So a fork waits, at
most for some seconds, until no other thread of this process is inside SQLite.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

_MAX_WAIT_SECONDS = 5.0


class ForkGate:
    """Counts the threads inside SQLite. A fork waits for them, and later threads wait for the fork."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forking: int | None = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Count this thread as inside SQLite during the block."""
        me = threading.get_ident()
        with self._condition:
            while self._forking not in {None, me} and me not in self._inside:
                self._condition.wait()
            self._inside[me] = self._inside.get(me, 0) + 1
        try:
            yield
        finally:
            with self._condition:
                self._inside[me] = self._inside.get(me, 1) - 1
                if not self._inside[me]:
                    del self._inside[me]
                    self._condition.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread is inside, and block new ones until :meth:`after_in_parent`."""
        me = threading.get_ident()
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        self._condition.acquire()  # released after the fork, so that the child's own copy is whole
        self._forking = me
        while set(self._inside) - {me} and (left := deadline - time.monotonic()) > 0:
            self._condition.wait(left)

    def after_in_parent(self) -> None:
        """Let other threads continue."""
        self._forking = None
        self._condition.notify_all()
        self._condition.release()

    def after_in_child(self) -> None:
        """Reset the counts: the child has only one of the parent's threads."""
        me = threading.get_ident()
        self._inside = {thread: count for thread, count in self._inside.items() if thread == me}
        self._condition = threading.Condition()
        self._forking = None


#: Called in a forked child.
_children: WeakSet[Forked] = WeakSet()
GATE = ForkGate()


class Forked:
    """An object that a forked child must not use as it inherits it; ``forget`` is called there."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.forget = forget
        _children.add(self)


def _after_in_child() -> None:
    GATE.after_in_child()
    for inherited in list(_children):
        inherited.forget()


os.register_at_fork(before=GATE.before_fork, after_in_parent=GATE.after_in_parent, after_in_child=_after_in_child)
