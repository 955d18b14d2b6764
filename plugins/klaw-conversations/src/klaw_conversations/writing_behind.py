"""A thread that writes behind its caller, for programs that must not wait."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakSet

from klaw_core import Notifier, ThreadLock

_LOG = logging.getLogger("klaw")
_writers: WeakSet[WriteBehind] = WeakSet()
# Seconds that the end of the process waits for what is not written yet.
_LAST_SECONDS = 10.0


class WriteBehind:
    """Runs work in the order of its submission, in one thread, which starts with the first work.

    An error is logged and ends only that work. The thread is a daemon: at its end, the process waits a while for the
    rest, and a crash loses it. A forked child has a thread and an empty list of its own.
    """

    def __init__(self) -> None:
        self._lock = ThreadLock("the list of messages to write")
        self._changed = Notifier()
        self._left: deque[tuple[str, Callable[[], object]]] = deque()
        self._process = 0
        self._thread: threading.Thread | None = None
        _writers.add(self)

    def submit(self, what: str, work: Callable[[], object]) -> None:
        """Run work later; return at once. ``what`` names it in the message about an error."""
        with self._lock.hold():
            if self._process != os.getpid():
                self._process = os.getpid()
                self._left.clear()
                self._thread = None
            self._start()
            self._left.append((what, work))
        self._changed.notify()

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Wait until everything submitted so far has run; return whether that happened in time."""
        with self._lock.hold(), suppress(RuntimeError):  # the interpreter starts no more threads when it ends
            if self._left and self._process == os.getpid():
                self._start()
        return self._changed.wait_for(lambda: not self._left or self._process != os.getpid(), timeout_seconds)

    def _start(self) -> None:
        """Start the thread if there is none, or if it has died. The caller holds the lock."""
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name="klaw-write", daemon=True)
            thread.start()
            self._thread = thread  # not before: a thread that cannot be started is tried again with the next work

    def _run(self) -> None:
        while True:
            self._changed.wait_for(lambda: bool(self._left), None)
            what, work = self._left[0]
            try:
                work()
            except BaseException as error:  # noqa: BLE001  # no caller waits for it, and the thread has other work
                _LOG.warning("%s: %s", what, str(error) or type(error).__name__)
            finally:  # whatever happens: who waits for this work would otherwise wait forever
                with self._lock.hold():
                    self._left.popleft()
                self._changed.notify()


@atexit.register
def _finish() -> None:
    until = time.monotonic() + _LAST_SECONDS
    for writer in list(_writers):
        writer.flush(max(until - time.monotonic(), 0.0))
