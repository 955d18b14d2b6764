"""Condense at night: once, within the hours of the configuration, while nobody uses the memory or the machine."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from pathlib import Path

from attrs import define, field

from klaw_core import Event, Flag, IndexEvent, Memory, MessageEvent, SearchEvent
from klaw_journals import CondensingExtension
from klaw_watch.options import WatchOptions, hours_of

_LOG = logging.getLogger("klaw")
_POWER = Path("/sys/class/power_supply")
_SECONDS_A_MINUTE = 60


def why_machine_is_busy() -> str:
    """Return why this machine should do nothing that can wait; empty if it may. What is unknown does not count."""
    load = 0.0
    if sys.platform != "win32":
        with suppress(OSError):
            load = os.getloadavg()[0]
    if load > (os.cpu_count() or 1):
        return f"the machine is busy (load {load:.1f})"
    try:
        states = [(item / "status").read_text("ascii").strip() for item in _POWER.iterdir() if item.name[:3] == "BAT"]
    except (OSError, ValueError):
        return ""
    return "the machine runs on battery" if "Discharging" in states else ""


def night_at(hours: str, now: datetime) -> date | None:
    """Return the day on which the night began if ``now`` is within these hours; None if it is not, or never."""
    found = hours_of(hours)
    if found is None:
        return None
    (first, last), clock = found, now.time()
    if first <= last:
        return now.date() if first <= clock < last else None
    if clock >= first:
        return now.date()
    return now.date() - timedelta(days=1) if clock < last else None


@define(eq=False)
class Nightly:
    """Starts the extensions that condense, in a thread of its own. :meth:`look` is called again and again."""

    memory: Memory
    options: WatchOptions
    stop: Flag
    on_run: Callable[[str], None]
    now: Callable[[], datetime] = datetime.now
    get_seconds: Callable[[], float] = time.monotonic
    why_busy: Callable[[], str] = why_machine_is_busy
    _used: float = field(init=False)
    _done: date | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _forget_listener: Callable[[], None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._used = self.get_seconds()
        self._forget_listener = self.memory.on_change(self._note)

    def _note(self, event: Event) -> None:
        """Note that somebody uses the memory: a search, a message, or a change of what is indexed."""
        is_change = isinstance(event, IndexEvent) and (event.report.added or event.report.changed)
        if is_change or isinstance(event, SearchEvent | MessageEvent):
            self._used = self.get_seconds()

    def look(self) -> None:
        """Start if it is night, nobody uses the memory, and the machine may."""
        night = night_at(self.options.consolidate, self.now())
        if night is None or night == self._done:
            return
        if self.get_seconds() - self._used < self.options.idle_minutes * _SECONDS_A_MINUTE or self.why_busy():
            return
        self._done = night
        self._thread = threading.Thread(target=self._run, name="klaw-nightly", daemon=True)
        self._thread.start()

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Wait until a run has stopped, which it does between two steps; return whether that was in time."""
        self._forget_listener()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        results = []
        for name, extension in self.memory.extensions.having(CondensingExtension):
            if self.stop.is_set():
                break
            try:
                results.append(f"{name}: {extension.condense(self.stop.is_set)}")
            except Exception as error:  # noqa: BLE001  # no caller waits for it, and the next night tries again
                _LOG.warning("%s was not condensed: %s", name, error)
                results.append(f"{name}: {error}")
        self.on_run("; ".join(results) or "nothing to condense")
