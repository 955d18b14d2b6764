"""What differs between systems: how files are opened, locked, replaced and owned; see decision 0099.

Only this module imports ``fcntl`` and ``msvcrt``. ``mypy --platform`` holds the others to what each system has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

LockKind = Literal["exclusive", "shared", "none"]  # a shared one excludes only exclusive ones; "none" lets go
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)  # refuses a link, where the system can

if sys.platform == "win32":  # with the numbers of winbase.h, and the layouts of OVERLAPPED and FILE_RENAME_INFO
    import ctypes
    import msvcrt
    import struct
    import time

    ALWAYS = os.O_BINARY | os.O_NOINHERIT
    #: The bits of a mode that let others write, and that let them do anything: here they say nothing.
    OTHERS_WRITE, OTHERS_USE = 0, 0
    _KERNEL = ctypes.WinDLL("kernel32", use_last_error=True)
    _KERNEL.CreateFileW.restype = ctypes.c_void_p
    # A lock keeps others from its bytes, so it is of one that no file has.
    _AT = struct.pack("<QQIIQ", 0, 0, 0, 1 << 30, 0)

    def opener() -> Callable[[Path | str, int, int], int]:
        """Return what opens a file as ``os.open`` does, but so that it can be replaced while it is open."""
        return lambda path, flags, _: msvcrt.open_osfhandle(_handle(path, flags), flags & (os.O_APPEND | 3) | ALWAYS)

    def _handle(path: Path | str, flags: int, access: int = 0) -> int:
        access = access or {os.O_RDONLY: 1 << 31, os.O_WRONLY: 1 << 30, os.O_RDWR: 3 << 30}[flags & 3]
        how = 3 if not flags & os.O_CREAT else 1 if flags & os.O_EXCL else 4
        made = _KERNEL.CreateFileW(str(path), access, 7, None, how, 1 << 25, None)
        if made in {None, ctypes.c_void_p(-1).value}:
            raise ctypes.WinError(ctypes.get_last_error())
        return int(made)

    def lock(descriptor: int, kind: LockKind) -> None:
        """Lock an open file, or let go. Raise BlockingIOError if somebody prevents it, OSError."""
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
        if kind == "none":
            _KERNEL.UnlockFileEx(handle, 0, 1, 0, _AT)
        elif not _KERNEL.LockFileEx(handle, 3 if kind == "exclusive" else 1, 0, 1, 0, _AT):
            raise BlockingIOError

    def replace(path: Path | str, target: Path) -> None:
        """Give a file the name of another, also if that one is open. Raise OSError."""
        name = str(target.absolute()).encode("utf-16-le")
        what = struct.pack("<QQI", 3, 0, len(name)) + name + bytes(2)
        handle = ctypes.c_void_p(_handle(path, 0, access=1 << 16))
        try:
            for pause in (0.01, 0.1, 1.0, 0.0):  # other programs, such as scanners of viruses, look at a new file
                if _KERNEL.SetFileInformationByHandle(handle, 22, what, len(what)):
                    return
                time.sleep(pause)
            raise ctypes.WinError(ctypes.get_last_error())
        finally:
            _KERNEL.CloseHandle(handle)

    def read_at(descriptor: int, size: int, start: int) -> bytes:
        """Read bytes at a place of an open file; its position may change."""
        os.lseek(descriptor, start, os.SEEK_SET)
        return os.read(descriptor, size)

else:
    import fcntl

    ALWAYS = os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in the place of a file is not waited for
    OTHERS_WRITE, OTHERS_USE = 0o022, 0o077
    _LOCKS = {"exclusive": fcntl.LOCK_EX, "shared": fcntl.LOCK_SH, "none": fcntl.LOCK_UN}

    def opener() -> Callable[[Path | str, int, int], int]:
        """Return ``os.open``."""
        return os.open

    def lock(descriptor: int, kind: LockKind) -> None:
        """Lock an open file, or let go. Raise BlockingIOError if somebody prevents it, OSError."""
        fcntl.flock(descriptor, _LOCKS[kind] | fcntl.LOCK_NB)

    def replace(path: Path | str, target: Path) -> None:
        """Give a file the name of another. Raise OSError."""
        os.replace(path, target)  # noqa: PTH105  # a name is cheaper than a path

    def read_at(descriptor: int, size: int, start: int) -> bytes:
        """Read bytes at a place of an open file; its position may change."""
        return os.pread(descriptor, size, start)
