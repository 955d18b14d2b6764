"""A helper as other processes see it: its lock, its socket, what it says about itself, and how it is ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attrs import asdict, frozen

from klaw_core import FileLock, StoreLockedError, StoreReadOnlyError, read_regular, require_own_link, write_atomically
from klaw_core.cli.kit import HELPER_SOCKET, connect
from klaw_serve.running import SOCKET, only_server, read_rendezvous

_LOCK = "warm.lock"
_STATE = "warm.json"
_STOP_SECONDS = 20.0
_KILL_SECONDS = 20.0
_PAUSE_SECONDS = 0.02
# A helper does not answer if it lets all of these tries pass. One try alone may fail on a busy machine.
_TRIES = 4
_TRY_SECONDS = 5.0
_FIRST_TRY_SECONDS = 1.0
# Until then it may still load a model.
_YOUNG_SECONDS = 60.0
_HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@frozen
class HelperState:
    """What a helper says about itself. ``pid`` is 0 and ``failed`` the reason if it could not start, or failed later.

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
            found = json.loads(read_regular(self.state))
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

    def is_starting(self) -> bool:
        """Return whether a helper is starting, which has said nothing about itself."""
        return self._is_locked() and self.running() is None

    def answers(self, seconds: float) -> bool:
        """Return whether both processes of the helper answer, each within so many seconds."""
        return self._answers(HELPER_SOCKET, b"", seconds) and self._answers(SOCKET, _HEALTH, seconds)

    def _answers(self, name: str, request: bytes, seconds: float) -> bool:
        """Return whether a socket answers a request. The helper greets before there is one."""
        if sys.platform == "win32":
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(seconds)
                connect(connection, str(self.data_dir), name)
                connection.sendall(request)
                return bool(connection.recv(1))
        except OSError:
            return False

    def seems_dead(self, state: HelperState) -> bool:
        """Return whether a helper should be examined: it is old enough, did not answer now, and nobody examines it."""
        return not (_is_young(state) or self._is_examined() or self.answers(_FIRST_TRY_SECONDS))

    def end_a_dead_one(self) -> None:
        """End a helper that answers none of several tries. Raise StoreLockedError if another process does so now."""
        state = self.running()
        if state is None or _is_young(state) or self.answers(_FIRST_TRY_SECONDS):
            return
        with suppress(FileNotFoundError), self._examination():  # it has just ended
            for _ in range(_TRIES):
                time.sleep(_TRY_SECONDS)
                if self.answers(_TRY_SECONDS):
                    return
            if self.running() == state:
                self._end(state)

    def _examination(self) -> FileLock:
        def refuse() -> None:
            raise StoreLockedError(f"another process examines the warm helper for {self.data_dir}")

        return FileLock(self.state, os.O_RDWR, on_wait=refuse)

    def _is_examined(self) -> bool:
        try:
            with self._examination():
                return False
        except StoreLockedError:
            return True
        except OSError:  # the helper has just ended
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
        if not self._end(state):
            raise StoreLockedError(
                f"the warm helper (process {state.pid}) does not end", hint=f"kill -KILL {state.pid} {state.server}"
            )
        return state

    def _end(self, state: HelperState) -> bool:
        """End the processes of a helper; return whether they have ended."""
        return _ended(state.pid, lambda: self.running() == state) and self.end_server(state)

    def end_server(self, state: HelperState) -> bool:
        """End the server of a helper that has ended; return whether it has ended."""
        return _ended(state.server, lambda: self._is_served_by(state.server))


def _is_young(state: HelperState) -> bool:
    return 0 <= time.time() - state.since < _YOUNG_SECONDS


def _ended(process: int, runs: Callable[[], bool]) -> bool:
    """Tell a process to end, and kill it if it still runs after a while; return whether it has ended."""
    waits = {signal.SIGTERM: _STOP_SECONDS}
    if sys.platform != "win32":
        waits[signal.SIGKILL] = _KILL_SECONDS
    for number, seconds in waits.items():
        if not runs():
            return True
        with suppress(ProcessLookupError):
            os.kill(process, number)
        deadline = time.monotonic() + seconds
        while runs() and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
    return not runs()
