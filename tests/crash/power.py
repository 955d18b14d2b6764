"""Power cuts: what a disk may hold when only what was flushed is sure to be on it.

A :class:`Recorder` notes, in one sequence, everything that a process does to files: what SQLite writes, syncs,
truncates and deletes, and what Klaw's journals and atomic files do through ``os``. A :class:`Disk` replays that up
to any moment and says what could be found afterwards:

- bytes that were flushed (a file's fsync or fdatasync, SQLite's xSync) are there;
- each write and truncation since is there, or is not, whatever came later (mode ``dropped``); or of a
  write only some sectors are (mode ``torn``); or nothing unflushed is there at all (mode ``lost``);
- names (a new file, a rename, a deletion) survive in their order, up to some point, as in a file system with a
  journal; all of them before the directory's last fsync do.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import apsw
from attrs import define, field

MODES = ("lost", "dropped", "torn")
_SECTOR = 512
_INTERCEPTED = ("open", "write", "fdatasync", "fsync", "ftruncate", "replace", "rename", "link", "unlink", "mkdir")

#: What was done (``write``, ``sync`` …), to which path, and with what.
Step = tuple[Any, ...]


@define
class Recorder:
    """Notes what this process does to the files below ``root``; ``install`` is for good."""

    root: Path
    steps: list[Step] = field(factory=list)
    _vfs: "RecordingVfs | None" = None  # registered for as long as it is referred to
    #: What was asked for before, as most steps are about few files.
    _names: dict[str, str | None] = field(factory=dict)
    #: Those who do steps to the same files, each in its turn.
    others: Any = None

    def in_turn(self, do: Callable[[], Any]) -> Any:
        """Do a step and note it, while no other process does one."""
        return do() if self.others is None else self.others.in_turn(do)

    def note(self, what: str, path: str | Path, *details: Any) -> None:
        """Add a step, unless it is about a file elsewhere."""
        name = self._name(str(path))
        if name is not None:
            self.steps.append((what, name, *details))
            if self.others is not None:
                self.others.add(self.steps[-1])

    def _name(self, path: str) -> str | None:
        """Return the name of a file below the root, or None if it is elsewhere."""
        if path not in self._names:
            is_below = Path(path).is_relative_to(self.root)
            self._names[path] = str(Path(path).relative_to(self.root)) if is_below else None
        return self._names[path]

    def install(self) -> None:
        """Record from now on: SQLite through a VFS, Python through ``os``."""
        self._vfs = RecordingVfs(self)
        for name in _INTERCEPTED:
            setattr(os, name, self._noted(name, getattr(os, name)))

    def _noted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            before = self._before(name, arguments)
            result = real(*arguments, **options)
            if before is not None:
                self.note(*before)
            return result

        return self._taking_turns(call)

    def _taking_turns(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def in_turn(*arguments: Any, **options: Any) -> Any:
            return self.in_turn(lambda: call(*arguments, **options))

        return call if self.others is None else in_turn

    def _before(self, name: str, arguments: tuple[Any, ...]) -> Step | None:
        """Return the step that a call will be, as it must be read off before the call."""
        if name == "open":
            new = arguments[1] & os.O_CREAT and not os.path.exists(arguments[0])  # noqa: PTH110  # maybe no str
            return ("create", arguments[0]) if new else None
        if name == "write":
            place = _opened(arguments[0])
            return ("write", place, _position(arguments[0]), bytes(arguments[1]))
        if name == "ftruncate":
            return ("truncate", _opened(arguments[0]), arguments[1])
        if name in {"fdatasync", "fsync"}:
            return ("sync", _opened(arguments[0]))
        if name in {"replace", "rename", "link"}:
            to = Path(arguments[1])
            inside = to.relative_to(self.root) if to.is_relative_to(self.root) else to
            return (name.replace("rename", "replace"), arguments[0], str(inside))
        return (name, arguments[0])


def _position(descriptor: int) -> int:
    """Return where the next write goes, without moving it."""
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
        return os.fstat(descriptor).st_size
    return os.lseek(descriptor, 0, os.SEEK_CUR)


def _opened(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


class RecordingVfs(apsw.VFS):
    """The system's VFS, recorded; every later connection of the process goes through it."""

    _file: "type[RecordingFile]"

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._base = apsw.vfs_names()[0]
        super().__init__("klaw-recording", self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return self._recorder.in_turn(lambda: self._opened(name, flags))

    def _opened(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or "temporary"
        if not Path(path).exists():
            self._recorder.note("create", path)
        return self._file(self._recorder, path, self._base, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802
        def delete() -> None:
            apsw.VFS.xDelete(self, filename, syncdir)
            self._recorder.note("unlink", filename)
            if syncdir:
                self._recorder.note("sync", Path(filename).parent)

        self._recorder.in_turn(delete)


class RecordingFile(apsw.VFSFile):
    """A file of SQLite's, recorded.

    With the first sync of a log, SQLite flushes its directory too, whoever created the log (``os_unix.c``, DIRSYNC).
    """

    def __init__(self, recorder: Recorder, path: str, base: str, name: Any, flags: list[int]) -> None:
        self._recorder, self._path = recorder, path
        self._flushes_directory = path.endswith(("-wal", "-journal"))
        super().__init__(base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        def write() -> None:
            apsw.VFSFile.xWrite(self, data, offset)
            self._recorder.note("write", self._path, offset, bytes(data))

        self._recorder.in_turn(write)

    def xSync(self, flags: int) -> None:  # noqa: N802
        def sync() -> None:
            apsw.VFSFile.xSync(self, flags)
            self._recorder.note("sync", self._path)
            if self._flushes_directory:
                self._recorder.note("sync", Path(self._path).parent)
                self._flushes_directory = False

        self._recorder.in_turn(sync)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        def truncate() -> None:
            apsw.VFSFile.xTruncate(self, newsize)
            self._recorder.note("truncate", self._path, newsize)

        self._recorder.in_turn(truncate)


RecordingVfs._file = RecordingFile


@define
class _File:
    """A file's flushed bytes, and what was done to it since."""

    flushed: bytes = b""
    since: list[Step] = field(factory=list)


class Disk:
    """The files below a directory, replayed from what was there and what was recorded."""

    def __init__(self, template: Path) -> None:
        self._names = {
            str(path.relative_to(template)): _File(path.read_bytes())
            for path in template.rglob("*")
            if path.is_file() and not path.name.endswith("-shm")  # never flushed, and made anew from the log
        }
        self._directories = {str(path.relative_to(template)) for path in template.rglob("*") if path.is_dir()}
        self._flushed_names = dict(self._names)
        self._naming: list[Step] = []

    def play(self, steps: list[Step]) -> None:
        """Let these steps happen, one after the other."""
        for what, name, *details in steps:
            if what in {"write", "truncate"}:
                self._names.setdefault(name, _File()).since.append((what, *details))
            elif what == "sync" and name in self._names:
                file = self._names[name]
                file.flushed, file.since = _applied(file.flushed, file.since), []
            elif what == "sync":
                self._flush_names(name)
            else:
                step = (what, name, self._names.get(name) if what in {"link", "replace"} else _File(), *details)
                self._naming.append(step)
                _rename(self._names, step)

    def _flush_names(self, directory: str) -> None:
        """Make sure of every name of a directory; what was done before in others is in the same journal."""
        self._directories.add(directory)  # it stays when its last file goes
        last = max((at for at, step in enumerate(self._naming) if _directory(step) == directory), default=-1)
        for step in self._naming[: last + 1]:
            _rename(self._flushed_names, step)
        del self._naming[: last + 1]

    def now(self) -> dict[str, bytes]:
        """Return what the files have for those who read them at this moment."""
        return {name: _applied(file.flushed, file.since) for name, file in self._names.items()}

    def restore(self, directory: Path, mode: str, chance: Random) -> None:
        """Write what could be found after a power cut at this moment."""
        names = dict(self._flushed_names)
        for step in self._naming[: 0 if mode == "lost" else chance.randint(0, len(self._naming))]:
            _rename(names, step)
        for name in self._directories:
            (directory / name).mkdir(parents=True, exist_ok=True)
        survived = {id(file): _survived(file, mode, chance) for file in names.values()}
        for name, file in names.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(survived[id(file)])
            (directory / name).chmod(0o600)


def _rename(names: dict[str, _File], step: Step) -> None:
    what, name, file, *to = step
    if what == "create":
        names[name] = file
    elif what == "unlink":
        names.pop(name, None)
    elif what in {"link", "replace"} and file is not None:
        names[to[0]] = file
        if what == "replace":
            names.pop(name, None)


def _directory(step: Step) -> str:
    return str(Path(step[-1] if step[0] in {"link", "replace"} else step[1]).parent)


def _survived(file: _File, mode: str, chance: Random) -> bytes:
    if mode == "lost":
        return file.flushed
    share = chance.random()
    kept = [step for step in file.since if chance.random() < share]
    return _applied(file.flushed, [_torn(step, chance) if mode == "torn" else step for step in kept])


def _torn(step: Step, chance: Random) -> Step:
    """Leave some sectors of a write out; what is smaller than a sector is torn at a byte, as an append may be."""
    if step[0] != "write" or chance.random() < 1 / 2:
        return step
    _, offset, data = step
    if len(data) <= _SECTOR:
        return ("write", offset, data[: chance.randint(0, len(data))])
    sectors = range(0, len(data), _SECTOR)
    return ("sectors", [(offset + at, data[at : at + _SECTOR]) for at in sectors if chance.random() < 1 / 2])


def _applied(data: bytes, steps: list[Step]) -> bytes:
    changed = bytearray(data)
    for step in steps:
        if step[0] == "truncate":
            del changed[step[1] :]
            changed.extend(bytes(step[1] - len(changed)))
            continue
        for offset, part in step[1] if step[0] == "sectors" else [step[1:]]:
            changed.extend(bytes(max(0, offset - len(changed))))
            changed[offset : offset + len(part)] = part
    return bytes(changed)
