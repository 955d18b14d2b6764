"""The plan of a life: one day of operations and faults, drawn from a seed.

Each operation draws from dice of its own and refers to earlier ones by a fraction, never by a number. So leaving one
out changes no other, and any part of a life is a life, by which a failing one is shortened.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from attrs import asdict, define, field, frozen
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
    "reindex": 1,
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
    "far": 5,
    "sync": 4,
}
#: What only some lives have: those of a person with two machines.
OF_TWO = ("far", "sync")
_TWO = 1 / 3
_PAUSES = (1, 5, 60, 900)
_SETTINGS = (-86_400, -3_600, 7_200, 40 * 86_400)
_ADDRESS = 7919, 104_729  # primes: the places of interrupts take turns over the seeds
_QUIET = 4  # the first operations have no fault
#: What nothing interrupts: the person repairs a database, after which it must be whole.
_UNDISTURBED = {"damage"}


@define
class Known:
    """What a rehearsal met in one kind of operation: the places for interrupts, and the number of steps on the disk."""

    places: list[Place] = field(factory=list)
    steps: int = 0


@frozen
class Fault:
    """What goes wrong: ``interrupt``, ``crash``, ``power`` or ``full``; where; and how."""

    kind: str
    step: int = 0
    how: str | int | bool = 0
    place: Place | None = None


@frozen
class Operation:
    """One thing that happens at a moment: ``word`` stands in its text only; ``pick`` chooses among earlier things."""

    number: int
    kind: str
    at: float
    word: str
    pick: float
    fault: Fault | None = None


def plan(seed: int, known: Mapping[str, Known], operations: int = OPERATIONS) -> list[Operation]:
    """Return the life of a seed. Without what a rehearsal met there are no faults."""
    taste = Random(f"{seed} taste")
    weights = [weight * taste.choice((0, 1, 1, 1, 2, 4)) for weight in KINDS.values()]
    weights[0] = max(weights[0], 1)
    if taste.random() > _TWO:
        weights = [0 if kind in OF_TWO else weight for kind, weight in zip(KINDS, weights, strict=True)]
    life: list[Operation] = []
    at: float = START
    for number in range(operations):
        dice = Random(f"{seed} {number}")
        kind = dice.choices([*KINDS], weights)[0]
        at += dice.choice(_SETTINGS if kind == "clock" else _PAUSES)
        pick = dice.random()
        may_fail = kind in known and kind not in _UNDISTURBED and number >= _QUIET
        fault = _fault(dice, known[kind], seed, number) if may_fail else None
        life.append(Operation(number, kind, at, f"w{seed}x{number}q", pick, fault))
    return life


def _fault(dice: Random, known: Known, seed: int, number: int) -> Fault | None:
    luck = dice.random()
    step = dice.randrange(known.steps) if known.steps else 0
    how = dice.random()
    if luck < 0.16 and known.places:
        place = known.places[(seed * _ADDRESS[0] + number * _ADDRESS[1]) % len(known.places)]
        return Fault("interrupt", how=how < 1 / 2, place=place)
    if not known.steps or luck >= 0.32:
        return None
    if luck < 0.22:
        return Fault("crash", step)
    if luck < 0.28:
        return Fault("power", step, ("lost", "dropped", "torn")[int(how * 3)])
    return Fault("full", step, 1 if how < 1 / 2 else 1000)


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
    return Operation(**item, fault=Fault(**fault, place=None if place is None else Place(**place)))


def without(life: Sequence[Operation], first: int, last: int) -> list[Operation]:
    """Return a life without some of its operations."""
    return [*life[:first], *life[last:]]
