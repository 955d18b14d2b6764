"""I/O errors: the n-th call fails as on a full or failing disk, once or from then on, and the process lives on.

Counted are SQLite's calls, through a VFS, and those of Klaw's own files, through ``os``, in one sequence. Nothing
of a call that fails is done; of one that finds the disk full, the first half.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from attrs import define, field

from klaw_core import KlawError, StoreError, StoreFullError

#: What can fail, which calls it concerns, and what a caller must be told.
KINDS: dict[str, tuple[frozenset[str], type[KlawError]]] = {
    "full": (frozenset({"write"}), StoreFullError),
    "sync": (frozenset({"sync"}), StoreError),
    "write": (frozenset({"write", "truncate"}), StoreError),
    "read": (frozenset({"read"}), KlawError),  # a search may be what fails: RetrievalError
    "open": (frozenset({"open"}), StoreError),
}
_OS_CALLS = {"open": "open", "write": "write", "fdatasync": "sync", "fsync": "sync"}


@define
class Fault:
    """Lets the call number ``target`` (from 0; None: none) of those that ``kind`` concerns fail."""

    kind: str
    root: Path
    target: int | None = None
    sticky: bool = False
    count: int = 0
    calls: Counter[str] = field(factory=Counter)
    _vfs: "FailingVfs | None" = None  # registered for as long as it is referred to
    _restore: list[Callable[[], None]] = field(factory=list)

    def hits(self, call: str) -> bool:
        """Count a call; return whether it is to fail."""
        self.calls[call] += 1
        if call not in KINDS[self.kind][0]:
            return False
        self.count += 1
        return self.target is not None and (self.count > self.target if self.sticky else self.count - 1 == self.target)

    def install(self) -> None:
        """Count and fail from now on, until :meth:`clear`."""
        self._vfs = FailingVfs(self)
        for name, call in _OS_CALLS.items():
            real = getattr(os, name)
            setattr(os, name, self._failing(name, call, real))
            self._restore.append(lambda name=name, real=real: setattr(os, name, real))

    def clear(self) -> None:
        """Let nothing fail any more. Connections that are open go on through the VFS."""
        self.target = None
        while self._restore:
            self._restore.pop()()

    def _failing(self, name: str, call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if not self._concerns(name, arguments) or not self.hits(call):
                return real(*arguments, **options)
            if self.kind == "full":
                written = real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                if written:
                    return written  # as write(2) does on a disk that fills up; the next call says so
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        return wrapped

    def _concerns(self, name: str, arguments: tuple[Any, ...]) -> bool:
        """Return whether a call is about a file below the root, and for ``open`` about one to be written."""
        if name == "open":
            return bool(arguments[1] & (os.O_WRONLY | os.O_RDWR)) and str(arguments[0]).startswith(str(self.root))
        return str(Path(f"/proc/self/fd/{arguments[0]}").readlink()).startswith(str(self.root))


class FailingVfs(apsw.VFS):
    """The system's VFS, in which calls fail; every later connection of the process goes through it."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._base = apsw.vfs_names()[0]
        super().__init__("klaw-failing", self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if self._fault.hits("open"):
            raise apsw.CantOpenError
        return FailingFile(self._fault, self._base, name, flags)


class FailingFile(apsw.VFSFile):
    """A file of SQLite's whose calls fail."""

    def __init__(self, fault: Fault, base: str, name: Any, flags: list[int]) -> None:
        self._fault = fault
        super().__init__(base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        if self._fault.hits("read"):
            raise apsw.IOError
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._fault.hits("write"):
            if self._fault.kind == "full":
                super().xWrite(data[: len(data) // 2], offset)
                raise apsw.FullError
            raise apsw.IOError
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._fault.hits("sync"):
            raise apsw.IOError
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        if self._fault.hits("truncate"):
            raise apsw.IOError
        super().xTruncate(newsize)
