"""Synchronise again and again, in a thread of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Thread

from attrs import define, field

from klaw_core import Flag, KlawError
from klaw_sync.here import SyncReport

_LOG = logging.getLogger("klaw")
_STOP_SECONDS = 5.0


@define(eq=False)
class Synchroniser:
    """Calls ``run`` at once and then every ``seconds``, until it is stopped. An error is told, and tried again."""

    run: Callable[[], SyncReport]
    seconds: float
    told: Callable[[SyncReport], object] = lambda _report: None
    _stopped: Flag = field(factory=Flag, init=False)
    _thread: Thread | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the thread."""
        self._thread = Thread(target=self.loop, name="klaw sync", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after the run that it is in, and wait some seconds for that."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def loop(self) -> None:
        """Synchronise until :meth:`stop` is called."""
        while True:
            try:
                report = self.run()
            except KlawError as error:
                report = SyncReport(problems=(error.message,))
            except Exception as error:  # noqa: BLE001  # no caller waits for the thread, and the next run tries again
                report = SyncReport(problems=(f"{type(error).__name__}: {error}",))
            for problem in report.problems:
                _LOG.warning("klaw sync: %s", problem)
            self.told(report)
            if self._stopped.wait(self.seconds):
                return
