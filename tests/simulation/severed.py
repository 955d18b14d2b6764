"""Faults of PostgreSQL: a process ends, its connection ends, or the server is restarted, at a statement.

The fault comes before the statement, or after it: then the server has done it and its answer is lost, so that it is
unknown whether a COMMIT was done. A server that is stopped starts again at once, soon, or when the operation has ended.
What is said of each fault is decided here, too, with the hint, which must help.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from random import Random
from threading import Thread
from typing import Any

import psycopg
from actor import Actor
from attrs import define, evolve, field, frozen
from lives import ALONE, BESIDE, Fault, Operation
from machines import dump
from others import run_command
from world import CRASHED

from klaw_core import KlawError, StoreError

_RATE = 1 / 3
_MOST = 2.2  # the power of ten of the most statements before a fault
_MOST_COMMITS = 0.7  # the same of commits, about which most is decided
_WHENS = ("before", "after")
_KINDS = ("exit", "cut", "cut", "thread")
_STOPS = 6  # one of so many lost connections is lost because the server is restarted
#: How it is stopped, as an operator does or as a crash; and when it starts again.
_MODES, _STARTS = ("fast", "immediate"), ("at once", "soon", "later")
_SOON_SECONDS = 0.3
#: What ends the connection of this process.
_CUTS = {"cut", "stop"}


@frozen
class Told:
    """What Klaw may say: a message, and its hint."""

    message: re.Pattern[str]
    hint: str

    def is_in(self, text: str) -> bool:
        """Return whether a text has both, one after the other."""
        found = self.message.search(text)
        return found is not None and self.hint in text[found.end() :]


_UNCHANGED = Told(
    re.compile(r"postgresql:\S* \(\w+\): the connection was lost: [^;]+; nothing was changed"),
    "check that the server runs, then try again",
)
_UNKNOWN = Told(
    re.compile(
        r"postgresql:\S* \(\w+\): the connection was lost during COMMIT; unknown whether the changes were stored"
    ),
    "check that the server runs, then run `klaw index`",
)
_AWAY = Told(
    re.compile(r"cannot connect to postgresql:"),
    "check memory.store.dsn, and that the server runs: docs/how-to/postgres.md",
)
_NO_CONNECTION = Told(
    re.compile(r"postgresql:\S* \(\w+\) did not give a connection in time"),
    "check that the server runs, or raise memory.store.pool_size",
)
#: An agent is not told why its memory cannot be opened: the log has it.
_IN_LOG = Told(re.compile("this memory cannot be opened"), "the log of `klaw serve` has the reason")
#: What is one record, which a retry may not make twice; and what changes nothing that a person could look for.
_ONCE = {"save", "say", "fact", "tool", "request", "shell"}
_READS = {"search", "context", "export"}
_LOCK_SECONDS = 5.0
_SERVER_ERROR = 500
_LEFT = """SELECT 'a transaction is open' FROM pg_stat_activity WHERE usename = 'klaw' AND state LIKE 'idle in%'
UNION ALL SELECT 'a lock is held' FROM pg_locks WHERE locktype = 'advisory'"""
#: How an index run ends that has nothing to do.
_NOTHING = re.compile("nothing has been indexed yet")
_monotonic, _sleep = time.monotonic, time.sleep


def with_faults(life: Sequence[Operation], seed: int) -> list[Operation]:
    """Return a life with faults of the server, from dice of its own."""
    return [evolve(each, fault=_fault(each, Random(f"{seed} {each.number} server"))) for each in life]


def _fault(operation: Operation, dice: Random) -> Fault | None:
    kind = dice.choice(_KINDS)
    if dice.random() > _RATE or operation.kind == "restart" or (kind == "thread" and operation.kind in ALONE):
        return None
    how = dice.choice(BESIDE if kind == "thread" else _WHENS)
    is_turn = dice.random() < 1 / 2
    step = int(10 ** (dice.random() * (_MOST_COMMITS if is_turn else _MOST)))
    if kind == "cut" and dice.randrange(_STOPS) == 0:
        kind, how = "stop", f"{how}, {dice.choice(_MODES)}, {dice.choice(_STARTS)}"
    return Fault(kind, step, how, is_turn=is_turn)


@define
class Severing:
    """Ends this process, its connection or the server at a statement; statements are counted as they are sent."""

    server: Any
    left: int = 0
    kind: str = ""
    when: str = ""
    mode: str = ""
    start: str = ""
    has_cut: bool = False
    has_stopped: bool = False
    #: Whether only commits count; whether the statement that is sent is one; whether the fault came at one.
    of_commits: bool = False
    is_commit: bool = False
    at_commit: bool = False
    _starting: Thread | None = None
    _execute: Callable[..., Any] = field(default=psycopg.Connection.execute)
    _wait: Callable[..., Any] = field(default=psycopg.Connection.wait)

    def install(self) -> None:
        """Count all statements of this process, for good."""
        outer = self

        def wait(connection: Any, *arguments: Any, **named: Any) -> Any:
            return outer.sent(connection, lambda: outer._wait(connection, *arguments, **named))

        def execute(connection: Any, query: Any, *arguments: Any, **named: Any) -> Any:
            outer.is_commit = query == "COMMIT"
            try:
                return outer._execute(connection, query, *arguments, **named)
            finally:
                outer.is_commit = False

        psycopg.Connection.wait = wait  # type: ignore[method-assign]
        psycopg.Connection.execute = execute  # type: ignore[method-assign]

    def expect(self, fault: Fault | None) -> None:
        """Expect a fault, or none."""
        self.kind, self.left = (fault.kind, fault.step) if fault and fault.kind in {"exit", *_CUTS} else ("", 0)
        self.of_commits = fault is not None and fault.is_turn
        self.when, self.mode, self.start = [*str(fault.how if fault else "").split(", "), "", ""][:3]
        self.has_cut = self.has_stopped = self.at_commit = False

    def sent(self, connection: Any, send: Callable[[], Any]) -> Any:
        """Send a statement; return what comes back."""
        if not self.kind or connection.closed or (self.of_commits and not self.is_commit):
            return send()
        self.left -= 1
        if self.left:
            return send()
        kind, self.kind = self.kind, ""
        self.at_commit = self.is_commit
        if self.when == "before":
            self._end(kind, connection)
            return send()
        send()
        self._end(kind, connection)
        connection.pgconn.finish()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    def _end(self, kind: str, connection: Any) -> None:
        if kind == "exit":
            os._exit(CRASHED)
        self.has_cut = True
        if kind == "stop":
            self.stop()
        else:
            self._ask(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")

    def stop(self) -> None:
        """Stop the server; start it again, now or soon, unless it is to be later."""
        self.has_stopped = True
        self.server.halt(self.mode)
        if self.start == "at once":
            self.server.go_on()
        elif self.start == "soon":
            self._starting = Thread(target=self._start_soon)
            self._starting.start()

    def _start_soon(self) -> None:
        _sleep(_SOON_SECONDS)
        self.server.go_on()

    def end_stop(self) -> None:
        """Let the server run again, if it was stopped."""
        if self._starting is not None:
            self._starting.join()
            self._starting = None
        elif self.has_stopped and self.start == "later":
            self.server.go_on()

    def end_all(self, kind: str) -> None:
        """End every connection of Klaw; a stopped server ends them too, and starts again at once."""
        if kind == "stop":
            self.start = "at once"
            self.stop()
        else:
            self._ask("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'klaw'")

    def may_say(self, operation: str, text: str) -> Told | None:
        """Return what a text says of the fault, if it may be said of it."""
        if not self.has_cut:
            return None
        if self.has_stopped:  # every connection is lost then, at whichever statement
            known = [_UNKNOWN, _UNCHANGED, _AWAY, _NO_CONNECTION]
        else:
            known = [_UNKNOWN if self.at_commit else _UNCHANGED]
        found = next((each for each in known if each.is_in(text)), None)
        return None if found is _UNKNOWN and operation in _READS else found

    def _ask(self, statement: str) -> list[Any]:
        with psycopg.connect(self.server.superuser_dsn, autocommit=True) as own:
            return own.execute(statement).fetchall()

    def problems(self, *, kept: bool = False) -> Iterator[str]:  # noqa: ARG002  # as that of files
        """Yield what is left of transactions and locks, once the server has noticed that connections are closed."""
        end = _monotonic() + _LOCK_SECONDS
        while (found := self._ask(_LEFT)) and _monotonic() < end:
            _sleep(0.05)
        yield from (text for (text,) in found)


def die_at(step: int) -> None:
    """Let this process crash before its statement of that number."""
    severing = Severing(None)
    severing.install()
    severing.expect(Fault("exit", step, "before"))


class AnsweredError(StoreError):
    """An answer has said of the fault what it may."""


class Severed(Actor):
    """Lives a life whose server fails."""

    in_company = frozenset({"thread"})

    def __init__(self, home: Any, say: Any, severing: Severing, *told: Any) -> None:
        self._severing = severing
        super().__init__(home, say, *told, company="twin")
        severing.install()
        self._sides = severing  # type: ignore[assignment]  # it looks for what is left, too
        #: What was said of the fault, and of which kind of operation.
        self._said: Told | None = None
        self._kind = ""
        self._logged: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self._logged.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("klaw").addHandler(handler)

    def live(self, operation: Operation) -> None:
        """Live an operation. A fault whose statement is not reached comes when it is acknowledged."""
        fault, severing = operation.fault, self._severing
        if fault is None or fault.kind == "thread":
            super().live(operation)
            return
        self._said, self._kind = None, operation.kind
        self._logged.clear()
        severing.expect(fault)
        super().live(evolve(operation, fault=None))
        is_left = bool(severing.kind)
        if is_left and fault.kind == "exit":
            os._exit(CRASHED)
        if is_left:
            severing.kind = ""
            severing.end_all(fault.kind)
        severing.end_stop()
        if severing.has_cut or is_left:
            self._say(fault.kind)
        severing.expect(None)
        for problem in severing.problems():
            self._problem(f"after {operation.kind}: {problem}")
        self._do_as_told(operation, self._said)

    def _do_as_told(self, operation: Operation, said: Told | None) -> None:
        """Do what the hint of an error says, which must help."""
        if said is _UNCHANGED:
            self._look_unchanged(operation)
        if said is _UNCHANGED or (said is not None and operation.kind not in _ONCE):
            name, problem, _ = self._try(operation, Fault(""), nullcontext())
            self._end(operation, name, problem)
        if said is _UNKNOWN:
            code, told = run_command(self.home, ("index",))
            if code and not _NOTHING.search(told):
                self._problem(f"after {operation.kind}: `klaw index` was advised, and has failed: {told[-300:]}")
        if said is not None:
            self.memory.search(operation.word, 1)

    def _look_unchanged(self, operation: Operation) -> None:
        if operation.kind in _ONCE and operation.word in "".join(dump(self.memory, self.home.root / "now.jsonl")):
            self._problem(f"{operation.kind}: it says that it was not done, but it was")

    def _is_said(self, text: str) -> bool:
        """Return whether a text says of the fault what it may."""
        found = self._severing.may_say(self._kind, text)
        self._said = found or self._said
        return found is not None

    def _answered(self, operation: Operation, answer: Any) -> Any:
        """Return what a request was answered. One whose answer tells of the fault has not been done, or may not be."""
        told = _text(answer.value)
        is_in_log = _IN_LOG.is_in(told) and any(map(self._is_said, self._logged))
        if answer.status >= _SERVER_ERROR and (is_in_log or self._is_said(told)):
            raise AnsweredError(told)
        return super()._answered(operation, answer)

    def _told(self, operation: Operation, answered: tuple[Any, bool]) -> Any:
        answer, is_error = answered
        if is_error and self._is_said(_text(answer)):
            raise AnsweredError(str(answer))
        return super()._told(operation, answered)

    def _problem(self, text: str) -> None:
        if not (text.startswith("shell: ") and self._is_said(text)):
            super()._problem(text)

    def _refused(self, operation: Operation, fault: Fault, error: KlawError) -> None:
        if not isinstance(error, AnsweredError) and not self._is_said(f"{error.message} {error.hint}"):
            super()._refused(operation, fault, error)


def _text(answer: Any) -> str:
    """Return the message and the hint of what was answered."""
    return f"{answer.get('error', '')} {answer.get('hint', '')}" if isinstance(answer, Mapping) else str(answer)
