"""The world of one process of a life: its clock, its dice and its disk come from the seed.

What decides what a process does is replaced: the clocks, sleeping (SQLite's naps too), randomness (Python's, SQLite's,
of temporary names), and what a file system says of a file besides its content. One seed then writes the same bytes in
the same order each time, which ``--twice`` checks over every step.
"""

import errno
import fcntl
import hashlib
import os
import pickle
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from inspect import isgenerator
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import apsw
import turns
from dates import show
from power import Recorder, RecordingFile, RecordingVfs

from klaw_memories import saved
from klaw_notes import walking

#: How a process ends that crashed or lost its power, and one in which a lock would be waited for without end.
CRASHED, STUCK = 99, 98
#: How a process ends that would wait for another one, which waits for it.
WAITING = 97
_STEPS, _BESIDE = "steps", "steps-beside"
_TURNS = {"fdatasync", "fsync", "replace", "rename", "link", "unlink"}
_COLLISIONS = 3  # of one text
_JULIAN_1970 = 210_866_760_000_000  # milliseconds from the epoch of SQLite to that of Unix
_sleep = time.sleep
_SAID: list[str] = []


def said_on_stderr() -> list[str]:
    """Return what Python has printed since the last call of exceptions that nobody caught, without reports of files.

    A generator that is closed is no place of a signal, though the profiler reports it as one.
    """
    said, _SAID[:] = _SAID[:], []
    return said


def listen_to_stderr() -> None:
    """Keep what Python would print of exceptions that nobody catches, for good."""

    def note(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, ResourceWarning) and not isgenerator(unraisable.object):
            _SAID.append(f"{unraisable.err_msg}: {unraisable.exc_value!r}")

    sys.unraisablehook = note
    threading.excepthook = lambda failed: _SAID.append(f"in a thread: {failed.exc_value!r}")


class Clock:
    """The wall clock, which an operation may set back, and the monotonic one, which only goes on."""

    def __init__(self, wall: float, *, waits: bool = False) -> None:
        self.wall, self.monotonic = wall, 1000.0
        #: Whether time is real but for the wall clock, because another process has to be waited for.
        self.waits = waits

    def go_on(self, seconds: float) -> None:
        """Let time pass, and the other thread go on, if two take turns."""
        if self.waits:
            _sleep(seconds)
        turns.give_way()
        self.wall += seconds
        self.monotonic += seconds

    def install(self) -> None:
        """Show this time to everything in the process, for good."""
        time.time = lambda: self.wall
        time.time_ns = lambda: int(self.wall * 1e9)
        if not self.waits:
            time.monotonic = time.perf_counter = lambda: self.monotonic
            time.sleep = self.go_on
        show(lambda: self.wall)


class Files:
    """What a file system says of files besides content: numbers in the order of sight, and times that were set."""

    def __init__(self, first: int = 0) -> None:
        self._seen: dict[int, int] = {}
        self._first = first

    def install(self) -> None:
        """Show this to what reads notes."""
        real, seen, first = walking.file_state, self._seen, self._first

        def state(status: os.stat_result, now: int) -> str:
            number = seen.setdefault(status.st_ino, first + len(seen))
            size, changed = status.st_size, status.st_mtime_ns
            return real(SimpleNamespace(st_ino=number, st_size=size, st_mtime_ns=changed, st_ctime_ns=changed), now)

        walking.file_state = state

    def forget(self, path: Path) -> None:
        """Forget a file before it is deleted: its number may be used again."""
        self._seen.pop(path.stat().st_ino, None)


def make_ids_collide() -> None:
    """Let the ids of many saved texts be the same at first: 16 in place of 2**128, which would never be met.

    After some attempts a text gets an id of its own: a day may have more than 16 texts.
    """
    whole = saved.text_hash

    def collide(text: str) -> str:
        attempt = text.split("\0")[3:]
        return whole(text) if attempt and int(attempt[0]) >= _COLLISIONS else whole(text)[:1] * 64

    saved.text_hash = collide


def seed_dice(seed: str, *, is_alone: bool = True) -> Random:
    """Take every source of randomness of the process from a seed; return the dice.

    Whoever is not alone keeps the number of the process, by which others know whether it lives.
    """
    dice = Random(seed)
    os.urandom = dice.randbytes
    random._urandom = dice.randbytes  # of `secrets` and `SystemRandom`
    random.seed(dice.random())
    process = dice.randrange(10**4, 10**5)
    if is_alone:
        os.getpid = lambda: process  # written into the lock of a rebuild
    names: Iterator[str] = (f"{number:08d}" for number in count())
    tempfile._get_candidate_names = lambda: names
    return dice


class Disk(Recorder):
    """Records and hashes each step below a directory; at one of them the process crashes, or the disk is full.

    ``fault`` is ``("crash" or "power" or "full", step, how many steps)``; steps count from :meth:`expect` on, and so do
    ``turns``: flushes, changes of names, and the steps that follow them. ``beside``: another process stands still in an
    operation meanwhile, and would keep this one waiting for a lock.
    """

    dice: Random
    clock: Clock

    def __init__(self, root: Path, dice: Random, clock: Clock, *, beside: bool = False) -> None:
        super().__init__(root)
        self.dice, self.clock, self.beside = dice, clock, beside
        self.digest, self.count, self.turns = hashlib.sha256(), 0, 0
        self.trace: list[str] | None = None
        self._fault: tuple[str, int, int] | None = None
        self._counts_turns = self._follows_turn = False
        #: Whether the disk has been full since :meth:`expect`.
        self.has_failed = False

    def expect(self, fault: tuple[str, int, int] | None, *, is_turn: bool = False) -> None:
        """Count from now on, and fail as told; with ``is_turn``, only turns count."""
        self.count, self.turns, self._fault, self.has_failed = 0, 0, fault, False
        self._counts_turns, self._follows_turn = is_turn, False

    def die(self, kind: str) -> None:
        """Crash, or lose the power."""
        if kind != "crash":
            self.keep_steps(_STEPS)
        os._exit(CRASHED)

    def keep_steps(self, name: str = _BESIDE) -> None:
        """Keep the steps so far for another process."""
        with open(self.root.parent / name, "wb") as file:  # noqa: PTH123  # `os` is recorded
            pickle.dump(self.steps, file)

    def add_steps(self) -> None:
        """Add the steps of another process, which has done them just now."""
        self.steps += recorded_steps(self.root.parent, _BESIDE)

    def install(self) -> None:
        """Record from now on, for good."""
        super().install()
        self._vfs = _Vfs(self)
        lock = fcntl.flock
        apsw.randomness(0)  # SQLite's generator starts anew, from xRandomness
        turns.install()
        if self.clock.waits:
            return

        def flock(file: Any, operation: int) -> None:
            if operation & (fcntl.LOCK_NB | fcntl.LOCK_UN):
                lock(file, operation)
                return
            while True:
                try:
                    lock(file, operation | fcntl.LOCK_NB)
                except BlockingIOError:  # this process holds it, so that it would wait for itself
                    if turns.give_way():
                        continue
                    if self.beside:
                        self.keep_steps()
                    os._exit(WAITING if self.beside else STUCK)
                return

        fcntl.flock = flock

    def before(
        self,
        path: str | Path,
        half: Callable[[], object] = lambda: None,
        *,
        is_write: bool = False,
        is_turn: bool = False,
    ) -> None:
        """Count a step that is about to happen, and fail if it is the one. ``half`` writes half of it."""
        if not str(path).startswith(str(self.root)):
            return
        number, turn, half = self.count, self.turns, self._may_be_torn(half)
        counts = is_turn or self._follows_turn
        self._follows_turn = is_turn
        self.count, self.turns = number + 1, turn + counts
        if self._fault is None or (self._counts_turns and not counts):
            return
        number = turn if self._counts_turns else number
        kind, first, steps = self._fault
        if kind == "full":
            if is_write and first <= number < first + steps:
                half()
                self.has_failed = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif number == first:
            if kind == "crash":
                half()
            self.die(kind)

    def note(self, what: str, path: str | Path, *details: Any) -> None:
        """Add a step, and hash it. Shared memory of SQLite is never flushed."""
        before = len(self.steps)
        super().note(what, path, *details)
        if len(self.steps) > before and not str(path).endswith("-shm"):
            told = b"\0".join(part if isinstance(part, bytes) else repr(part).encode() for part in self.steps[-1])
            self.digest.update(told)
            if self.trace is not None:
                self.trace.append(f"{what} {self.steps[-1][1]} {hashlib.sha256(told).hexdigest()[:12]}")

    def _may_be_torn(self, half: Callable[[], object]) -> Callable[[], object]:
        """Return what writes half of a step. In company it is left out, as it is in no record."""
        return half if self.others is None else lambda: None

    def _noted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            step = self._before(name, arguments)
            if step is not None:
                data = bytes(arguments[1]) if name == "write" else b""
                half = (lambda: real(arguments[0], data[: len(data) // 2])) if data else (lambda: None)
                self.before(step[1], half, is_write=name == "write", is_turn=name in _TURNS)
            result = real(*arguments, **options)
            if step is not None:
                self.note(*step)
            return result

        return self._taking_turns(call)


def recorded_steps(root: Path, name: str = _STEPS) -> list[Any]:
    """Return the steps that a process noted before its power was cut."""
    return list(pickle.loads((root / name).read_bytes()))  # our own


class _Vfs(RecordingVfs):
    def __init__(self, disk: Disk) -> None:
        self._recorder: Disk = disk
        self._base = apsw.vfs_names()[-1] if len(apsw.vfs_names()) == 1 else _system_vfs()
        apsw.VFS.__init__(self, "klaw-simulated", self._base, makedefault=True)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802
        self._recorder.before(filename, is_turn=True)
        super().xDelete(filename, syncdir)

    def xSleep(self, microseconds: int) -> int:  # noqa: N802
        self._recorder.clock.go_on(microseconds / 1e6)
        return microseconds

    def xRandomness(self, numbytes: int) -> bytes:  # noqa: N802
        return self._recorder.dice.randbytes(numbytes)

    def xCurrentTimeInt64(self) -> int:  # noqa: N802
        return int(self._recorder.clock.wall * 1000) + _JULIAN_1970


def _system_vfs() -> str:
    """Return the name of the system's VFS, below those that record."""
    return next(name for name in apsw.vfs_names() if not name.startswith("klaw-"))


class _File(RecordingFile):
    _recorder: Disk

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        def half() -> None:
            apsw.VFSFile.xWrite(self, data[: len(data) // 2], offset)

        try:
            self._recorder.before(self._path, half, is_write=True)
        except OSError:
            raise apsw.FullError("database or disk is full") from None
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._recorder.before(self._path, is_turn=True)
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._recorder.before(self._path, is_turn=True)
        super().xTruncate(newsize)


_Vfs._file = _File
