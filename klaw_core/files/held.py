"""Files that are open, and locks of files that are held, during a block."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from klaw_core.errors import StoreLockedError
from klaw_core.files.platform import ALWAYS, NO_FOLLOW, LockKind, lock, opener, replace
from klaw_core.holds import Hold

#: How the name of a temporary file begins.
TEMPORARY = ".klaw-"
#: Seconds that a file lock is waited for, if those who hold it keep it only while they read or write one file.
FILE_LOCK_SECONDS = 60.0

# The first and the longest pause between two attempts to lock.
_PAUSES = 0.0005, 0.02


class Descriptor(Hold[int]):
    """The descriptor of a file, closed at the end of the block. A pipe is not waited for. Raise OSError."""

    __slots__ = ("_flags", "_open", "path")

    def __init__(self, path: Path | str, flags: int) -> None:
        self.path = path
        self._flags = flags | ALWAYS
        self._open: list[int] = []

    def take(self) -> int:
        """Open the file."""
        return self.open()

    def open(self, *, follow: bool = False) -> int:
        """Open the file; with ``follow``, also if its name is a link."""
        flags = self._flags & ~NO_FOLLOW if follow else self._flags
        # One call opens and stores it: an exception after `os.open` itself would lose the number.
        self._open.extend(map(opener(), (self.path,), (flags,), (0o600,)))
        return self._open[0]

    def into_file(self, mode: str = "rb") -> BinaryIO:
        """Return a file object (binary), which from now on closes the descriptor."""
        return next(map(open, map(self._open.pop, (0,)), (mode,)))  # type: ignore[return-value]  # a binary mode

    def give_back(self) -> None:
        """Close the file."""
        close_all(self._open)

    def leave(self) -> None:
        """Close the child's copy; otherwise a lock of it would outlive the parent."""
        close_all(self._open)


def close_all(descriptors: list[int]) -> None:
    """Close descriptors and empty the list, each in one call: closing a number twice could close another's file."""
    list(map(os.close, map(descriptors.pop, range(len(descriptors) - 1, -1, -1))))


class Temporary(Descriptor):
    """A private file next to ``path``, for its next content: removed at the end of the block, unless it replaced it.

    The block's value is its descriptor. With ``fixed``, it always has the same name, so that a crash leaves at most
    one. Raise OSError.
    """

    __slots__ = ("_for", "_is_made")

    def __init__(self, path: Path, *, fixed: str = "") -> None:
        name = f"{TEMPORARY}{path.name}-{fixed or os.urandom(8).hex()}"
        super().__init__(path.with_name(name), os.O_WRONLY | os.O_CREAT | NO_FOLLOW | (0 if fixed else os.O_EXCL))
        self._for: Path | None = path
        self._is_made = False

    def take(self) -> int:
        """Create it."""
        descriptor = self.open()
        self._is_made = True  # an exception before this line leaves the descriptor, which says the same
        os.ftruncate(descriptor, 0)
        return descriptor

    def replace(self, *, flush: bool = True) -> None:
        """Flush it, and let it replace the file. Raise OSError if that is a device, a pipe or a directory."""
        assert self._for is not None
        with suppress(FileNotFoundError):  # `rename` would replace a device without asking
            require_regular(self._for)
        self._finish(flush=flush)
        replace(self.path, self._for)
        self._for = None

    def add(self) -> None:
        """Flush it, and give it the name of the file. Raise FileExistsError: unlike a replacement, never replace."""
        assert self._for is not None
        self._finish(flush=True)
        os.link(self.path, self._for)

    def _finish(self, *, flush: bool) -> None:
        for descriptor in self._open if flush else ():
            os.fsync(descriptor)
        close_all(self._open)  # now, because a close may report that a write has failed

    def give_back(self) -> None:
        """Remove and close it."""
        if self._for is not None and (self._open or self._is_made):
            with suppress(OSError):
                os.unlink(self.path)  # noqa: PTH108  # as above
        super().give_back()


class FileLock(Descriptor):
    """The exclusive lock of a file or directory; the block's value is its descriptor.

    It excludes other threads and processes. The kernel releases it with the process. If somebody holds it, ``on_wait``
    is called once before waiting. Raise OSError, or StoreLockedError after the limit.
    """

    __slots__ = ("_limit", "_on_wait")

    def __init__(
        self,
        path: Path | str,
        flags: int = os.O_RDONLY,
        *,
        on_wait: Callable[[], None] = lambda: None,
        limit_seconds: float | None = None,
    ) -> None:
        super().__init__(path, flags)
        self._on_wait = on_wait
        self._limit = FILE_LOCK_SECONDS if limit_seconds is None else limit_seconds

    def take(self) -> int:
        """Open and lock it."""
        descriptor = self.open()
        self.lock(descriptor)
        return descriptor

    def lock(self, descriptor: int) -> None:
        """Lock the open file. It is tried again and again, because the system's own way of waiting has no limit."""
        deadline, (pause, longest) = time.monotonic() + self._limit, _PAUSES
        waits = False
        while not try_lock(descriptor, "exclusive"):
            if not waits:
                self._on_wait()
                waits = True
            if time.monotonic() >= deadline:
                raise StoreLockedError(
                    f"{self.path} is locked by {lock_holder(descriptor)} for more than {self._limit:g} seconds",
                    hint="wait for it to finish, then try again",
                )
            time.sleep(pause)
            pause = min(pause * 2, longest)

    def give_back(self) -> None:
        """Unlock and close it."""
        for descriptor in self._open:  # unlock, because a child that was just forked has a copy of the descriptor
            with suppress(OSError):
                lock(descriptor, "none")
        super().give_back()


def try_lock(descriptor: int, kind: LockKind) -> bool:
    """Lock an open file unless somebody prevents it, or let go; return whether. Raise OSError."""
    try:
        lock(descriptor, kind)
    except BlockingIOError:
        return False
    return True


def lock_holder(descriptor: int) -> str:
    """Return who holds the lock of an open file, as far as the system says it (Linux)."""
    if sys.platform != "linux":
        return "another process"
    status = os.fstat(descriptor)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
        holders = [int(line[4]) for line in lines if line[1] == "FLOCK" and line[5] == place]
        if os.getpid() in holders:
            return "this process"
        name = Path(f"/proc/{holders[0]}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError, IndexError):
        return "another process"
    return f"process {holders[0]} ({name})"


def require_regular(file: int | Path) -> None:
    """Raise OSError if a name or an open descriptor is not that of a file but of a directory, a pipe or a device."""
    mode = os.stat(file).st_mode  # noqa: PTH116  # also of a descriptor
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
