"""Where the lives of seeds are lived, what their processes say, and what a rehearsal meets."""

import gc
import importlib
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from actor import Actor
from attrs import define, evolve, field
from beside import Beside, restore
from children import Say, forked
from earlier import Earlier
from lives import (
    BESIDE_FROM,
    COMPANY,
    LEAVE,
    OF_TWO,
    REAL,
    Known,
    Operation,
    Outcome,
    add_met,
    beside_of,
    rehearsal,
)
from model import Judge, Model
from others import write_private
from power import Disk
from scenes import Home
from together import Together
from twins import Server, Twins
from world import CRASHED, STUCK, WAITING, Clock, make_ids_collide, recorded_steps

_COLLIDING = 4  # the ids of saved texts collide in one life of so many
#: What is lived between two processes of the owner.
BOUNDARIES = (*COMPANY, LEAVE)


@define
class Stage:
    """Where lives are lived, one after the other, below ``root``."""

    root: Path
    registry: Any
    #: Note every step on the disk, so that two lives can be compared.
    traces: bool = False
    #: What lives without faults meet is added to this.
    known: dict[str, Known] | None = None
    #: Whether the ids of saved texts collide in the life that is lived.
    _collide: bool = False
    #: PostgreSQL, in which some lives are lived a second time.
    server: Server = field(factory=Server)
    #: The version of Klaw that lives the first part of each life, if not today's.
    earlier: Earlier | None = None

    def live_twice(self, life: Sequence[Operation], seed: int) -> Outcome:
        """Live what both stores can have of a life in SQLite and in PostgreSQL, and compare both at the end."""
        outcome, twins = Outcome(), Twins(self.root / "twins", self.registry, self.server, self.earlier)
        outcome.problems += [(-1, problem) for problem in twins.live(life, seed)]
        outcome.counts.update({"operations of twins": 2 * len(life), "twins": 1})
        outcome.counts.update({f"twins {kind}": count for kind, count in twins.counts.items()})
        return outcome

    def live(self, life: Sequence[Operation], seed: int) -> Outcome:
        """Live a life in a process that knows nothing of earlier ones: what is kept of them is looked up no more."""
        outcome = Outcome()

        def learn(said: list[Any]) -> None:
            if said[0] == "outcome":
                outcome.learn(*said[1:])
            else:
                outcome.problems.append((-1, said[1]))

        _, status = forked(lambda say: say("outcome", *self.live_here(life, seed).told()), limit=0, answer=learn)
        if status:
            outcome.problems.append((-1, f"the day: {_how_it_ended(status)}"))
        return outcome

    def live_here(self, life: Sequence[Operation], seed: int) -> Outcome:
        """Live a life over all of its deaths."""
        shutil.rmtree(self.root, ignore_errors=True)
        self._collide = seed % _COLLIDING == 0 and not any(operation.kind in OF_TWO for operation in life)
        home = Home(self.root / "home", self.registry, facts=True, private=True)
        home.data.mkdir(parents=True)
        write_private(home)
        model, outcome, begin, died = Model(), Outcome(), 0, False
        if self.earlier is not None:
            model, problems = self.earlier.begin(home, seed)
            outcome.problems += [(-1, problem) for problem in problems]
            died = not problems  # all is looked at once
        beside = Beside(home, model, outcome, self.root / "before-part")
        while begin < len(life):
            if life[begin].kind in BOUNDARIES:
                outcome.digests += [REAL] * (life[begin].kind in COMPANY)
                died = beside.live(life[begin]) or died
                begin += 1
                continue
            if not beside.kind:
                shutil.rmtree(self.root / "before", ignore_errors=True)
                shutil.copytree(home.data, self.root / "before", ignore=shutil.ignore_patterns("*.sock"))
            lived = Lived(life[begin:], model, outcome, self.known)
            lived.beside = lambda operation: self._beside(home, seed, operation, model, outcome)
            lived.go_on = beside.go_on
            lived.look = lambda: list(Judge(home, model, life[0].at).forgotten_bytes())
            act = partial(
                self._act,
                home,
                seed=seed,
                life=lived.life,
                model=model.copy(),
                has_died=died,
                company=beside.kind,
                together=beside.together,
            )
            _, status = forked(act, answer=lived.learn)
            begin = life.index(lived.current) + 1
            died = status == CRASHED or beside.is_cut
            if died:
                self._die(home, lived, seed, beside)
            elif status:
                outcome.problems.append((lived.current.number, f"{lived.current.kind}: {_how_it_ended(status)}"))
                beside.end_at_once()
                return outcome
        beside.live(evolve(life[-1], kind=LEAVE))
        said, status = forked(lambda say: self._judge(home, say, model, life[-1].at))
        for words in said:
            if words[0] == "loaded":
                load(*words[1:])
        outcome.problems += [(-1, words[1]) for words in said if words[0] == "problem"]
        if status:
            outcome.problems.append((-1, f"the look at the end: {_how_it_ended(status)}"))
        return outcome

    def _act(
        self,
        home: Home,
        say: Say,
        *,
        seed: int,
        life: Sequence[Operation],
        model: Model,
        has_died: bool,
        company: str,
        together: Together | None,
    ) -> None:
        if self._collide:
            make_ids_collide()
        actor = Actor(home, say, f"{seed} {life[0].number}", life[0].at, model, company=company, together=together)
        actor.known = None if self.known is None else {}
        actor.disk.trace = [] if self.traces else None
        if has_died:
            for problem in [*say.ask("look"), *Judge(home, model, life[0].at).at_once(actor.memory)]:
                say("problem", problem)
        for operation in life:
            if operation.kind in {"restart", *BOUNDARIES} and operation is not life[0]:
                break
            actor.live(operation)
        actor.memory.close()
        if actor.known is not None:
            say("known", to_known(actor.known))
            say("loaded", *loaded())
        for step in actor.disk.trace or ():
            say("digest", step)
        say("digest", actor.disk.digest.hexdigest())

    def _judge(self, home: Home, say: Callable[..., None], model: Model, at: float) -> None:
        Clock(at + 60).install()
        for problem in Judge(home, model, at).problems():
            say("problem", problem)
        if self.known is not None:
            say("loaded", *loaded())

    def _beside(self, home: Home, seed: int, operation: Operation, model: Model, outcome: Outcome) -> list[Any]:
        """Do an operation in another process; return what it said, and the digest of its steps."""
        lived = Lived([operation], model, outcome, None)

        def act(say: Say) -> None:
            if self._collide:
                make_ids_collide()
            actor = Actor(home, say, f"{seed} {operation.number}", operation.at, model.copy(), beside=True)
            actor.live(operation)
            actor.memory.close()
            actor.disk.keep_steps()
            say("digest", actor.disk.digest.hexdigest())

        said, status = forked(act, answer=lived.learn)
        outcome.counts["beside"] += 1
        if status == WAITING:
            model.died(operation)
        elif status:
            outcome.problems.append((operation.number, f"{operation.kind}, beside another: {_how_it_ended(status)}"))
        return said

    def _die(self, home: Home, lived: "Lived", seed: int, beside: Beside) -> None:
        current, fault = lived.current, lived.current.fault
        if not lived.has_ended:
            lived.model.died(current)
        if beside.is_cut:
            beside.lose_power(current)
            return
        if fault is None:
            lived.outcome.problems.append((current.number, f"{current.kind}: died without a fault"))
            return
        lived.outcome.counts[fault.kind] += 1
        if fault.kind == "power":
            disk = Disk(self.root / "before")
            disk.play(recorded_steps(home.root))
            restore(disk, home.data, str(fault.how), Random(f"{seed} cut {current.number}"))


@define
class Lived:
    """What a process has lived of a life, learnt from what it says."""

    life: Sequence[Operation]
    model: Model
    outcome: Outcome
    #: What a rehearsal meets is added to this.
    known: dict[str, Known] | None
    #: Does an operation in another process, and returns what that has said.
    beside: Callable[[Operation], list[Any]] = field(default=lambda _operation: [])
    #: Starts who was killed again.
    go_on: Callable[[Operation], None] = field(default=lambda _operation: None)
    #: Looks for what was forgotten.
    look: Callable[[], list[Any]] = field(default=list)
    current: Operation = field(init=False)
    #: Whether the current operation was acknowledged, or has failed.
    has_ended: bool = False

    def __attrs_post_init__(self) -> None:
        self.current = self.life[0]

    def learn(self, said: Sequence[Any]) -> list[Any] | None:
        """Learn from one thing that was said; return the answer if it is a question."""
        what, *words = said
        counts = self.outcome.counts
        match what:
            case "begin":
                self.current = next((each for each in self.life if each.number == words[0]), self.current)
                self.has_ended = False
                self.go_on(self.current)
                counts.update(("operations", self.current.kind) if self.current.number < BESIDE_FROM else ())
            case "beside":
                return self.beside(beside_of(self.current))
            case "look":
                return self.look()
            case "end":
                self.has_ended = True
                self.model.hear(said, self.current)
                counts.update([words[2]] if words[2] else [])
            case "full" | "interrupts" | "thread" | "turns":
                counts[what] += words[0] if words else 1
            case "problem":
                self.outcome.problems.append((self.current.number, words[0]))
            case "digest":
                self.outcome.digests.append(words[0])
            case "loaded":
                load(*words)
            case "known" if self.known is not None:
                add_known(self.known, words[0])
            case _:
                self.model.hear(said, self.current)
        return None


def _how_it_ended(status: int | str) -> str:
    return {STUCK: "it waits for a lock that it holds itself", "hang": "it hangs"}.get(status, "it ended early")


def to_known(known: dict[str, Known]) -> dict[str, Any]:
    from attrs import asdict

    return {kind: asdict(found) for kind, found in known.items()}


def add_known(known: dict[str, Known], found: dict[str, Any]) -> None:
    """Add what a child met to what is known."""
    from interrupts import Place

    for kind, told in found.items():
        add_met(known, kind, Known([Place(**place) for place in told["places"]], told["steps"], told["turns"]))


def loaded() -> tuple[list[str], list[tuple[str, int]]]:
    """Return the modules that this process has, and the patterns that it has compiled."""
    patterns = [(key[1], int(key[2])) for key in re._cache if key[0] is str]
    return [name for name, module in sys.modules.items() if getattr(module, "__spec__", None)], patterns


def load(modules: Sequence[str], patterns: Sequence[tuple[str, int]]) -> None:
    """Import and compile what a child had to, so that later ones need not."""
    for name in modules:
        if name not in sys.modules:
            with suppress(ImportError):
                importlib.import_module(name)
    for pattern, flags in patterns:
        re.compile(pattern, flags)


def rehearse(stage: Stage) -> dict[str, Known]:
    """Return what a life without faults meets in each kind of operation."""
    stage.known = {}
    outcome = evolve(stage, earlier=None).live_here(rehearsal(), 1)
    assert not outcome.problems, outcome.problems
    known, stage.known = stage.known, None
    gc.freeze()  # what was loaded is shared with every child, and none looks through it
    return known
