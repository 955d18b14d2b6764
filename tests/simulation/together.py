"""What several processes do to the files of one machine, in the order in which they do it; and the end of all of them.

Whoever does a step holds a lock while it is done and noted, so that the record has the order of the disk. After some
step the power is cut, or the process that stays is killed. Both happen while the lock is held: nobody is in the middle
of a step, and nobody does another one after a cut. How the processes take turns is not repeated by a seed; what was
lost can be told from the record.
"""

import fcntl
import os
import pickle
import signal
import struct
from collections.abc import Callable
from mmap import mmap
from pathlib import Path
from threading import RLock
from typing import Any

from attrs import define, field
from power import Recorder, Step
from world import CRASHED

CUT, KILL = 1, 2
_RECORD, _TURN = "together", "together.turn"
_COUNT, _LIMIT, _WHAT, _PROCESS, _IS_CUT, _IS_KILLED = range(6)
_NUMBER, _LENGTH = struct.Struct("q"), struct.Struct("I")
_open, _write, _flock = os.open, os.write, fcntl.flock  # before they are recorded


@define(eq=False)
class Together:
    """The record of all processes that have joined, below ``root``. Made before they are forked."""

    root: Path
    _shared: mmap = field(factory=lambda: mmap(-1, _NUMBER.size * 6))
    _lock: Any = field(factory=RLock)
    _turn: int = -1
    _record: int = -1
    _is_inside: bool = False
    #: Whether this process is one of the machine, and so ends with its power.
    _is_part: bool = False

    def __attrs_post_init__(self) -> None:
        (self.root / _RECORD).write_bytes(b"")
        self._open()

    def _get(self, what: int) -> int:
        return int(_NUMBER.unpack_from(self._shared, what * _NUMBER.size)[0])

    def _set(self, what: int, value: int) -> None:
        _NUMBER.pack_into(self._shared, what * _NUMBER.size, value)

    @property
    def is_cut(self) -> bool:
        """Whether the machine has lost its power."""
        return bool(self._get(_IS_CUT))

    @property
    def is_killed(self) -> bool:
        """Whether the process that stays was killed."""
        return bool(self._get(_IS_KILLED))

    def join(self) -> None:
        """Take part in this process, whose lock must not be that of the one from which it was forked."""
        self._is_part = True
        self._open()

    def _open(self) -> None:
        self._turn = _open(self.root / _TURN, os.O_RDWR | os.O_CREAT, 0o600)
        self._record = _open(self.root / _RECORD, os.O_WRONLY | os.O_APPEND)

    def leave(self) -> None:
        """Close what this process needs to take part."""
        for descriptor in (self._turn, self._record):
            os.close(descriptor)

    def record(self, root: Path) -> None:
        """Take part in this process, and record what it does below a directory, for good."""
        self.join()
        recorder = Recorder(root, others=self)
        recorder.install()

    def in_turn(self, do: Callable[[], Any]) -> Any:
        """Do something while nobody else does a step. An interrupt leaves the lock at most until the next step."""
        with self._lock:
            if self._is_inside:  # as when a step frees an object
                return do()
            try:
                self._is_inside = True
                _flock(self._turn, fcntl.LOCK_EX)
                if self.is_cut and self._is_part:
                    os._exit(CRASHED)
                return do()
            finally:
                self._is_inside = False
                _flock(self._turn, fcntl.LOCK_UN)

    def add(self, step: Step) -> None:
        """Note a step that was just done, in turn; it may be the last one of somebody."""
        told = pickle.dumps(step)
        _write(self._record, _LENGTH.pack(len(told)) + told)
        count = self._get(_COUNT) + 1
        self._set(_COUNT, count)
        if 0 < self._get(_LIMIT) <= count:
            self.strike(self._get(_WHAT))

    def arm(self, what: int, steps: int, process: int) -> None:
        """Let something happen to a process, or to all of them, after so many steps more."""

        def set_all() -> None:
            self._set(_WHAT, what)
            self._set(_PROCESS, process)
            self._set(_IS_KILLED, 0)
            self._set(_LIMIT, self._get(_COUNT) + steps)

        self.in_turn(set_all)

    def disarm(self) -> None:
        """Let nothing happen any more."""
        self.in_turn(lambda: self._set(_LIMIT, 0))

    def strike(self, what: int) -> None:
        """Let it happen now, in turn."""
        self._set(_LIMIT, 0)
        if what == CUT:
            self._set(_IS_CUT, 1)
            os._exit(CRASHED)
        self._set(_IS_KILLED, 1)
        os.kill(self._get(_PROCESS), signal.SIGKILL)

    def cut(self) -> None:
        """Cut the power now, from a process that is no part of the machine."""
        self.in_turn(lambda: self._set(_IS_CUT, 1))

    def steps(self) -> list[Step]:
        """Return what was done, in its order."""
        data, found, at = (self.root / _RECORD).read_bytes(), [], 0
        while at < len(data):
            end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
            found.append(pickle.loads(data[at + _LENGTH.size : end]))  # our own
            at = end
        return found
