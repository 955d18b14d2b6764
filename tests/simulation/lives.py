"""The plan of a life: one day of operations and faults, drawn from a seed. And what the life was.

Each operation draws from dice of its own and refers to earlier ones by a fraction, never by a number. So leaving one
out changes no other, and any part of a life is a life, by which a failing one is shortened.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path
from random import Random
from typing import Any, Self

from attrs import asdict, define, evolve, field, frozen
from interrupts import Place

START = 1_772_000_000
OPERATIONS = 60
#: Operations with their usual weights. Each life draws weights of its own around these, so that lives differ.
KINDS: Mapping[str, int] = {
    "save": 14,
    "secret": 2,
    "forget": 7,
    "say": 7,
    "move": 4,
    "unsay": 3,
    "note": 8,
    "unnote": 3,
    "index": 5,
    "search": 7,
    "context": 4,
    "fact": 4,
    "unfact": 2,
    "extract": 2,
    "core": 3,
    "export": 1,
    "reindex": 3,
    "purge": 1,
    "doctor": 1,
    "restart": 2,
    "clock": 1,
    "retract": 2,
    "import": 2,
    "agent": 3,
    "request": 3,
    "tool": 4,
    "edit": 1,
    "damage": 1,
    "shell": 3,
    "far": 5,
    "sync": 4,
}
#: What takes the place of some operations in one life of three, so that lives without it are what they were.
LATER = ("rename", "model", "zone")
_HAS_LATER, _IS_LATER = 1 / 3, 1 / 10
_OF_STEPS = {"crash", "power", "full"}  # their steps suit any operation
#: What only some lives have: those of a person with two machines.
OF_TWO = ("far", "sync")
_TWO = 1 / 3
#: What begins a part of the day beside a process that stays, and what ends that.
COMPANY, LEAVE = ("watch", "serve"), "leave"
#: What stands among the digests where such a part begins: how processes take turns depends on real time.
REAL = "real time"
_COMPANY = 4  # one life of so many has such a part
_COMPANY_SIZES = 6, 20
_PAUSES = (1, 5, 60, 900)
_SETTINGS = (-86_400, -3_600, 7_200, 40 * 86_400)
#: Lives whose interrupts and other processes share the places out among them.
_TERM = 400
#: What a person tries and interrupts so many times, as it changes nothing: each place costs little then.
_ATTEMPTS: Mapping[str, int] = {"search": 100, "context": 40, "doctor": 20, "export": 40}
#: What a rehearsal begins with, how often it has each kind, and what some kinds need before.
_FIRST, _ROUNDS = ("save", "say", "note", "fact", "move", "index"), 3
_BEFORE: Mapping[str, tuple[str, ...]] = {
    "forget": ("save",),
    "unsay": ("say",),
    "purge": ("say",),
    "edit": ("say",),
    "unnote": ("note",),
    "index": ("note",),
    "unfact": ("fact",),
    "retract": ("fact",),
    "extract": ("move",),
    **dict.fromkeys(("search", "context", "shell", "tool"), ("search", "shell", "tool")),
}
_QUIET = 4  # the first operations have no fault
#: What nothing interrupts: the person repairs a database, after which it must be whole.
_UNDISTURBED = {"damage"}
#: The number of what another process does beside the first operation.
BESIDE_FROM = 1000
#: How often a life uses a kind of operation, as a multiple of its weight: half of the kinds are left out of each life,
#: so that what is rare beside all others is common in some ("swarm testing": Groce and others, ISSTA 2012).
_TASTES = 0, 0, 0, 1, 2, 4
#: The kinds of faults, of which each life has some; and how many of its operations meet one.
FAULTS = ("interrupt", "crash", "power", "full", "beside")
_RATES = 0.15, 0.3, 0.5
#: In one life of so many, operations are done at once in two threads of one process, too.
_THREADS = 3
#: What another process does while an operation is under way. (Only one program at a time edits by hand or has damage.)
BESIDE = (
    "save",
    "forget",
    "say",
    "unsay",
    "note",
    "index",
    "search",
    "context",
    "fact",
    "unfact",
    "retract",
    "reindex",
)
#: What is not overtaken: what ends or replaces all of what the other process may write, and what runs in threads.
ALONE = {
    "damage",
    "edit",
    "purge",
    "core",
    "export",
    "restart",
    "clock",
    "request",
    "tool",
    "agent",
    "far",
    "sync",
    "shell",
}


@define
class Known:
    """What a rehearsal met in one kind of operation: the places for interrupts, and the number of steps on the disk.

    ``turns`` are those about which most is decided: flushes, names that change, and what follows them.
    """

    places: list[Place] = field(factory=list)
    steps: int = 0
    turns: int = 0


def add_met(known: dict[str, Known], kind: str, met: Known) -> None:
    """Add what an operation of a kind has met to what is known."""
    entry = known.setdefault(kind, Known())
    entry.places = list(dict.fromkeys([*entry.places, *met.places]))
    entry.steps, entry.turns = max(entry.steps, met.steps), max(entry.turns, met.turns)


@frozen
class Fault:
    """What goes wrong: ``interrupt``, ``crash``, ``power`` or ``full``; where; and how.

    ``beside`` and ``thread`` are no faults: another process does what ``how`` says, at a place of the operation; or
    another thread does, in turns with this one. With ``is_turn``, ``step`` counts turns only. A process that should
    crash or lose its power at a step that is not reached does so as soon as the operation is acknowledged.
    """

    kind: str
    step: int = 0
    how: str | int | bool = 0
    place: Place | None = None
    is_turn: bool = False
    #: Places at which a person has interrupted the same call before.
    earlier: tuple[Place, ...] = ()


@frozen
class Operation:
    """One thing that happens at a moment: ``word`` stands in its text only; ``pick`` chooses among earlier things."""

    number: int
    kind: str
    at: float
    word: str
    pick: float
    fault: Fault | None = None
    #: How often a person has tried it before.
    attempt: int = 0


@define
class Places:
    """Shares out the places that a rehearsal met: each is taken once before any is taken twice, in an order of dice.

    A place counts as the same in all kinds of operations. So what only a search passes is not left for last, and what
    every operation passes has its turn once, too. An operation takes of its own places those that were taken least.
    """

    _dice: Random
    #: For each kind, the numbers of its places; and all places.
    _of_kinds: dict[str, list[int]] = field(factory=dict)
    _all: list[Place] = field(factory=list)
    #: How many times each was taken, by the kind of fault.
    _taken: dict[str, list[int]] = field(factory=dict)

    @classmethod
    def of(cls, known: Mapping[str, Known], dice: Random) -> Self:
        """Return the places of what is known, of which none was taken."""
        numbers: dict[Place, int] = {}
        of_kinds = {
            kind: [numbers.setdefault(each, len(numbers)) for each in met.places] for kind, met in known.items()
        }
        for each in of_kinds.values():
            dice.shuffle(each)
        return cls(dice, of_kinds, [*numbers])

    def take(self, fault: str, kind: str, times: int) -> list[Place]:
        """Take so many places for a fault in a kind of operation; none if it has none."""
        own = self._of_kinds.get(kind, [])
        taken = self._taken.setdefault(fault, [0] * len(self._all))
        found = nsmallest(times, own, key=taken.__getitem__)
        for each in found:
            taken[each] += 1
        return [self._all[each] for each in found]


@define
class Plans:
    """The lives of seeds. A seed has one life with what a rehearsal met, whichever lives were planned before it."""

    known: Mapping[str, Known]
    _term: int = -1
    _next: int = 0
    _places: Places = field(init=False)

    def of(self, seed: int) -> list[Operation]:
        """Return the life of a seed. Without what a rehearsal met there are no faults."""
        if not self.known:
            return plan(seed, {})
        term, number = divmod(seed, _TERM)
        if term != self._term or number < self._next:
            self._term, self._next, self._places = term, 0, Places.of(self.known, Random(f"{term} places"))
        while self._next < number:  # which take places, too
            plan(term * _TERM + self._next, self.known, self._places)
            self._next += 1
        self._next += 1
        return plan(seed, self.known, self._places)


def rehearsal() -> list[Operation]:
    """Return a life without faults that has each kind of operation several times, with something to do."""
    dice, kinds = Random("rehearsal"), [*_FIRST]
    for _ in range(_ROUNDS):
        one = [kind for kind in KINDS if kind not in OF_TWO]
        dice.shuffle(one)
        kinds += [part for kind in one for part in (*_BEFORE.get(kind, ()), kind)]
    kinds += [*OF_TWO] * _ROUNDS * 2
    return [Operation(at, kind, START + 60 * at, f"w0x{at}q", dice.random()) for at, kind in enumerate(kinds)]


def plan(
    seed: int, known: Mapping[str, Known], places: Places | None = None, operations: int = OPERATIONS
) -> list[Operation]:
    """Return the life of a seed, whose faults come at these places. Without what a rehearsal met there are none."""
    taste = Random(f"{seed} taste")
    weights = [weight * taste.choice(_TASTES) for weight in KINDS.values()]
    weights[0] = max(weights[0], KINDS["save"] // 2)
    if taste.random() > _TWO:
        weights = [0 if kind in OF_TWO else weight for kind, weight in zip(KINDS, weights, strict=True)]
    rate, faults = taste.choice(_RATES), [kind for kind in FAULTS if taste.random() < 1 / 2]
    more = Random(f"{seed} more")  # what came later has dice of its own, so that earlier lives are what they were
    faults += ["thread"] * (more.randrange(_THREADS) == 0) * 2
    life: list[Operation] = []
    at: float = START
    for number in range(operations):
        dice = Random(f"{seed} {number}")
        kind = dice.choices([*KINDS], weights)[0]
        at += dice.choice(_SETTINGS if kind == "clock" else _PAUSES)
        pick = dice.random()
        may_fail = kind in known and kind not in _UNDISTURBED and number >= _QUIET and dice.random() < rate and faults
        fault = _fault(dice, known[kind], kind, dice.choice(faults), places) if may_fail else None
        life.append(Operation(number, kind, at, f"w{seed}x{number}q", pick, fault))
    return _in_company(_with_later(life, Random(f"{seed} later")), more) if known else life


def _with_later(life: list[Operation], dice: Random) -> list[Operation]:
    """Return a life in which some operations are of the kinds that came later, if the dice say so."""
    if dice.random() >= _HAS_LATER:
        return life

    def changed(operation: Operation) -> Operation:
        kind, is_later = dice.choice(LATER), dice.random() < _IS_LATER
        if not is_later or operation.number < _QUIET:
            return operation
        fault = operation.fault if operation.fault is not None and operation.fault.kind in _OF_STEPS else None
        return evolve(operation, kind=kind, fault=fault)

    return [changed(operation) for operation in life]


def _in_company(life: list[Operation], more: Random) -> list[Operation]:
    """Return a life that has a part beside a process that stays, if the dice say so."""
    if more.randrange(_COMPANY) or len(life) <= sum(_COMPANY_SIZES):
        return life
    size = more.randint(*_COMPANY_SIZES)
    first = more.randrange(_QUIET, len(life) - size)
    parts = {first: more.choice(COMPANY), first + size: LEAVE}
    return [
        evolve(operation, kind=parts.get(at, operation.kind), fault=None) if at in parts else operation
        for at, operation in enumerate(life)
    ]


def _fault(dice: Random, known: Known, kind: str, fault: str, places: Places | None) -> Fault | None:
    how = dice.random()
    if fault == "thread":
        return None if kind in ALONE else Fault(fault, how=BESIDE[int(how * len(BESIDE))])
    if fault in {"interrupt", "beside"}:
        times = 1 + (_ATTEMPTS.get(kind, 0) if fault == "interrupt" else 0)
        is_possible = places is not None and not (fault == "beside" and kind in ALONE)
        taken = places.take(fault, kind, times) if places is not None and is_possible else []
        if not taken:
            return None
        place, *earlier = taken
        how_told = how < 1 / 2 if fault == "interrupt" else BESIDE[int(how * len(BESIDE))]
        return Fault(fault, how=how_told, place=place, earlier=tuple(earlier))
    is_turn = fault != "full" and dice.random() < 1 / 2
    # Most operations of a kind have fewer steps than the one of the rehearsal that had the most.
    step = int((known.turns if is_turn else known.steps) * dice.random() ** 2)
    if fault == "full":
        return Fault(fault, step, 1 if how < 1 / 2 else 1000) if known.steps else None
    modes = ("lost", "dropped", "torn")
    return Fault(fault, step, modes[int(how * 3)] if fault == "power" else 0, is_turn=is_turn)


def beside_of(operation: Operation) -> Operation:
    """Return what another process does in the middle of an operation."""
    assert operation.fault is not None
    number = operation.number + BESIDE_FROM
    word = operation.word.replace(f"x{operation.number}q", f"x{number}q")
    return Operation(number, str(operation.fault.how), operation.at, word, (operation.pick * 7) % 1)


def to_json(life: Iterable[Operation]) -> str:
    """Return a life as text, one operation a line."""
    return "[\n" + ",\n".join(json.dumps(asdict(operation), sort_keys=True) for operation in life) + "\n]\n"


def from_json(path: Path) -> list[Operation]:
    """Return the life in a file."""
    return [_operation(item) for item in json.loads(path.read_text("utf-8"))]


def _operation(item: dict[str, Any]) -> Operation:
    fault = item.pop("fault")
    if fault is None:
        return Operation(**item)
    place = fault.pop("place")
    fault["earlier"] = tuple(Place(**each) for each in fault.get("earlier", ()))
    return Operation(**item, fault=Fault(**fault, place=None if place is None else Place(**place)))


def without(life: Sequence[Operation], first: int, last: int) -> list[Operation]:
    """Return a life without some of its operations."""
    return [*life[:first], *life[last:]]


@define
class Outcome:
    """What a life was: its problems, each with the number of its operation (-1: at the end), counts, and digests."""

    problems: list[tuple[int, str]] = field(factory=list)
    counts: Counter[str] = field(factory=Counter)
    digests: list[str] = field(factory=list)

    def told(self) -> tuple[list[tuple[int, str]], dict[str, int], list[str]]:
        """Return this in words, for :meth:`learn`."""
        return self.problems, dict(self.counts), self.digests

    def learn(self, problems: list[list[Any]], counts: dict[str, int], digests: list[str]) -> None:
        """Add what another process has found."""
        self.problems += [(number, text) for number, text in problems]
        self.counts.update(counts)
        self.digests += digests

    def of_seed(self) -> Self:
        """Return what only the seed decides: all, or what was done on the disk before a process with a real clock."""
        return type(self)(digests=self.digests[: self.digests.index(REAL)]) if REAL in self.digests else self

    def signatures(self) -> list[str]:
        """Return the problems without what differs from life to life."""
        return sorted({re.sub(r"w\d+x\d+q|[0-9a-f]{8,}|\d+|tmp\w+", "#", text)[:100] for _, text in self.problems})

    def first(self, signature: str) -> tuple[int, str]:
        """Return the first problem with a signature."""
        return next(each for each in self.problems if Outcome([each]).signatures() == [signature])
