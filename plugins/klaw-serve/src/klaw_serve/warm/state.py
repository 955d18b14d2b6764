"""The files of a helper in the data directory: its lock, its socket, and what other processes may know about it."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from attrs import asdict, frozen

from klaw_core import FileLock, StoreLockedError, StoreReadOnlyError, require_own_link, write_atomically
from klaw_core.cli.kit import HELPER_SOCKET
from klaw_serve.running import only_server, read_rendezvous

_LOCK = "warm.lock"
_STATE = "warm.json"
_STOP_SECONDS = 20.0
_PAUSE_SECONDS = 0.02


@frozen
class HelperState:
    """What a helper says about itself. ``pid`` is 0 and ``failed`` the reason if it could not start.

    ``server`` is the process that has the memory open. ``since`` is a time of the system's clock in seconds.
    """

    pid: int
    since: float
    idle_seconds: float
    configuration: str
    server: int = 0
    failed: str = ""


@frozen
class HelperFiles:
    """The files of the helper of a data directory."""

    data_dir: Path

    @property
    def state(self) -> Path:
        """The file whose content is a :class:`HelperState`, and whose time is that of the last search."""
        return self.data_dir / _STATE

    @property
    def socket(self) -> Path:
        """The helper's socket."""
        return self.data_dir / HELPER_SOCKET

    def lock(self) -> FileLock:
        """Return the lock of the only helper. Its block raises StoreLockedError if one runs, StoreReadOnlyError."""

        def refuse() -> None:
            state = self.read()
            who = f" (process {state.pid})" if state and state.pid else ""
            raise StoreLockedError(f"a warm helper for {self.data_dir} is running{who}", hint="klaw serve stop")

        path = self.data_dir / _LOCK
        try:
            require_own_link(path)
        except OSError as error:
            raise StoreReadOnlyError(f"{path} cannot be locked: {error.strerror}") from error
        return FileLock(path, os.O_RDWR | os.O_CREAT, on_wait=refuse)

    def read(self) -> HelperState | None:
        """Return what the last helper has said; None if there is no valid file."""
        try:
            require_own_link(self.state)
            found = json.loads(self.state.read_text("utf-8"))
            return HelperState(**found)
        except (OSError, ValueError, TypeError):
            return None

    def write(self, state: HelperState) -> None:
        """Tell other processes about a helper. Raise StoreError."""
        write_atomically(self.state, json.dumps(asdict(state)))

    def forget(self) -> None:
        """Remove what a helper has said about itself."""
        with suppress(OSError):
            self.state.unlink(missing_ok=True)

    def last_search(self) -> float:
        """Return the time of the last search, in seconds of the system's clock; 0 if there is no file."""
        try:
            return self.state.stat().st_mtime
        except OSError:
            return 0.0

    def touch(self) -> None:
        """Store that a search comes now."""
        with suppress(OSError):
            os.utime(self.state)

    def running(self) -> HelperState | None:
        """Return the state of the helper that runs, None if none does."""
        if not self.state.exists() or not self._is_locked():
            return None
        state = self.read()
        return state if state and state.pid else None

    def _is_locked(self) -> bool:
        if not (self.data_dir / _LOCK).exists():
            return False
        try:
            with self.lock():
                return False
        except StoreLockedError:
            return True
        except (OSError, StoreReadOnlyError):
            return False

    def _is_served_by(self, process: int) -> bool:
        """Return whether this process still serves the memory: it ends after a helper that was killed."""
        found = read_rendezvous(self.data_dir)
        if found is None or found["pid"] != process:
            return False
        try:
            with only_server(self.data_dir):
                return False
        except StoreLockedError:
            return True
        except StoreReadOnlyError:
            return False

    def stop(self) -> HelperState | None:
        """End the helper, wait until it has ended, and return its state; None if none runs.

        One that is starting is waited for. Raise StoreLockedError if it does not end, or is still starting.
        """
        deadline = time.monotonic() + _STOP_SECONDS
        while (state := self.running()) is None:
            if not self._is_locked():
                return None
            if time.monotonic() > deadline:
                raise StoreLockedError(f"the warm helper for {self.data_dir} is starting", hint="try again later")
            time.sleep(_PAUSE_SECONDS)
        with suppress(ProcessLookupError):
            os.kill(state.pid, signal.SIGTERM)
        while self._is_locked() or self._is_served_by(state.server):
            if time.monotonic() > deadline:
                raise StoreLockedError(
                    f"the warm helper (process {state.pid}) does not end", hint=f"kill -KILL {state.pid}"
                )
            time.sleep(_PAUSE_SECONDS)
        return state
