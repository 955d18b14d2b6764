"""The watcher: it watches sources, requests index runs, and publishes its state."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from attrs import define, evolve, field

from klaw_core import Flag, Hold, KlawError, Memory, ThreadLock, operations
from klaw_watch.background import BackgroundIndexer, BackgroundRun
from klaw_watch.extension import WatchExtension
from klaw_watch.files import FileEvents
from klaw_watch.loop import Loop
from klaw_watch.names import CONSOLIDATE, FORCED
from klaw_watch.nightly import Nightly
from klaw_watch.options import WatchOptions
from klaw_watch.state import WatchDirectory, WatchState, last_run_of

_LOG = logging.getLogger("klaw")

# Seconds between looks for new, missing and replaced directories.
_LOOK_SECONDS = 2.0


def _slept() -> float:
    """Return the seconds for which the machine was suspended since some fixed time."""
    if sys.platform != "linux":
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


@operations
@define(eq=False)
class Watcher:
    """Keeps the index of a memory up to date, according to ``[extensions.watch]``, until it is stopped.

        with Memory.open() as memory, Watcher(memory):
            ...

    There is one per data directory. It indexes notes and conversations in its own thread. Errors are logged, shown in
    ``klaw status``, and the run is repeated. ``on_run`` is called in that thread after every run.
    """

    memory: Memory
    on_run: Callable[[BackgroundRun], None] = lambda _run: None
    get_slept: Callable[[], float] = _slept
    look_seconds: float = _LOOK_SECONDS
    _stop: Flag = field(factory=Flag, init=False)
    _lock: Hold[None] = field(init=False)
    _changed: ThreadLock = field(factory=partial(ThreadLock, "the state of the watcher"), init=False)
    _state: WatchState = field(init=False)
    _indexer: BackgroundIndexer = field(init=False)
    _events: FileEvents = field(init=False)
    _nightly: Nightly = field(init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _ready: Flag = field(factory=Flag, init=False)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def directory(self) -> WatchDirectory:
        """The directory with its published state."""
        return WatchDirectory.of(self.memory.config.data_dir)

    @property
    def state(self) -> WatchState:
        """The current state."""
        return self._state

    def start(self) -> None:
        """Start. Raise StoreLockedError if there is another watcher for this data directory, or StoreError."""
        self._lock = self.directory.only_watcher()
        with self._lock:
            self._begin()
            self._lock.keep()

    @property
    def _options(self) -> WatchOptions:
        return self.memory.extension(WatchExtension).options

    def _begin(self) -> None:
        self._state = self.directory.begin()
        self._events = FileEvents(self._stop)
        self._indexer = BackgroundIndexer(
            self.memory,
            debounce_seconds=self._options.debounce_ms / 1000,
            at_start=False,
            on_run=self._note,
        )
        self._nightly = Nightly(self.memory, self._options, self._stop, self._note_night)
        self._thread = threading.Thread(target=self._run, name="klaw-watch", daemon=True)
        self._thread.start()

    def wait_ready(self, timeout_seconds: float | None = None) -> bool:
        """Wait until changes are watched; return whether that happened before the timeout."""
        return self._ready.wait(timeout_seconds)

    def request(self) -> None:
        """Request a run that checks and splits all documents again: the trigger ``forced``."""
        self._indexer.request(force=True, reason=FORCED)

    def stop(self, timeout_seconds: float | None = None) -> bool:
        """Stop after the current write or the current answer of the embedder; return whether that was before a timeout.

        The next start indexes what was not written. Stopping twice is allowed.
        """
        if self._thread is None:
            return True
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._stop.set()
        self._publish(lambda state: evolve(state, stopped=True))  # first, because the caller may not wait for the rest
        self._thread.join(timeout_seconds)
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        is_closed = self._indexer.close(left)
        if not is_closed or self._thread.is_alive() or not self._nightly.close(left):
            return False
        self._thread = None
        self._lock.end()
        return True

    def _note(self, run: BackgroundRun) -> None:
        self._publish(lambda state: state.after(run))
        self.on_run(run)

    def _note_night(self, result: str) -> None:
        run = last_run_of(result)
        self._publish(lambda state: evolve(state, runs={**state.runs, CONSOLIDATE: run}))

    def _publish(self, change: Callable[[WatchState], WatchState]) -> None:
        """Change the state, and write it if it differs."""
        with self._changed.hold():
            before, self._state = self._state, change(self._state)
            if self._state == before and self._ready.is_set():
                return
            try:
                self.directory.write(self._state)
            except KlawError as error:
                _LOG.warning("%s", error)

    def _run(self) -> None:
        parts = (self._options, self._indexer, self._events, self._stop)
        loop = Loop(self.memory, *parts, self.get_slept, self.look_seconds, self._looked, self._nightly.look)
        try:
            loop.run()
        except Exception:  # noqa: BLE001  # every error must be reported
            _LOG.exception("the watcher stopped")
            self._publish(lambda state: evolve(state, problem="it ended with an error; see its log"))
        finally:
            self._events.close()
            self._ready.set()

    def _looked(self, watched: int, problem: str) -> None:
        scanning = self._events.scanning
        self._publish(lambda state: evolve(state, watched=watched, scanning=scanning, problem=problem))
        self._ready.set()
