"""What a watcher tells other processes, in ``watch/`` of the data directory: that it runs, and what it did last."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, field, frozen

from klaw_core import (
    BackgroundRun,
    KlawError,
    StoreLockedError,
    format_ts,
    locked,
    own_directory,
    write_atomically,
)


@frozen
class LastRun:
    """When a trigger ran last, and what came of it."""

    at: str
    result: str


@frozen
class WatchState:
    """What a watcher is doing. ``scanning`` says why it looks at files itself; empty if the system tells it.

    ``stopped``: it was told to end, and has or is about to.
    """

    pid: int
    watched: int = 0
    scanning: str = ""
    problem: str = ""
    runs: Mapping[str, LastRun] = field(factory=dict)
    stopped: bool = False

    def after(self, run: BackgroundRun) -> WatchState:
        """Return the state with a run that ended."""
        return evolve(self, runs={**self.runs, **dict.fromkeys(run.reasons, last_run(run))})


def last_run(run: BackgroundRun) -> LastRun:
    """Return a run that has just ended, as it is remembered."""
    return LastRun(format_ts(datetime.now(UTC)), result_of(run))


@frozen
class WatchDirectory:
    """The directory ``watch`` in a data directory: its lock is that of the one watcher."""

    path: Path

    @classmethod
    def of(cls, data_dir: Path) -> WatchDirectory:
        """Return that of a data directory."""
        return cls(data_dir / "watch")

    @property
    def _own(self) -> Path:
        """The directory, to write in. Raise StoreReadOnlyError for a link that another user may have created."""
        return own_directory(self.path.parent, self.path.name)

    @contextmanager
    def only_watcher(self) -> Iterator[None]:
        """Be the one watcher of the data directory until the end of the block. Raise StoreLockedError, StoreError."""
        with locked(self._own, self._refuse):
            yield

    def _refuse(self) -> None:
        state = self.read()
        who = f" (process {state.pid})" if state else ""
        raise StoreLockedError(
            f"a watcher for {self.path.parent} is running{who}",
            hint="it already updates the index; stop it to run another",
        )

    def is_watched(self) -> bool:
        """Return whether a watcher runs now."""
        if not self.path.is_dir():
            return False
        try:
            with self.only_watcher():
                return False
        except StoreLockedError:
            return True
        except KlawError:  # nothing can be locked here, so nothing is
            return False

    def read(self) -> WatchState | None:
        """Return what the last watcher said, None if there is nothing sound."""
        try:
            found: Any = json.loads((self.path / "state.json").read_text("utf-8"))
            return WatchState(**{**found, "runs": _runs(found["runs"])})
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            return None

    def elsewhere(self) -> Mapping[str, LastRun]:
        """Return the last runs that no watcher made: before a search, and forced by a person."""
        try:
            return _runs(json.loads((self.path / "elsewhere.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def note(self, run: BackgroundRun) -> None:
        """Remember a run that no watcher made. Raise StoreError."""
        runs = {**self.elsewhere(), **dict.fromkeys(run.reasons, last_run(run))}
        write_atomically(self._own / "elsewhere.json", json.dumps({name: asdict(last) for name, last in runs.items()}))

    def write(self, state: WatchState) -> None:
        """Say what the watcher is doing. Raise StoreError."""
        write_atomically(self._own / "state.json", json.dumps(asdict(state), ensure_ascii=False))

    def begin(self) -> WatchState:
        """Return the state of a watcher that starts: what each trigger did last is still true."""
        before = self.read()
        return WatchState(os.getpid(), runs=before.runs if before else {})


def _runs(found: Mapping[str, Any]) -> dict[str, LastRun]:
    return {str(name): LastRun(**run) for name, run in found.items()}


def result_of(run: BackgroundRun) -> str:
    """Return what came of a run, in a few words."""
    report = run.report
    if run.error is not None:
        return str(run.error)
    counts = ((report.added, "new"), (report.changed, "changed"), (report.removed, "removed"))
    said = ", ".join(f"{number:,} {word}" for number, word in counts if number) or "nothing new"
    return f"{said}; {report.lacking:,} chunks without a vector" if report.lacking else said
