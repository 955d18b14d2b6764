"""Make this process like one on Windows, as far as Klaw can see: `import like_windows`, before anything of Klaw.

What Windows does not have is gone: modules such as ``fcntl``, and functions and flags of ``os``, ``signal``, ``socket``
and ``time``. What it refuses is refused: to open a directory, to replace or remove a file that is open, unless whoever
opened it allows that. The calls that Klaw makes to Windows itself are answered from their documentation, and refuse
what it does not allow. Libraries are imported before, since they are not those of Windows.
"""
# ruff: noqa: N802, PLR0917, PLW0108, PTH112, PTH115, PTH208  # Windows names its functions so

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import fcntl
import importlib
import os
import shutil
import signal
import socket
import struct
import sys
import time
import types

LIBRARIES = (
    *("apsw", "attrs", "cattrs", "click", "click.testing", "httpx", "jsonschema", "msgspec", "numpy", "onnxruntime"),
    *("platformdirs", "pluggy", "regex", "rich.console", "rich.live", "rich.progress", "rich.table", "sqlite_vec"),
    *("tokenizers", "tomlkit", "yaml"),
)
GONE = {
    os: """chown chroot fchmod fchown fdatasync fork forkpty geteuid getegid getgid getloadavg getpgid getpgrp getuid
        killpg lchown mkfifo mknod posix_fadvise posix_fallocate pread preadv pwrite pwritev register_at_fork
        sched_getaffinity sendfile setsid statvfs sync sysconf uname O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC
        ST_RDONLY""",
    signal: "SIGHUP SIGKILL SIGUSR1 SIGUSR2 SIGALRM SIGPIPE alarm pause pthread_sigmask setitimer sigwait",
    socket: "AF_UNIX",
    time: "CLOCK_BOOTTIME CLOCK_MONOTONIC clock_gettime",
}
MODULES = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
_STATVFS = os.statvfs
_OPEN, _FSYNC, _REPLACE, _UNLINK = os.open, os.fsync, os.replace, os.unlink
_READ, _WRITE, _DELETE, _BACKUP_SEMANTICS = 1 << 31, 1 << 30, 1 << 16, 1 << 25
_CODES = {errno.ENOENT: 2, errno.ENOTDIR: 3, errno.EACCES: 5, errno.EEXIST: 80}
#: Descriptors from this one on are of files that may be replaced and removed while they are open.
_SHARED_FROM = 500
_last = [0]


def places() -> dict[int, str]:
    """Return the open files by their descriptors."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return found


def _refuse_open(path, *, unless_shared: bool) -> None:
    real = os.path.realpath(path)
    users = [number for number, place in places().items() if place == real]
    if [number for number in users if number < _SHARED_FROM or not unless_shared]:
        raise PermissionError(errno.EACCES, "The process cannot access the file because it is in use", str(path))


def _open(path, flags, mode=0o777, *, dir_fd=None):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return _OPEN(path, flags & ~(os.O_BINARY | os.O_NOINHERIT), mode, dir_fd=dir_fd)


def _replace(source, target, **more):
    if os.path.lexists(target):
        _refuse_open(target, unless_shared=False)
    _REPLACE(source, target, **more)


def _rename(source, target, **more):
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(source), None, str(target))
    _REPLACE(source, target, **more)


def _fsync(descriptor):
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & 3 == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    _FSYNC(descriptor)


def _unlink(path, **more):
    _refuse_open(path, unless_shared=True)
    _UNLINK(path, **more)


class Kernel:
    """The functions of kernel32 that Klaw calls."""

    def __init__(self, name: str, *, use_last_error: bool) -> None:
        assert (name, use_last_error) == ("kernel32", True)
        self.CreateFileW = lambda *given: self._create(*given)

    def _create(self, path, access, share, security, how, flags, template):
        assert (type(path), share, security, template) == (str, 7, None, None)
        assert flags == _BACKUP_SEMANTICS
        assert self.CreateFileW.restype is ctypes.c_void_p
        writes, reads = bool(access & _WRITE), bool(access & _READ)
        assert access in {_READ, _WRITE, _READ | _WRITE, _DELETE}
        made = {1: os.O_CREAT | os.O_EXCL, 3: 0, 4: os.O_CREAT}[how]
        try:
            if os.path.isdir(path) and writes:
                raise PermissionError(errno.EACCES, "")
            kind = os.O_RDWR if writes and reads else os.O_WRONLY if writes else os.O_RDONLY
            descriptor = _OPEN(path, kind | made, 0o600)
        except OSError as error:
            _last[0] = _CODES[error.errno]
            return ctypes.c_void_p(-1).value
        try:
            return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _SHARED_FROM)
        finally:
            os.close(descriptor)

    def CloseHandle(self, handle):
        os.close(handle.value)
        return 1

    def LockFileEx(self, handle, flags, reserved, low, high, overlapped):
        assert (reserved, low, high) == (0, 1, 0)
        assert struct.unpack("<QQIIQ", overlapped) == (0, 0, 0, 1 << 30, 0)
        kind = {1: fcntl.LOCK_SH, 3: fcntl.LOCK_EX}[flags]
        try:
            fcntl.flock(handle.value, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            _last[0] = 33
            return 0
        return 1

    def UnlockFileEx(self, handle, reserved, low, high, overlapped):
        assert (reserved, low, high, len(overlapped)) == (0, 1, 0, 32)
        fcntl.flock(handle.value, fcntl.LOCK_UN)
        return 1

    def SetFileInformationByHandle(self, handle, kind, information, size):
        assert (kind, size) == (22, len(information))
        flags, root, length = struct.unpack_from("<QQI", information)
        assert (flags, root, length) == (3, 0, size - 20 - 2)
        target = information[20:-2].decode("utf-16-le")
        try:
            _refuse_open(target, unless_shared=True)
        except PermissionError:
            _last[0] = _CODES[errno.EACCES]
            return 0
        _REPLACE(os.readlink(f"/proc/self/fd/{handle.value}"), target)
        return 1


def _open_osfhandle(handle, flags):
    if flags & os.O_APPEND:
        fcntl.fcntl(handle, fcntl.F_SETFL, fcntl.fcntl(handle, fcntl.F_GETFL) | os.O_APPEND)
    assert flags & os.O_BINARY
    assert flags & os.O_NOINHERIT
    return handle


def _error(code):
    number = {code: number for number, code in _CODES.items()}[code]
    return OSError(number, os.strerror(number))


def _disk_usage(path):
    found = _STATVFS(path)
    return types.SimpleNamespace(free=found.f_bavail * found.f_frsize, total=found.f_blocks * found.f_frsize)


def _become() -> None:
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:  # of a plugin that is not here
            continue
    os.O_BINARY, os.O_NOINHERIT = 1 << 28, 1 << 29
    os.open, os.fsync = _open, _fsync
    os.replace, os.rename, os.unlink, os.remove = _replace, _rename, _unlink, _unlink
    for module, names in GONE.items():
        for name in names.split():
            vars(module).pop(name, None)
    for name in MODULES:
        sys.modules[name] = None  # an import raises ModuleNotFoundError
    msvcrt = types.ModuleType("msvcrt")
    msvcrt.get_osfhandle, msvcrt.open_osfhandle = lambda descriptor: descriptor, _open_osfhandle
    sys.modules["msvcrt"] = msvcrt
    ctypes.WinDLL, ctypes.get_last_error, ctypes.WinError = Kernel, lambda: _last[0], _error
    shutil.disk_usage, shutil._use_fd_functions = _disk_usage, False  # what Windows has instead
    sys.platform = "win32"


_become()
