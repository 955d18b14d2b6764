"""Processes that stay for a part of the day beside all others: ``klaw watch`` and ``klaw serve``.

They are real: each has a session, a clock that goes on, its own locks and its own death. They are forked from this
process, which has imported everything, and run the command of the command line.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import apsw
from attrs import define
from children import be_child
from dates import go_on_from
from interrupts import locks_left
from lives import Operation
from model import Judge, Model
from others import Answer, command_line, with_offers
from scenes import Home
from together import Together

from klaw_core.cli.program import cli
from klaw_serve.running import read_rendezvous
from klaw_serve.tokens import Tokens
from klaw_watch.state import WatchDirectory

#: Whoever needs longer hangs, on any machine.
PATIENCE = 600
#: How a process ends: three times in four it is told to, and may put everything in order.
_ENDINGS = signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGKILL
_LOOK_SECONDS, _SETTLING_SECONDS = 0.02, 0.3
_REQUESTS = 12
_FAILED = 70
_COMMANDS: Mapping[str, tuple[str, ...]] = {"watch": ("watch", "--json"), "serve": ("serve", "--port", "0", "--json")}
_sleep, _monotonic = time.sleep, time.monotonic


@define
class Company:
    """A process that runs ``klaw watch`` or ``klaw serve`` on the data directory of a home."""

    home: Home
    kind: str
    pid: int
    #: Whether it may be told twice, as by somebody who presses Ctrl-C again.
    is_hurried: bool = False
    _was_told: bool = False
    _status: int | None = None

    @classmethod
    def start(cls, home: Home, kind: str, at: float, together: Together) -> Company:
        """Start it at a moment of the life."""
        for path in (_output(home, kind), _log(home, kind)):
            path.write_bytes(b"")
        words, environment = command_line(home, _COMMANDS[kind])
        child = os.fork()
        if child:
            return cls(home, kind, child)
        status = _FAILED
        try:
            os.setsid()
            be_child()
            for path, descriptor in ((_output(home, kind), 1), (_log(home, kind), 2)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), descriptor)
            sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
            go_on_from(at)
            together.record(home.data)
            with_offers(home.registry)
            os.environ.update(environment)
            cli.main(args=list(words), prog_name="klaw", standalone_mode=True)
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:  # noqa: BLE001  # it is read from the log
            traceback.print_exc()
        finally:
            os._exit(status)

    def is_ready(self) -> bool:
        """Wait until it works, or has ended; return whether it works."""
        return _until(lambda: "}" in _output(self.home, self.kind).read_text("utf-8") or self.has_ended()) and (
            not self.has_ended()
        )

    def has_ended(self) -> bool:
        """Return whether it has ended."""
        if self._status is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if found else None
        return self._status is not None

    def end(self, number: int) -> None:
        """Send it a signal; a second one too, if it is hurried."""
        if not self.has_ended() and (not self._was_told or self.is_hurried):
            os.kill(self.pid, number)
            self._was_told = True

    def end_at_once(self) -> None:
        """End it for good, because nobody is interested any more."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
        _until(self.has_ended)

    def said(self) -> str:
        """Return what it has written as errors."""
        return _log(self.home, self.kind).read_text("utf-8")

    def problems(self, number: int) -> Iterator[str]:
        """Wait for its end after a signal; yield what is wrong with it."""
        if not _until(self.has_ended):
            self.end_at_once()
            yield f"{self.kind}: it does not end"
            return
        assert self._status is not None
        status = os.waitstatus_to_exitcode(self._status)
        if status != (-number if number == signal.SIGKILL else 0):
            yield f"{self.kind}: it ended with {status} after {signal.Signals(number).name}: {self.said()[-400:]}"
        if "Traceback" in self.said():
            yield f"{self.kind}: it printed: {self.said()[-600:]}"
        with suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            yield f"{self.kind}: it has left a process behind"
        if number != signal.SIGKILL:
            for name in ("server.json", "serve.sock"):
                if (self.home.data / name).exists():
                    yield f"{self.kind}: it has left {name}"
        if WatchDirectory.of(self.home.data).is_watched():
            yield f"{self.kind}: its lock is left"


def _output(home: Home, kind: str) -> Path:
    return home.root / f"{kind}.out"


def _log(home: Home, kind: str) -> Path:
    return home.root / f"{kind}.log"


def _until(holds: Callable[[], Any], pause: float = _LOOK_SECONDS) -> bool:
    deadline = _monotonic() + PATIENCE
    while not holds():
        if _monotonic() > deadline:
            return False
        _sleep(pause)
    return True


def ending_of(operation: Operation) -> signal.Signals:
    """Return the signal with which an operation ends a process."""
    return _ENDINGS[int(operation.pick * len(_ENDINGS))]


def ask(data: Path, asked: str, body: Mapping[str, Any] | None = None, *, agent: str = "", query: str = "") -> Answer:
    """Send a request (``METHOD PATH``) over a socket to the server that runs. Raise OSError, HTTPException."""
    found = read_rendezvous(data)
    if found is None:
        raise ConnectionRefusedError("no server runs")
    method, _, path = asked.partition(" ")
    connection = http.client.HTTPConnection(found["url"].partition("//")[2], timeout=PATIENCE)
    try:
        whole = (f"/agents/{agent}" if agent else "") + path + (f"?{query}" if query else "")
        headers = {"Authorization": f"Bearer {Tokens(data).make(agent)}", "Content-Type": "application/json"}
        connection.request(method, whole, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        told = response.read()
        return Answer(response.status, json.loads(told) if told else None)
    finally:
        connection.close()


def converse(data: Path, word: str, dice: Random, say: Callable[..., None]) -> None:
    """Save, get, find and forget through the server until it ends; say what begins, and what was acknowledged."""
    kept: dict[str, str] = {}
    with suppress(OSError, http.client.HTTPException):
        for number in range(_REQUESTS):
            one = word.replace("q", f"{number:02}q")
            say("begins", one)
            answer = ask(data, "POST /api/memories", {"text": f"{one} was told"})
            if answer.status == 201 and not answer.value.get("notice"):
                path = answer.value["path"]
                kept[path] = one
                say("saved", path, one)
            elif answer.status >= 500:
                say("refused", f"{answer.status}: {answer.value}")
            name = dice.choice(sorted(kept)) if kept else ""
            if name and dice.random() < 1 / 3:
                found = ask(data, "GET /api/document", query=f"path={name}")
                if found.status == 200 and kept[name] not in str(found.value):
                    say("problem", "serve: what was saved is not in the answer")
            elif name and dice.random() < 1 / 2:
                say("target", name, kept.pop(name))
                if ask(data, "DELETE /api/document", query=f"path={name}").status in {200, 204}:
                    say("forgotten", name)


def settle(home: Home, model: Model, at: float, say: Callable[..., None], together: Together) -> None:
    """Wait until everything that has changed is found, or the power is cut; say what never is, or that all is."""
    go_on_from(at)
    together.record(home.data)
    with home.open() as memory:
        judge = Judge(home, model, at)
        left: list[str] = []
        notes: dict[str, str] = {}

        def is_settled() -> bool:
            notes.clear()
            notes.update({f"notes/{path.name}": path.read_text("utf-8").split()[2] for path in home.notes.glob("*.md")})
            there = notes.keys()
            known = {each.path for each in memory.documents(limit=10_000) if each.path.startswith("notes/")}
            left[:] = [*judge._indexed(memory, "watched"), *(["a note that is gone is found"] if known - there else [])]
            return not left or together.is_cut

        if not _until(is_settled, _SETTLING_SECONDS):
            for problem in left:
                say("problem", f"watch: after {PATIENCE} s: {problem}")
        elif not together.is_cut:  # what was found before a power cut is found after it
            say("settled", notes)


def alone(data: Path) -> Iterator[str]:
    """Yield what a process that has ended has left locked."""
    with closing(apsw.Connection(str(data / "klaw.db"))) as stranger:
        yield from locks_left(data, stranger)
