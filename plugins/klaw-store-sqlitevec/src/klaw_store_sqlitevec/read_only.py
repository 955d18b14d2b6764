"""Open a database that cannot be written: on a read-only mount, or in a directory of another user.

SQLite reads a database in write-ahead mode through two files next to it, the log and its shared memory, and creates
missing ones. Here it cannot create them. If both exist, another program has the database open, or was killed, and the
database is read through them. If the log is missing or empty, the file is the complete database: it is opened as
immutable for one snapshot, and checked for changes afterwards (https://sqlite.org/wal.html, "Read-Only Databases").
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from klaw_core import StoreError, StoreLockedError, StoreReadOnlyError


def may_be_written(path: Path) -> bool:
    """Return whether this process may write a database and the files next to it; True if it does not exist."""
    return not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def open_for_reading(path: Path) -> apsw.Connection:
    """Open a database that cannot be written. Raise StoreReadOnlyError if its log cannot be read."""
    log = Path(f"{path}-wal")
    shared = _has_shared_memory(path)
    if not shared and log.exists() and log.stat().st_size:
        raise StoreReadOnlyError(
            f"{path} cannot be read: the latest changes are in {log.name}, and its directory is read-only",
            hint="copy the directory to a writable one and select it with --data-dir or KLAW_DATA_DIR",
        )
    how = "mode=ro" if shared else "immutable=1"
    uri = f"{path.absolute().as_uri()}?{how}"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


@contextmanager
def refuse_changes(path: Path) -> Iterator[None]:
    """Raise StoreLockedError, instead of any other error, if a file read as immutable changes in the meantime."""
    if may_be_written(path) or _has_shared_memory(path):
        yield
        return
    before = _state(path)
    changed = StoreLockedError(f"{path} was changed while it was read", hint="try again")
    try:
        yield
    except (apsw.Error, StoreError) as error:
        if _state(path) != before:
            raise changed from error
        raise
    if _state(path) != before:
        raise changed


def _has_shared_memory(path: Path) -> bool:
    return all(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm"))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
