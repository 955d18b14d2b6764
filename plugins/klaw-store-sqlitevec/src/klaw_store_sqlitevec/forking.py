"""Make forks safe: wait for threads that are inside SQLite.

SQLite protects data that all connections share with mutexes. A child that is forked while another thread holds one
would wait for it forever, even with a new connection (https://sqlite.org/howtocorrupt.html, 2.6). So a fork waits, at
most for some seconds, until no other thread of this process is inside SQLite.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

from klaw_core import Hold, held_elsewhere

_MAX_WAIT_SECONDS = 5.0
_PAUSE_SECONDS = 0.001
#: The thread that forks at the moment, by its identifier.
_forking: list[int] = []


class InsideSqlite(Hold[None]):
    """Marks the thread as inside SQLite during a block: a fork waits for it, and it waits for a fork."""

    __slots__ = ()

    def take(self) -> None:
        """Wait until no other thread forks."""
        deadline = time.monotonic() + 2 * _MAX_WAIT_SECONDS
        is_outermost = sum(type(hold) is InsideSqlite for hold in self.noted_in) == 1
        while is_outermost and _forking and threading.get_ident() not in _forking and time.monotonic() < deadline:
            self.noted_in.remove(self)  # the fork waits until nobody is inside
            time.sleep(_PAUSE_SECONDS)
            self.noted_in.append(self)

    def give_back(self) -> None:
        """Do nothing: it is the hold itself that a fork waits for."""


def _before_fork() -> None:
    """Let no further thread enter, and wait until no other one is inside."""
    _forking.append(threading.get_ident())
    deadline = time.monotonic() + _MAX_WAIT_SECONDS
    while held_elsewhere(InsideSqlite) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)


def _after_fork() -> None:
    with suppress(ValueError):
        _forking.remove(threading.get_ident())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
