"""Death inside the n-th write: SQLite's, through a VFS of its own, and Python's, in one sequence.

Counted is everything that changes files: what SQLite writes, syncs, truncates and deletes, and what Klaw's journals
and atomic files do through ``os``. A write is cut in half; everything else is not done at all. What a kill leaves
between two of these calls is what it leaves at the beginning of the next, so these points are all there are.
"""

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from attrs import define, field

_CALLS = ("mkdir", "open", "write", "pwrite", "ftruncate", "fdatasync", "fsync", "replace", "rename", "link", "unlink")


@define
class KillSwitch:
    """Counts the calls that change files; inside number ``target`` (from 0; None: never) the process dies.

    ``report`` is told the name of that call just before.
    """

    report: Callable[[str], None]
    target: int | None = None
    names: list[str] = field(factory=list)
    _vfs: "KillingVfs | None" = None  # registered for as long as it is referred to

    def step(self, name: str, half: Callable[[], object] = lambda: None) -> None:
        """Count a call that is about to happen; if it is the one, do half of it and die."""
        self.names.append(name)
        if len(self.names) - 1 == self.target:
            self.report(name)
            half()
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Count from now on, for good: in this process, SQLite and ``os`` are not the same any more."""
        self._vfs = KillingVfs(self)
        for name in _CALLS:
            setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if name in {"write", "pwrite"}:
                descriptor, data, *place = arguments
                half = partial(real, descriptor, bytes(data)[: len(data) // 2], *place)
                self.step(f"os.{name}", half)
            elif name != "open" or arguments[1] & os.O_CREAT:
                self.step(f"os.{name}")
            return real(*arguments, **options)

        return call


class KillingVfs(apsw.VFS):
    """The system's VFS, counted; every later connection of the process goes through it."""

    def __init__(self, switch: KillSwitch) -> None:
        self._switch = switch
        self._base = apsw.vfs_names()[0]
        super().__init__("klaw-killing", self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return KillingFile(self._switch, self._base, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802
        self._switch.step(f"delete {_shown(filename)}")
        super().xDelete(filename, syncdir)


class KillingFile(apsw.VFSFile):
    """A file of SQLite's, counted."""

    def __init__(self, switch: KillSwitch, base: str, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._switch = switch
        self._shown = _shown(name.filename() if isinstance(name, apsw.URIFilename) else name or "temporary")
        super().__init__(base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._switch.step(f"write {self._shown}", partial(super().xWrite, data[: len(data) // 2], offset))
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._switch.step(f"sync {self._shown}")
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._switch.step(f"truncate {self._shown}")
        super().xTruncate(newsize)


def _shown(name: str) -> str:
    return Path(name).name
