"""An index that keeps up by itself: at the start, and a moment after whatever has changed."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from klaw_core.memory import Memory

_LOG = logging.getLogger("klaw")


class BackgroundIndexer:
    """Runs ``memory.index()`` in a thread of its own, once at the start and once after each burst of requests.

        with Memory.open() as memory, BackgroundIndexer(memory) as indexer:
            memory.conversations.append(message)
            indexer.request()       # returns at once

    Requests within ``debounce_seconds`` of each other are one run. An error is logged (logger ``klaw``) and
    never raised; the next request tries again. A good run logs "memory index ready". Leaving the block
    waits for the run that is under way.
    """

    def __init__(self, memory: Memory, *, debounce_seconds: float = 1.5) -> None:
        self._memory = memory
        self._debounce_seconds = debounce_seconds
        self._changed = threading.Condition()
        self._requests = 1  # the run at the start
        self._handled = 0
        self._running = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="klaw-index", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def request(self) -> None:
        """Ask for a run, soon; return at once."""
        with self._changed:
            self._requests += 1
            self._changed.notify_all()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until nothing is asked for or under way; return whether that came about in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._requests == self._handled and not self._running, timeout_seconds
            )

    def close(self) -> None:
        """Stop after the run that is under way; closing twice is allowed."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        first = True
        while self._next(at_once=first):
            first = False
            try:
                report = self._memory.index()
            except Exception as error:  # noqa: BLE001  # whatever it is, whoever asked has gone on
                _LOG.warning("memory index not brought up to date: %s", error)
            else:
                for notice in report.notices:
                    _LOG.warning("%d chunks are found by words alone: %s", report.lacking, notice)
                _LOG.info("memory index ready")
            with self._changed:
                self._running = False
                self._changed.notify_all()

    def _next(self, *, at_once: bool) -> bool:
        """Wait for a request and for the burst to end; return False when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._requests > self._handled or self._closing)
            while not (at_once or self._closing) and self._more_come(self._requests):
                pass
            self._handled = self._requests
            self._running = not self._closing
            return self._running

    def _more_come(self, seen: int) -> bool:
        """Wait, for at most the time between two requests of one burst, for more than the ``seen`` ones."""
        return self._changed.wait_for(lambda: self._requests > seen or self._closing, self._debounce_seconds)
