"""Crash tests for programs that write files: kill the process in each system call, or simulate a power cut after it.

A program is a function that writes below a directory and calls ``acknowledge(word)`` for each durable result. The tests
of Klaw's own files are examples. This requires POSIX; the simulated power cut requires Linux's /proc.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from attrs import define, field, frozen

#: ``program(directory, acknowledge)``
Program: TypeAlias = Callable[[Path, Callable[[str], None]], None]

_CALLS = ("mkdir", "open", "write", "fdatasync", "fsync", "replace", "link", "unlink")
#: How much of a write is done before the process is killed.
_SHARES = ("nothing", "a byte", "half", "all but a byte", "all")
#: Begins the lines in which a child names a system call.
_CALL = "call of "


@frozen
class Crash:
    """The ``directory`` that a killed program left, the words that it had acknowledged, and where it was killed."""

    point: str
    directory: Path
    acknowledged: tuple[str, ...]


def kill_everywhere(program: Program, root: Path, *, every: int = 1) -> Iterator[Crash]:
    """Run a program repeatedly, kill it (SIGKILL) at a different point each time, and yield the result.

    The points are before and after each system call that changes files, and inside each write: after one byte, after
    half, and before the last byte. ``every`` is the number of points of which one is chosen. Each run has its own
    directory below ``root``. A program may make fewer calls than it did before: the points that it does not reach are
    left out.
    """
    (whole := root / "whole").mkdir(parents=True)
    calls, _ = _run_killed(partial(program, whole), None, "")
    ends = (_SHARES[0], _SHARES[-1])
    points = [
        (step, name, share) for step, name in enumerate(calls) for share in (_SHARES if name == "write" else ends)
    ]
    for step, name, share in points[::every]:
        directory = root / f"{step}-{share.replace(' ', '-')}"
        directory.mkdir()
        killed_in, acknowledged = _run_killed(partial(program, directory), step, share)
        if killed_in:
            yield Crash(f"{share} of call {step} ({name})", directory, acknowledged)


def cut_power_everywhere(program: Program, directory: Path, copies: Path) -> Iterator[Crash]:
    """Run a program once, and yield the state that a power cut after each of its system calls would leave.

    Only what POSIX guarantees survives: the bytes of a file as of its last fsync or fdatasync, and the names in a
    directory as of the directory's last fsync.
    """
    disk = _Disk(directory)
    crashes: list[Crash] = []
    acknowledged: list[str] = []

    copying = False

    def copy_state() -> None:
        nonlocal copying
        copying = True  # the system calls of the copy are not steps of the program
        disk.restore(copies / str(len(crashes)))
        copying = False
        crashes.append(Crash(f"power cut {len(crashes)}", copies / str(len(crashes)), tuple(acknowledged)))

    def record_call(name: str, call: Callable[[], Any], arguments: tuple[Any, ...]) -> Any:
        result = call()
        if not copying:
            if name in ("fsync", "fdatasync"):
                disk.record(arguments[0])
            copy_state()
        return result

    def acknowledge(word: str) -> None:
        acknowledged.append(word)
        copy_state()

    with _intercepted(record_call):
        program(directory, acknowledge)
    yield from crashes


@contextmanager
def _intercepted(intercept: Callable[[str, Callable[[], Any], tuple[Any, ...]], Any]) -> Iterator[None]:
    """Replace the system calls that change files with ``intercept(name, call, arguments)``."""
    originals = {name: getattr(os, name) for name in _CALLS if hasattr(os, name)}

    def replaced(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **options: intercept(name, partial(real, *arguments, **options), arguments)

    for name, real in originals.items():
        setattr(os, name, replaced(name, real))
    try:
        yield
    finally:
        for name, real in originals.items():
            setattr(os, name, real)


def _run_killed(
    program: Callable[[Callable[[str], None]], None], step: int | None, share: str
) -> tuple[list[str], tuple[str, ...]]:
    """Run a program in a child process, killed at a step; return the step's call and the acknowledged words.

    If the step is not reached, no call is returned; if ``step`` is None, all calls.
    """
    if sys.platform == "win32":
        raise OSError("Windows has no fork")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _run_and_die(program, step, share, writer)
        finally:
            os._exit(70)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:  # noqa: PTH123  # a descriptor
        words = pipe.read().split("\n")[:-1]
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise AssertionError(f"the program failed before step {step}")
    calls = [word.removeprefix(_CALL) for word in words if word.startswith(_CALL)]
    return calls, tuple(word for word in words if not word.startswith(_CALL))


def _run_and_die(program: Callable[[Callable[[str], None]], None], step: int | None, share: str, pipe: int) -> None:
    write = os.write
    steps = count()

    def say(word: str) -> None:
        write(pipe, f"{word}\n".encode())

    def kill_at_step(name: str, call: Callable[[], Any], arguments: tuple[Any, ...]) -> Any:
        if step is None:
            say(f"{_CALL}{name}")
        if next(steps) != step:
            return call()
        say(f"{_CALL}{name}")
        if share == "all":
            call()
        elif name == "write":
            descriptor, data = arguments
            shares = {"nothing": 0, "a byte": 1, "half": len(data) // 2, "all but a byte": len(data) - 1}
            write(descriptor, bytes(data)[: shares[share]])
        if sys.platform != "win32":
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    with _intercepted(kill_at_step):
        program(say)
    os._exit(0)


@define
class _Disk:
    """The durable state of a directory: the names in each directory and the bytes of each file, by inode."""

    root: Path
    names: dict[int, dict[str, int]] = field(factory=dict)
    contents: dict[int, bytes] = field(factory=dict)

    def record(self, descriptor: int) -> None:
        """Record what an fsync of this descriptor has made durable."""
        path = Path(f"/proc/self/fd/{descriptor}")
        inode = path.stat().st_ino
        if path.is_dir():
            entries = list(os.scandir(path))
            self.names[inode] = {entry.name: entry.inode() for entry in entries}
            for entry in entries:
                if entry.is_dir():
                    self.names.setdefault(entry.inode(), {})
        else:
            self.contents[inode] = path.read_bytes()

    def restore(self, copy: Path, inode: int | None = None) -> None:
        """Write the state after a power cut below ``copy``."""
        copy.mkdir(parents=True)
        for name, child in self.names.get(inode or self.root.stat().st_ino, {}).items():
            if child in self.names:
                self.restore(copy / name, child)
            else:
                (copy / name).write_bytes(self.contents.get(child, b""))
