"""Write private files atomically: a crash leaves the old file or the new one."""

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from klaw_core.errors import NO_DESCRIPTOR, RAISE_LIMIT, StoreError, StoreFullError, StoreReadOnlyError
from klaw_core.files.held import TEMPORARY, Descriptor, FileLock, Temporary, require_regular
from klaw_core.files.platform import OTHERS_WRITE
from klaw_core.holds import Hold

_LOCK = ".klaw-lock"  # in a directory, for systems that cannot lock the directory itself
# A temporary file of this age was left by a crash; another process may be about to rename a younger one.
_LEFTOVER_SECONDS = 3600
_OTHER_PLACE = "choose another place: --data-dir or KLAW_DATA_DIR, for the configuration --config or KLAW_CONFIG"


def make_private_directory(path: Path) -> None:
    """Create a directory and its parents for the owner only. Raise StoreReadOnlyError with what to do."""
    try:
        missing = [directory for directory in (path, *path.parents) if not directory.exists()]
        for directory in reversed(missing):  # one by one, because `parents=True` gives the parents the umask's mode
            directory.mkdir(mode=0o700, exist_ok=True)
            with suppress(PermissionError):  # a parent that can be written but not read
                sync_directory(directory.parent)
        path.mkdir(mode=0o700, exist_ok=True)  # raises if a file has this name
    except OSError as error:
        raise StoreReadOnlyError(f"{path} cannot be created: {error.strerror}", hint=_OTHER_PLACE) from error


def write_atomically(path: Path, text: str, *, flush: bool = True) -> None:
    """Replace a file's content; durable when it returns. Raise StoreReadOnlyError if that is impossible.

    Writes a temporary file next to it, fsync, rename, fsync of the directory; removes temporary files of earlier
    crashes. Without ``flush`` there is no fsync, and a power cut may leave the file empty or as it was. A link stays a
    link: its target is replaced.
    """
    try:
        require_own_link(path)
        path = Path(os.path.realpath(path))
        make_private_directory(path.parent)
        _sweep(path)
        with (temporary := Temporary(path)) as descriptor:
            write_all(descriptor, text.encode())
            temporary.replace(flush=flush)
        if flush:
            sync_directory(path.parent)
    except OSError as error:
        raise writing_failed(path, error) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes, in one call unless the kernel accepts only a part (on a full disk). Raise OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def writing_failed(path: Path, error: OSError) -> StoreError:
    """Return the error for a failed write: StoreFullError or StoreReadOnlyError."""
    message = f"{path} cannot be written: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFullError(message, hint="free some space, then try again")
    there = next((parent for parent in path.parents if parent.exists()), path.parent)
    hint = RAISE_LIMIT if error.errno in NO_DESCRIPTOR else f"`ls -ld {there} {path}` shows who may write"
    return StoreReadOnlyError(message, hint=hint)


def require_own_link(path: Path, below: Path | None = None) -> None:
    """Raise OSError if a path to be written to is a link that another user may have created.

    With ``below``, the same holds for each directory between it and the path. A user's own link, in a directory that
    nobody else may write to, is followed, because people keep their files elsewhere.
    """
    above = list(path.parents) if below else []
    for directory in reversed(above[: above.index(below)] if below in above else ()):
        if _is_planted(directory):
            raise OSError(errno.ELOOP, f"{directory} is a link that another user may have created")
    if _is_planted(path):
        raise OSError(errno.ELOOP, "it is a link that another user may have created")


def _is_planted(path: Path) -> bool:
    try:
        link = path.lstat()
        if not stat.S_ISLNK(link.st_mode):
            return False
        directory = path.parent.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    others_write = bool(directory.st_mode & OTHERS_WRITE) and not directory.st_mode & stat.S_ISVTX
    return others_write or not {link.st_uid, directory.st_uid} <= {getattr(os, "geteuid", int)(), 0}


def open_regular(path: Path, flags: int = 0) -> BinaryIO:
    """Open a file for reading without waiting for a pipe. Raise OSError, also if it is not a regular file."""
    with (opened := Descriptor(path, os.O_RDONLY | flags)) as descriptor:
        require_regular(descriptor)
        return opened.into_file()


def read_regular(path: Path) -> bytes:
    """Return the content of a file. Raise OSError, also if it is not a regular file."""
    with open_regular(path) as file:
        return file.read()


def locked(
    directory: Path, on_wait: Callable[[], None] = lambda: None, *, limit_seconds: float | None = None
) -> Hold[Any]:
    """Hold a directory's lock during a block, so that a file in it does not change between reading and writing.

    It excludes other threads and processes that use the same lock. The directory is created if it is missing. The
    kernel releases the lock with the process. If the lock is held, ``on_wait`` is called once before waiting, at most
    for ``limit_seconds`` (default: a minute). Raise StoreLockedError after that, StoreReadOnlyError if the directory
    cannot be used.
    """
    make_private_directory(directory)
    path, flags = (directory / _LOCK, os.O_RDWR | os.O_CREAT) if sys.platform == "win32" else (directory, os.O_RDONLY)
    return _DirectoryLock(path, flags, on_wait=on_wait, limit_seconds=limit_seconds)


class _DirectoryLock(FileLock):
    """A lock of a directory, with the errors of :func:`locked`."""

    __slots__ = ()

    def take(self) -> int:
        failed, hint = "opened", "check the directory's permissions"
        try:
            descriptor = self.open()
            failed, hint = "locked", _OTHER_PLACE
            self.lock(descriptor)  # some network file systems have no locks
        except OSError as error:
            raise StoreReadOnlyError(f"{self.path} cannot be {failed}: {error.strerror}", hint=hint) from error
        return descriptor


def _sweep(path: Path) -> None:
    from glob import escape

    for leftover in path.parent.glob(f"{escape(TEMPORARY + path.name)}-*"):
        with suppress(FileNotFoundError):  # renamed or removed in the meantime
            if time.time() - leftover.stat().st_mtime > _LEFTOVER_SECONDS:
                leftover.unlink()


def sync_directory(path: Path) -> None:
    """Make the entries of a directory durable, such as a new, renamed or removed file. Raise OSError."""
    if sys.platform != "win32":  # its file systems keep a journal of names, and have no such call
        with Descriptor(path, os.O_RDONLY) as descriptor:
            os.fsync(descriptor)
