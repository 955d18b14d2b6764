"""Files written so that a crash leaves the old one or the new one, private to their owner."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO

from klaw_core.errors import StoreError, StoreFullError, StoreReadOnlyError

_TEMPORARY = ".klaw-"
_BLOCK = 1 << 20
# A temporary file this old is a crash's; a younger one may be what another process is about to rename.
_LEFTOVER_SECONDS = 3600
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def make_private_directory(path: Path) -> None:
    """Create a directory and its parents for the owner only. Raise StoreReadOnlyError with what to do."""
    try:
        missing = [directory for directory in (path, *path.parents) if not directory.exists()]
        for directory in reversed(missing):  # `parents=True` would give the parents the umask's mode
            directory.mkdir(mode=0o700, exist_ok=True)
            with suppress(PermissionError):  # a parent that may be written and not read
                sync_directory(directory.parent)
        path.mkdir(mode=0o700, exist_ok=True)  # a file of that name is an error
    except OSError as error:
        raise StoreReadOnlyError(
            f"{path} cannot be created: {error.strerror}", hint="choose another directory: --data-dir or KLAW_DATA_DIR"
        ) from error


def write_atomically(path: Path, text: str) -> None:
    """Replace a file's content; durable when it returns. Raise StoreReadOnlyError if that is impossible.

    Writes a temporary file next to it, fsync, rename, fsync of the directory; removes temporary files of earlier
    crashes. A link stays a link: its target is replaced.
    """
    try:
        require_own_link(path)
        path = Path(os.path.realpath(path))
        make_private_directory(path.parent)
        _sweep(path)
        descriptor, name = _temporary(path)
        try:
            _fill(descriptor, text.encode())
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink(missing_ok=True)
            raise
        sync_directory(path.parent)
    except OSError as error:
        raise writing_failed(path, error) from error


def keep_ranges(path: Path, ranges: Callable[[int], Iterable[tuple[int, int]]]) -> None:
    """Replace a file by one that holds only some of its bytes; durable when it returns. Raise StoreError.

    ``ranges`` is given the open file and returns what stays, (start, end) in order. The caller holds the lock that
    keeps others from writing meanwhile. A link stays one: what it leads to is replaced.
    """
    try:
        require_own_link(path)
    except OSError as error:
        raise writing_failed(path, error) from error
    path = Path(os.path.realpath(path))
    temporary = _rewritten(path)
    try:
        with open_regular(path) as file:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(temporary, flags, 0o600)
            try:
                for start, end in ranges(file.fileno()):
                    _copy(file.fileno(), start, end, descriptor)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise writing_failed(path, error) from error


def _rewritten(path: Path) -> Path:
    """Return the file that is to take another's place: one, under the lock, so that a crash leaves at most one."""
    return path.with_name(f"{_TEMPORARY}{path.name}-rewrite")


def has_leftover(path: Path) -> bool:
    """Return whether a crash has left a file that was to take this one's place; :func:`keep_ranges` begins with it."""
    return _rewritten(Path(os.path.realpath(path))).exists()


def overwrite(path: Path, parts: Iterable[tuple[int, bytes]], *, flush: bool = True) -> None:
    """Write bytes over those at some places of a file; durable when it returns, with ``flush``. Raise StoreError.

    A crash may leave any of it written, and any not. The caller holds the lock that keeps others from writing.
    """
    try:
        require_own_link(path)
        descriptor = os.open(os.path.realpath(path), os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            require_regular(descriptor)
            for start, data in parts:
                os.lseek(descriptor, start, os.SEEK_SET)
                write_all(descriptor, data)
            if flush:
                getattr(os, "fdatasync", os.fsync)(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise writing_failed(path, error) from error


def _copy(source: int, start: int, end: int, target: int) -> None:
    while start < end and (block := os.pread(source, min(_BLOCK, end - start), start)):
        write_all(target, block)
        start += len(block)


def write_new(path: Path, data: bytes) -> None:
    """Create a file, whole or not at all; durable when it returns. Raise OSError, FileExistsError if it exists."""
    descriptor, name = _temporary(path)
    try:
        _fill(descriptor, data)
        os.link(name, path)  # unlike a rename, never over another
    finally:
        Path(name).unlink(missing_ok=True)
    sync_directory(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, in one write unless the kernel takes only a part (a disk that fills up). Raise OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def writing_failed(path: Path, error: OSError) -> StoreError:
    """Return the error that says why a file could not be written: StoreFullError or StoreReadOnlyError."""
    message = f"{path} cannot be written: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StoreFullError(message, hint="free some space, then try again")
    return StoreReadOnlyError(message, hint="check the directory's permissions")


def require_own_link(path: Path, below: Path | None = None) -> None:
    """Raise OSError if a path to be written to is a link that another user may have created.

    With ``below``, the same holds for each directory between it and the path. A user's own link, in a directory that
    nobody else may write to, is followed, because people keep their files elsewhere.
    """
    for directory in reversed(path.parents) if below else ():
        if below in directory.parents and _is_planted(directory):
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
    others_write = bool(directory.st_mode & _OTHERS_WRITE) and not directory.st_mode & stat.S_ISVTX
    users = {os.geteuid(), 0}
    return others_write or link.st_uid not in users or directory.st_uid not in users


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading, never waiting for a pipe. Raise OSError, also for what is not a regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        require_regular(descriptor)
        return open(descriptor, "rb")  # noqa: PTH123  # a descriptor; the caller closes it
    except BaseException:
        os.close(descriptor)
        raise


def require_regular(descriptor: int) -> None:
    """Raise OSError if an open descriptor is no regular file: a directory, a pipe, a device."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


# Descriptors that hold locks.
_HELD: set[int] = set()


def _let_go() -> None:
    """In a child of a fork: close the copies of what the parent holds, or its locks would last as long as the child."""
    for descriptor in _HELD:
        with suppress(OSError):
            os.close(descriptor)
    _HELD.clear()


os.register_at_fork(after_in_child=_let_go)


@contextmanager
def holding(descriptor: int) -> Iterator[None]:
    """Close a descriptor that locks are held through at the end of the block, and in a child of a fork at once."""
    _HELD.add(descriptor)
    try:
        yield
    finally:
        if descriptor in _HELD:  # otherwise this is a child, which has closed it
            _HELD.discard(descriptor)
            with suppress(OSError):  # a child that was forked before this was known has a copy, which would hold it
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


@contextmanager
def locked(directory: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a directory's lock, so that a file in it does not change between reading and writing.

    Excludes other threads and other processes that ask for the same lock; made if missing. The kernel drops
    the lock with the process. If another holder has it, ``on_wait`` is called once, before waiting. Raise
    StoreReadOnlyError if the directory cannot be used.
    """
    make_private_directory(directory)
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError as error:
        raise StoreReadOnlyError(
            f"{directory} cannot be opened: {error.strerror}", hint="check the directory's permissions"
        ) from error
    with holding(descriptor):
        _lock(descriptor, directory, on_wait)
        yield


def _lock(descriptor: int, directory: Path, on_wait: Callable[[], None]) -> None:
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:  # some file systems of other machines have no locks
        raise StoreReadOnlyError(
            f"{directory} cannot be locked: {error.strerror}",
            hint="choose another directory: --data-dir or KLAW_DATA_DIR",
        ) from error


def _fill(descriptor: int, data: bytes) -> None:
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _temporary(path: Path) -> tuple[int, str]:
    """Create a file beside ``path``, to take its place; return its descriptor and its name. Raise OSError."""
    import tempfile  # and half a dozen modules with it, which a search has no need of

    return tempfile.mkstemp(prefix=f"{_TEMPORARY}{path.name}-", dir=path.parent)


def _sweep(path: Path) -> None:
    for leftover in path.parent.glob(f"{escape(_TEMPORARY + path.name)}-*"):
        try:
            if time.time() - leftover.stat().st_mtime > _LEFTOVER_SECONDS:
                leftover.unlink()
        except FileNotFoundError:  # renamed or swept meanwhile
            continue


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: a new file's, or a renamed one's. Raise OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
