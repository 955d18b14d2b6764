"""Children of a process that do a part of its work: each says what it does, and is ended if it hangs."""

import ctypes
import json
import os
import resource
import select
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import garbage

_CPU_SECONDS = 600  # of a child: more is a loop without end
_LOOK_SECONDS, _LOOKS = 60, 10  # at a child from which nothing is heard: if it has used no CPU meanwhile, it hangs
_FAILED = 70
_DEATH = 1  # the option of prctl: the signal when the parent dies


class Say:
    """How a child tells its parent what it does: ``say(what, details …)``."""

    def __init__(self, writer: int, answers: int) -> None:
        self._writer, self._answers, self._write = writer, answers, os.write  # before it is recorded

    def __call__(self, *words: Any) -> None:
        left = json.dumps(words).encode() + b"\n"
        while left:  # a signal cuts what is longer than the pipe
            left = left[self._write(self._writer, left) :]

    def ask(self, *words: Any) -> Any:
        """Say something, and return what the parent answers."""
        self(*words)
        with os.fdopen(self._answers, encoding="utf-8", closefd=False) as answers:
            return json.loads(answers.readline())


def be_child() -> None:
    """Die with the parent, and of SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_DEATH, signal.SIGKILL)


def forked(
    work: Callable[[Say], None], limit: int = _CPU_SECONDS, answer: Callable[[list[Any]], Any] | None = None
) -> tuple[list[list[Any]], int | str]:
    """Run ``work(say)`` in a child; return what it said, and its exit status, or ``"hang"``.

    It hangs if it uses no CPU for ten minutes, or more than ``limit`` seconds of it; 0 is no limit. So a slow machine
    makes no healthy child fail.

    ``answer`` is told everything at once; what it returns, unless it is None, is the answer to what the child asked.
    """
    reader, writer = os.pipe()
    answers, answering = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.close(answering)
        status, say = _FAILED, Say(writer, answers)

        try:
            be_child()
            garbage.begin()
            if limit:
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            work(say)
            status = 0
        except BaseException:  # noqa: BLE001  # whatever it is, it is what the child has to say
            say("problem", f"escaped: {traceback.format_exc()[-600:]}")
        finally:
            os._exit(status)
    said = []
    try:
        os.close(writer)
        os.close(answers)
        with os.fdopen(answering, "w", encoding="utf-8") as reply:
            for line in _lines(reader, child, limit):
                said.append(json.loads(line))
                if answer is not None and (answered := answer(said[-1])) is not None:
                    print(json.dumps(answered), file=reply, flush=True)
    except BaseException:  # who removes the directory of a child must not meet it
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    _, status = os.waitpid(child, 0)
    return said, "hang" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _lines(reader: int, child: int, limit: int) -> Iterator[bytes]:
    """Yield what a child says until it ends; end it if it uses no CPU for too long."""
    left, looks, before = b"", 0, -1
    while True:
        if not select.select([reader], [], [], _LOOK_SECONDS)[0]:
            used = cpu_of(child)
            looks, before = looks + 1 if used == before else 0, used
            if limit and looks >= _LOOKS:
                os.kill(child, signal.SIGKILL)
            continue
        if not (data := os.read(reader, 65536)):
            break
        looks = 0
        *lines, left = (left + data).split(b"\n")
        yield from lines
    os.close(reader)


def cpu_of(process: int) -> int:
    """Return how much a process has used of the CPU, in ticks."""
    told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(told[11]) + int(told[12])
