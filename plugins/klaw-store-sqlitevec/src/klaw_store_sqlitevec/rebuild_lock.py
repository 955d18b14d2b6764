"""The lock that excludes writers while the database is rebuilt in a file next to it.

Every write transaction holds a shared lock on the lock file; a rebuild holds an exclusive lock until it ends. Readers
need no lock. The kernel releases the lock with the process, so a crash leaves none behind.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from klaw_core import StoreLockedError, StoreReadOnlyError

#: Suffixes of the files that SQLite and the store keep next to a database.
SIDE_FILES = ("", "-wal", "-shm", ".lock")

_RETRY_SECONDS = 0.01


class RebuildLock:
    """A process's handle on the lock file of a database. Not thread-safe.

    A rebuild waits a few seconds for writers, which finish soon. Writers do not wait for a rebuild.
    """

    def __init__(self, database: Path, wait_seconds: float = 0.0) -> None:
        self._database = database
        self._wait_seconds = wait_seconds
        self._path = Path(f"{database}.lock")
        self._descriptor: int | None = None

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold a shared lock. Raise StoreLockedError, with the process that rebuilds."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the exclusive lock, and write this process's id into the file. Raise StoreLockedError."""
        with self._held(fcntl.LOCK_EX) as descriptor:
            os.ftruncate(descriptor, 0)
            with suppress(OSError):  # on a full disk the lock works too, but does not name its process
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            try:
                yield
            finally:
                os.ftruncate(descriptor, 0)

    def close(self) -> None:
        """Close the handle; closing twice is allowed."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def _held(self, kind: int) -> Iterator[int]:
        descriptor = self._open()
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                holder = _rebuilder(descriptor)
                if holder is None and kind == fcntl.LOCK_SH:
                    continue  # the rebuild has just ended
                if holder is not None or time.monotonic() >= deadline:
                    who = "another process is writing to it" if holder is None else f"{holder} is rebuilding it"
                    message = f"{self._database} is locked: {who}"
                    raise StoreLockedError(message, hint="wait for it to finish") from error
            time.sleep(_RETRY_SECONDS)
        try:
            yield descriptor
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _open(self) -> int:
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise StoreReadOnlyError(
                    f"{self._path} cannot be opened for writing: {error.strerror}",
                    hint="check its permissions, or choose another directory: --data-dir or KLAW_DATA_DIR",
                ) from error
        return self._descriptor


def _rebuilder(descriptor: int) -> str | None:
    """Return the process that rebuilds; None if nobody holds the exclusive lock, whatever the file contains."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        number = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
        return f"process {number}" if number else "another process"  # the number is written after the lock was acquired
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return None
