"""What a fork must wait for, and what a child of one must not inherit.

SQLite guards what all its connections share with mutexes of its own. A child that is forked while another thread holds
one would wait for it for ever, even with a connection of its own (https://sqlite.org/howtocorrupt.html, 2.6). So a fork
waits, for some seconds at most, until no other thread of this process is inside SQLite.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

_LONGEST_WAIT_SECONDS = 5.0


class ForkGate:
    """Counts the threads that are inside SQLite; a fork waits for them, and those that come later for the fork."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forking: int | None = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Say for the block that this thread is inside SQLite."""
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
        """Wait until no other thread is inside, and let none in until :meth:`after_in_parent`."""
        me = threading.get_ident()
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        self._condition.acquire()  # released after the fork, so that the child's own copy is whole
        self._forking = me
        while set(self._inside) - {me} and (left := deadline - time.monotonic()) > 0:
            self._condition.wait(left)

    def after_in_parent(self) -> None:
        """Let the others go on."""
        self._forking = None
        self._condition.notify_all()
        self._condition.release()

    def after_in_child(self) -> None:
        """Start again: of the parent's threads there is one."""
        me = threading.get_ident()
        self._inside = {thread: count for thread, count in self._inside.items() if thread == me}
        self._condition = threading.Condition()
        self._forking = None


#: Called in a child of a fork.
_children: WeakSet[Forked] = WeakSet()
GATE = ForkGate()


class Forked:
    """Something that a child of a fork inherits and must not use as it is; ``forget`` is called there."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.forget = forget
        _children.add(self)


def _after_in_child() -> None:
    GATE.after_in_child()
    for inherited in list(_children):
        inherited.forget()


os.register_at_fork(before=GATE.before_fork, after_in_parent=GATE.after_in_parent, after_in_child=_after_in_child)
