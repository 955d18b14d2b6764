"""The state of a watcher for other processes, in ``watch/`` of the data directory."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen

from klaw_core import Hold, KlawError, StoreLockedError, locked, own_directory, read_regular, write_atomically
from klaw_watch.background import BackgroundRun


@frozen
class LastRun:
    """The time and the result of a trigger's last run."""

    at: str
    result: str


@frozen
class WatchState:
    """The state of a watcher. ``scanning`` is the reason why it polls files; empty if the system reports changes.

    ``stopped``: it was told to end.
    """

    pid: int
    watched: int = 0
    scanning: str = ""
    problem: str = ""
    runs: Mapping[str, LastRun] = field(factory=dict)
    stopped: bool = False

    def after(self, run: BackgroundRun) -> WatchState:
        """Return the state after a run."""
        return evolve(self, runs={**self.runs, **dict.fromkeys(run.reasons, last_run(run))})


def last_run(run: BackgroundRun) -> LastRun:
    """Return the record of a run that has just ended."""
    return last_run_of(result_of(run))


def last_run_of(result: str) -> LastRun:
    """Return the record of something that has just ended with this result."""
    return LastRun(f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z", result)


@frozen
class WatchDirectory:
    """The directory ``watch`` in a data directory. The running watcher holds its lock."""

    path: Path

    @classmethod
    def of(cls, data_dir: Path) -> WatchDirectory:
        """Return the directory for a data directory."""
        return cls(data_dir / "watch")

    @property
    def _own(self) -> Path:
        """The directory, created if missing. Raise StoreReadOnlyError for a link that another user may have created."""
        return own_directory(self.path.parent, self.path.name)

    def only_watcher(self) -> Hold[None]:
        """Return the lock of the only watcher of the data directory. Raise StoreLockedError, StoreError."""
        return locked(self._own, self._refuse)

    def _refuse(self) -> None:
        state = self.read()
        who = f" (process {state.pid})" if state else ""
        raise StoreLockedError(
            f"a watcher for {self.path.parent} is running{who}",
            hint="it already updates the index; stop it to run another",
        )

    def is_watched(self) -> bool:
        """Return whether a watcher is running."""
        if not self.path.is_dir():
            return False
        try:
            with self.only_watcher():
                return False
        except StoreLockedError:
            return True
        except KlawError:  # locks are impossible here, so no watcher can run
            return False

    def read(self) -> WatchState | None:
        """Return the state of the last watcher; None if it is missing or invalid."""
        try:
            found: Any = json.loads(read_regular(self.path / "state.json"))
            return WatchState(**{**found, "runs": _runs(found["runs"])})
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            return None

    def other_runs(self) -> Mapping[str, LastRun]:
        """Return the last runs that no watcher made: before a search, and forced ones."""
        try:
            return _runs(json.loads(read_regular(self.path / "elsewhere.json")))
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def record(self, run: BackgroundRun) -> None:
        """Record a run that no watcher made. Raise StoreError."""
        with locked(own_directory(self._own, "elsewhere")):  # a watcher holds the lock of the directory itself
            runs = {**self.other_runs(), **dict.fromkeys(run.reasons, last_run(run))}
            shown = {name: asdict(last) for name, last in runs.items()}
            write_atomically(self._own / "elsewhere.json", json.dumps(shown))

    def write(self, state: WatchState) -> None:
        """Write the state. Raise StoreError."""
        write_atomically(self._own / "state.json", json.dumps(asdict(state), ensure_ascii=False))

    def begin(self) -> WatchState:
        """Return the state of a starting watcher, with the last runs of the previous one."""
        before = self.read()
        return WatchState(os.getpid(), runs=before.runs if before else {})


def _runs(found: Mapping[str, Any]) -> dict[str, LastRun]:
    return {str(name): LastRun(**run) for name, run in found.items()}


def result_of(run: BackgroundRun) -> str:
    """Return the result of a run in a few words."""
    report = run.report
    if run.error is not None:
        return str(run.error)
    counts = ((report.added, "new"), (report.changed, "changed"), (report.removed, "removed"))
    said = ", ".join(f"{number:,} {word}" for number, word in counts if number) or "nothing new"
    return f"{said}; {report.lacking:,} chunks without a vector" if report.lacking else said
