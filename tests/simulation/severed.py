"""Faults of PostgreSQL: a process ends, or loses its connection, before a statement or after it.

After it, the server has done the statement and its answer is lost: it is unknown whether a COMMIT was done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from random import Random
from typing import Any

import psycopg
from actor import Actor
from attrs import define, evolve, field
from lives import ALONE, BESIDE, Fault, Operation
from machines import dump
from world import CRASHED

from klaw_core import KlawError, StoreError

_RATE = 1 / 3
_MOST = 2.2  # the power of ten of the most statements before a fault
_MOST_COMMITS = 0.7  # the same of commits, about which most is decided
_WHENS = ("before", "after")
_KINDS = ("exit", "cut", "cut", "thread")
#: What Klaw may say of a lost connection. After the second, a person tries again.
_UNKNOWN, _UNCHANGED = "unknown whether the changes were stored", "nothing was changed"
#: What answers and prints tell of the fault; an agent is not told why its memory cannot be opened.
_TELLING = _UNKNOWN, _UNCHANGED, "this memory cannot be opened"
#: What is one record, which a retry may not make twice.
_ONCE = {"save", "say", "fact"}
_LOCK_SECONDS = 5.0
_SERVER_ERROR = 500
_LEFT = """SELECT 'a transaction is open' FROM pg_stat_activity WHERE usename = 'klaw' AND state LIKE 'idle in%'
UNION ALL SELECT 'a lock is held' FROM pg_locks WHERE locktype = 'advisory'"""
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
    return Fault(kind, int(10 ** (dice.random() * (_MOST_COMMITS if is_turn else _MOST))), how, is_turn=is_turn)


@define
class Severing:
    """Ends this process, or its connection, at a statement; statements are counted as they are sent."""

    superuser: str
    left: int = 0
    kind: str = ""
    when: str = ""
    has_cut: bool = False
    #: Whether only commits count; whether the statement that is sent is one.
    of_commits: bool = False
    is_commit: bool = False
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
        self.kind, self.left = (fault.kind, fault.step) if fault and fault.kind in {"exit", "cut"} else ("", 0)
        self.of_commits = fault is not None and fault.is_turn
        self.when, self.has_cut = str(fault.how) if fault else "", False

    def sent(self, connection: Any, send: Callable[[], Any]) -> Any:
        """Send a statement; return what comes back."""
        if not self.kind or connection.closed or (self.of_commits and not self.is_commit):
            return send()
        self.left -= 1
        if self.left:
            return send()
        kind, self.kind = self.kind, ""
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
        self._ask(f"SELECT pg_terminate_backend({connection.info.backend_pid}, 5000)")

    def end_all(self) -> None:
        """End every connection of Klaw, as a server does that restarts."""
        self._ask("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'klaw'")

    def _ask(self, statement: str) -> list[Any]:
        with psycopg.connect(self.superuser, autocommit=True) as own:
            return own.execute(statement).fetchall()

    def problems(self, *, kept: bool = False) -> Iterator[str]:  # noqa: ARG002  # as that of files
        """Yield what is left of transactions and locks, once the server has noticed that connections are closed."""
        end = _monotonic() + _LOCK_SECONDS
        while (found := self._ask(_LEFT)) and _monotonic() < end:
            _sleep(0.05)
        yield from (text for (text,) in found)


class Severed(Actor):
    """Lives a life whose server fails."""

    in_company = frozenset({"thread"})

    def __init__(self, home: Any, say: Any, severing: Severing, *told: Any) -> None:
        self._severing = severing
        super().__init__(home, say, *told, company="twin")
        severing.install()
        self._sides = severing  # type: ignore[assignment]  # it looks for what is left, too
        self._said = ""

    def live(self, operation: Operation) -> None:
        """Live an operation. A fault whose statement is not reached comes when it is acknowledged."""
        fault = operation.fault
        if fault is None or fault.kind == "thread":
            super().live(operation)
            return
        self._said = ""
        self._severing.expect(fault)
        super().live(evolve(operation, fault=None))
        has_cut, is_left = self._severing.has_cut, bool(self._severing.kind)
        self._severing.expect(None)
        if is_left and fault.kind == "exit":
            os._exit(CRASHED)
        if is_left:
            self._severing.end_all()
        for problem in self._severing.problems():
            self._problem(f"after {operation.kind}: {problem}")
        if has_cut:
            self._say("cut")
        if _UNCHANGED in self._said:
            self._look_unchanged(operation)
            name, problem, _ = self._try(operation, Fault(""), nullcontext())
            self._end(operation, name, problem)

    def _look_unchanged(self, operation: Operation) -> None:
        if operation.kind in _ONCE and operation.word in "".join(dump(self.memory, self.home.root / "now.jsonl")):
            super()._problem(f"{operation.kind}: it says that it was not done, but it was")

    def _answered(self, operation: Operation, answer: Any) -> Any:
        """Return what a request was answered. One whose answer tells of the fault has not been done, or may not be."""
        told = str(answer.value)
        if self._severing.has_cut and answer.status >= _SERVER_ERROR and any(each in told for each in _TELLING):
            raise StoreError(told, hint="try again")
        return super()._answered(operation, answer)

    def _problem(self, text: str) -> None:
        if not (self._severing.has_cut and any(told in text for told in _TELLING)):
            super()._problem(text)

    def _refused(self, operation: Operation, fault: Fault, error: KlawError) -> None:
        told = f"{error} {error.__cause__}"
        if self._severing.has_cut and any(each in told for each in _TELLING) and error.hint:
            self._said = told if _UNCHANGED in told and _UNKNOWN not in told else ""
            return
        super()._refused(operation, fault, error)
