"""The process that lives a part of a life. It says what it begins and what was acknowledged; only that is promised."""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from http.client import HTTPException
from random import Random
from typing import Any

import garbage
import questions
from attrs import evolve
from doors import Doors
from hands import Hands
from interrupts import Interrupter, Sides
from lives import Fault, Known, Operation, add_met, beside_of
from model import Model
from others import with_offers
from scenes import Home
from together import Together
from turns import take_turns
from world import STUCK, WAITING, Clock, Disk, Files, listen_to_stderr, said_on_stderr, seed_dice

from klaw_core import KlawError, Memory, NotFoundError, StoreFullError, StoreLockedError

#: Not interrupted: they work in other threads, or end with a process of their own.
_WHOLE = {"request", "tool", "damage", "shell"}
#: What a person does once more when the disk is no longer full: the error's hint says so.
_TRIED_AGAIN = {
    "save",
    "say",
    "move",
    "note",
    "index",
    "search",
    "context",
    "fact",
    "extract",
    "core",
    "reindex",
    "doctor",
    "model",
    "rename",
}
#: What ends something, which another process may have ended.
_OF_ONE = {"forget", "unsay", "unfact", "retract"}
#: What a person does only while no other program has the memory open.
_ALONE_ONLY = {"damage", "edit", "model"}
_BESIDE_FILES = 1000  # the number of the first file that another process sees


class Actor(Doors, Hands):
    """Lives operations in this process, and looks around after each error."""

    #: Faults that are possible while another process works, or in a second store.
    in_company: frozenset[str] = frozenset({"crash", "full"})  # only this process's steps are known

    def __init__(
        self,
        home: Home,
        say: Any,
        seed: str,
        at: float,
        model: Model,
        *,
        beside: bool = False,
        company: str = "",
        together: Together | None = None,
    ) -> None:
        self.home, self.model, self._say = home, model, say
        self._is_beside, self._company = beside, company
        self.clock = Clock(at, waits=bool(company))
        self.clock.install()
        listen_to_stderr()
        self.files = Files(_BESIDE_FILES if beside else 0)
        if not company:  # which sees the numbers of the system
            self.files.install()
            questions.install()
            garbage.install()
        self.disk = Disk(home.data, seed_dice(seed, is_alone=not company), self.clock, beside=beside)
        if together is not None:
            together.join()
            self.disk.others = together
        self.disk.install()
        with_offers(home.registry)
        self.memory = self._open()
        self._sides: Sides | None = None
        self._overtaken: list[Any] = []
        self._wrote = False
        #: The kinds of two operations that two threads do.
        self._of_pair: set[str] = set()
        self.known: dict[str, Known] | None = None

    def _open(self) -> Memory:
        try:
            return self.home.open()
        except StoreLockedError:
            if not self._is_beside:
                raise
            self.disk.keep_steps()  # the other one stands still, and may hold the lock
            os._exit(WAITING)

    def live(self, operation: Operation) -> None:
        """Live one operation, with its fault."""
        self.clock.wall = operation.at
        fault = operation.fault or Fault("")
        if self._company and fault.kind not in self.in_company:
            fault = Fault("")
        if fault.kind == "interrupt" and self._sides is None:
            self._sides = Sides(self.memory, self.home.data, probes=1000 * operation.number)
        garbage.go_on()
        self._say("begin", operation.number)
        interrupter = self._interrupter(operation, fault)
        self._overtaken = []
        steps = int(fault.how) if fault.kind == "full" else 1
        step = (fault.kind, fault.step, steps) if fault.kind in {"crash", "power", "full"} else None
        self.disk.expect(step, is_turn=fault.is_turn)
        kept: BaseException | None = None  # the last one, as an interactive Python keeps it
        for number, place in enumerate(fault.earlier, 1):
            kept = self._try(evolve(operation, attempt=number), fault, Interrupter(place))[2]
        if fault.kind == "thread":
            name, problem, kept_last = self._in_two_threads(operation, fault)
        else:
            name, problem, kept_last = self._try(operation, fault, interrupter)
        if self.disk.has_failed:
            self._say("full")
        count, turns = self.disk.count, self.disk.turns
        self._wrote = count > 0
        self.disk.expect(None)
        if self.known is not None:
            places = list(interrupter.places) if isinstance(interrupter, Interrupter) else []
            add_met(self.known, operation.kind, Known(places, count, turns))
        self._end(operation, name, problem)
        if problem == StoreFullError.__name__ and operation.kind in _TRIED_AGAIN:
            name, problem, _ = self._try(operation, Fault(""), nullcontext())
            self._end(operation, name, problem)
        if fault.kind in {"crash", "power"}:  # its step was not reached
            self.disk.die(fault.kind)
        for words in self._overtaken:
            self.model.hear(words, beside_of(operation))
        is_kept = not (kept is None and kept_last is None)
        self._look(operation, fault.kind, interrupted=problem == "KeyboardInterrupt", kept=is_kept)
        del kept, kept_last

    def _end(self, operation: Operation, name: str, problem: str) -> None:
        name = self._still(operation, name)
        if not problem and self.model.has_other(operation, name):
            self._problem(f"{operation.kind}: it has the name of another text, which is lost")
        self.model.end(operation, name, problem)
        self._say("end", operation.number, name, problem)

    def _interrupter(self, operation: Operation, fault: Fault) -> AbstractContextManager[Any]:
        if fault.kind == "interrupt":
            return Interrupter(fault.place)
        if fault.kind == "beside":
            return Interrupter(fault.place, lambda: self._let_another(operation))
        return nullcontext() if self.known is None or operation.kind in _WHOLE else Interrupter()

    def _try(
        self, operation: Operation, fault: Fault, interrupter: AbstractContextManager[Any]
    ) -> tuple[str, str, BaseException | None]:
        """Do an operation; return the name of what it made, the error that ended it, and an interrupt that is kept."""
        try:
            with interrupter:
                return self._do(operation), "", None
        except KeyboardInterrupt as error:
            return "", "KeyboardInterrupt", error if fault.how else None
        except StoreFullError as error:
            if fault.kind != "full":
                self._problem(f"{operation.kind}: the disk was not full: {error}")
            return "", type(error).__name__, None
        except KlawError as error:
            self._refused(operation, fault, error)
            return "", type(error).__name__, None
        except (OSError, HTTPException) as error:
            if operation.kind != "request" or self._company != "serve":
                raise
            return "", type(error).__name__, None  # the server was killed; if not, it is seen that it has ended
        finally:
            questions.begin_all()

    def _in_two_threads(self, operation: Operation, fault: Fault) -> tuple[str, str, None]:
        """Do an operation and another one in two threads; return the name that the first has made, and its error."""
        if self._sides is None:
            self._sides = Sides(self.memory, self.home.data, probes=1000 * operation.number)
        other = beside_of(operation)
        ended: list[tuple[str, str]] = [("", ""), ("", "")]
        self._say("thread")

        def do(number: int, one: Operation) -> None:
            self._of_pair = {operation.kind, other.kind}
            name, problem, _ = self._try(one, fault, nullcontext())
            ended[number] = name, problem

        works = [partial(do, number, one) for number, one in enumerate((operation, other))]
        taken = take_turns(works, Random(f"{operation.word} turns"), STUCK)
        self._of_pair = set()
        self._say("turns", taken)
        name, problem = ended[1]
        name = self._still(other, name)
        self.model.end(other, name, problem)
        self._say("end of other", name, problem)
        return *ended[0], None

    def _still(self, operation: Operation, name: str) -> str:
        """Return the name, unless somebody else has written over that note, or deleted it, meanwhile."""
        if operation.kind != "note" or not name:
            return name
        path = self.home.notes.parent / name
        return name if path.exists() and operation.word in path.read_text("utf-8") else ""

    def _let_another(self, operation: Operation) -> None:
        """Let another process do something while this one stands still."""
        self._overtaken = self._say.ask("beside", operation.number)
        self.disk.add_steps()
        for what, *words in self._overtaken:
            if what == "digest":
                self.disk.digest.update(words[0].encode())

    def _refused(self, operation: Operation, fault: Fault, error: KlawError) -> None:
        """A refusal is right only if it is about the fault: one of another kind would let a person look elsewhere."""
        both = self._of_pair or ({operation.kind, beside_of(operation).kind} if self._overtaken else set())
        # An extension that could not follow a forgetting is reported with the reason.
        is_locked = isinstance(error, StoreLockedError) or "is locked by process" in str(error)
        if (self._is_beside or self._of_pair) and is_locked:
            return  # the other one stands still, and may hold the lock
        if both and both <= _OF_ONE and isinstance(error, NotFoundError):
            return  # the other one has forgotten it
        told = str(error).replace(str(self.home.root), "")
        cause = "the disk was full, but: " if fault.kind == "full" else ""
        self._problem(f"{operation.kind}: {cause}{type(error).__name__}: {told}")

    def _look(self, operation: Operation, fault: str, *, interrupted: bool, kept: bool) -> None:
        if interrupted:
            self._say("interrupts")
        if interrupted or fault == "thread":
            for problem in self._sides.problems(kept=kept) if self._sides else ():
                self._problem(f"after {operation.kind}: {problem}")
        for told in said_on_stderr():
            self._problem(f"{operation.kind}: printed: {told}")
        # A process that stands still may read an old snapshot, and rebuilds end later.
        # If nothing was written, what another process had to leave in the log is still there.
        is_quiet = not self._is_beside and not self._overtaken and not self._company and self._wrote
        if is_quiet and operation.kind in {"forget", "unsay", "unfact", "purge"}:
            # Whoever reads the file of an open database, and closes it, has taken this process's locks from it (POSIX).
            for problem in self._say.ask("look"):
                self._problem(f"after {operation.kind}: {problem}")

    def _do(self, operation: Operation) -> str:
        """Do what an operation says; return the name of what it made or forgot."""
        if self._company and operation.kind in _ALONE_ONLY:
            return ""
        return str(getattr(self, f"do_{operation.kind}")(operation) or "")
