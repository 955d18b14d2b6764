"""Index runs that clients start: one at a time, in a separate thread, with progress events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import define, field

from klaw_core import KlawError, Memory, Progress, ThreadLock, to_json

# The shortest interval between two progress events.
_MIN_EVENT_SECONDS = 0.1


@define(eq=False)
class IndexRun:
    """The current or last index run of a memory."""

    memory: Memory
    tell: Callable[[str, Any], None]
    _state: dict[str, Any] = field(factory=lambda: {"state": "idle"}, init=False)
    _changing: ThreadLock = field(factory=partial(ThreadLock, "the index run of a server"), init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _stopping: bool = field(default=False, init=False)
    _told: float = field(default=0.0, init=False)

    @property
    def state(self) -> dict[str, Any]:
        """``state`` (idle, running, done, failed), and ``progress``, ``report`` or ``error``."""
        return dict(self._state)

    def start(self, origin: str | None = None, *, force: bool = False) -> dict[str, Any]:
        """Start a run unless one is running; return the state."""
        with self._changing.hold():
            if self._state["state"] != "running" and not self._stopping:
                self._state = {"state": "running", "progress": None}
                self._thread = threading.Thread(target=self._run, args=(origin, force), name="klaw-serve-index")
                self._thread.start()
            return self.state

    def close(self) -> None:
        """Stop the run at its next step and wait for it. The next run does the rest."""
        with self._changing.hold():
            self._stopping = True
        if self._thread is not None:
            self._thread.join()

    def _run(self, origin: str | None, force: bool) -> None:  # noqa: FBT001  # a thread's target
        try:
            report = self.memory.index(origin=origin, force=force, on_progress=self._note)
        except _StoppedError:
            self._set({"state": "idle"})
        except KlawError as error:
            self._set({"state": "failed", **to_json(error)})
        except Exception as error:  # noqa: BLE001  # nobody waits for this thread; the state has the error
            self._set({"state": "failed", "error": f"{type(error).__name__}: {error}"})
        else:
            self._set({"state": "done", "report": to_json(report)})

    def _note(self, progress: Progress) -> None:
        if self._stopping:
            raise _StoppedError
        now = time.monotonic()
        self._state = {"state": "running", "progress": to_json(progress)}
        if now - self._told >= _MIN_EVENT_SECONDS:
            self._told = now
            self.tell("progress", self._state)

    def _set(self, state: dict[str, Any]) -> None:
        self._state = state
        self.tell("progress", state)


class _StoppedError(Exception):
    """Raised in a step of a run to stop it."""
