"""The lock that excludes writers while the database is rebuilt in a file next to it.

Every write transaction holds a shared lock on the lock file; a rebuild holds an exclusive lock until it ends. Readers
need no lock. The kernel releases the lock with the process, so a crash leaves none behind.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

from klaw_core import FileLock, StoreLockedError, StoreReadOnlyError, try_lock

#: Suffixes of the files that SQLite and the store keep next to a database.
SIDE_FILES = ("", "-wal", "-shm", ".lock")

_RETRY_SECONDS = 0.01


def others(database: Path) -> list[Path]:
    """Return what is in the place of a file of the database without being a regular file, such as a directory."""
    paths = [f"{database}{suffix}" for suffix in SIDE_FILES]
    # Unlike those of Path, these functions do not raise in a directory that cannot be searched.
    return [Path(path) for path in paths if os.path.exists(path) and not os.path.isfile(path)]  # noqa: PTH110, PTH113


class RebuildLock(FileLock):
    """The lock of a database during a block: shared, for a writer, or exclusive, for a rebuild.

    A rebuild waits ``wait_seconds`` for writers, which finish soon, and writes this process's id into the file. Writers
    do not wait for a rebuild. Raise StoreLockedError, with the process that rebuilds; StoreReadOnlyError.
    """

    __slots__ = ("_database", "_exclusive", "_wait_seconds")

    def __init__(self, database: Path, *, exclusive: bool = False, wait_seconds: float = 0.0) -> None:
        super().__init__(Path(f"{database}.lock"), os.O_RDWR | os.O_CREAT)
        self._database = database
        self._exclusive = exclusive
        self._wait_seconds = wait_seconds

    def take(self) -> int:
        """Open the lock file and lock it."""
        try:
            descriptor = self.open()
        except OSError as error:
            from klaw_store_sqlitevec.permissions import how_to_permit

            raise StoreReadOnlyError(
                f"{self.path} cannot be opened for writing: {error.strerror}", hint=how_to_permit(self._database)
            ) from error
        self.lock(descriptor)
        if self._exclusive:
            os.ftruncate(descriptor, 0)
            with suppress(OSError):  # on a full disk the lock works too, but does not name its process
                os.write(descriptor, f"{os.getpid()}\n".encode())
        return descriptor

    def lock(self, descriptor: int) -> None:
        """Lock the open file."""
        deadline = time.monotonic() + self._wait_seconds
        while not try_lock(descriptor, "exclusive" if self._exclusive else "shared"):
            holder = self._rebuilder(descriptor)
            if holder is None and not self._exclusive:
                continue  # the rebuild has just ended
            if holder is not None or time.monotonic() >= deadline:
                who = "another process is writing to it" if holder is None else f"{holder} is rebuilding it"
                raise StoreLockedError(f"{self._database} is locked: {who}", hint="wait for it to finish")
            time.sleep(_RETRY_SECONDS)

    def _rebuilder(self, descriptor: int) -> str | None:
        """Return the process that rebuilds; None if nobody holds the exclusive lock, whatever the file contains."""
        if try_lock(descriptor, "shared"):
            try_lock(descriptor, "none")
            return None
        os.lseek(descriptor, 0, os.SEEK_SET)
        number = os.read(descriptor, 32).decode("ascii", "replace").strip()
        return f"process {number}" if number else "another process"  # the number is written after the lock was acquired
