"""A life twice: with SQLite, and with PostgreSQL. At its end both have the same records, and find the same.

Nothing fails in SQLite. In the lives of odd seeds, PostgreSQL fails, and afterwards only what both know for sure is
compared. What a disk or an editor does to files is left out, and so is the second machine.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from actor import Actor
from attrs import define, evolve, field, frozen
from children import forked
from earlier import Earlier
from lives import OF_TWO, Operation, plan
from machines import dump
from model import Judge, Model
from others import write_private
from scenes import Home
from severed import Severed, Severing, die_at, with_faults
from stores import in_postgres
from world import CRASHED, Clock, seed_dice

#: What both lives leave out.
_OF_FILES = {*OF_TWO, "damage", "edit"}
_SHOWN = 3
_WORD = re.compile(r"w\d+x\d+q")
#: The kinds of records that hold what was told, and nothing that was found out from it.
_TEXTS = {"saved", "message"}
#: The place of a message in its journal, which is a part of its id: bytes in a file, or the number of a row.
#: What is noted of facts has ids and keys that are hashes, of that place too; and so has the full name of a message.
_HASHED = re.compile(r"\b[a-z]-[a-z2-7]{16}\b|\b[0-9a-f]{64}\b|(?<=~)[0-9a-f]{32}\b")
_OFFSET = re.compile(r"(Z-)\d+(-[0-9a-f]{16})")
TWIN = "twin"


@frozen
class OnPostgres(Home):
    """A home whose store is PostgreSQL: tables in a schema of its own."""

    dsn: str = ""
    schema: str = ""

    def config(self, directory: Path, dimension: int = 16) -> Any:
        return in_postgres(super().config(directory, dimension), self.dsn, self.schema)


@define
class Server:
    """A server of PostgreSQL that starts when it is needed first, if there can be one."""

    _server: Any = None
    #: Why there is none.
    missing: str = ""

    @property
    def dsn(self) -> str:
        """Where it is; "" if there is none."""
        if self._server is None and not self.missing:
            try:
                from klaw_testing.doubles.postgres import PostgresServer

                server = PostgresServer()
                server.start()
            except ImportError as error:
                self.missing = f"no PostgreSQL here: {error}"
            else:
                self._server = server
        return "" if self._server is None else str(self._server.dsn)

    @property
    def superuser_dsn(self) -> str:
        """Where it is, for one who may do everything."""
        return str(self._server.superuser_dsn)

    def halt(self, mode: str) -> None:
        """Stop it for a while, as ``pg_ctl stop -m`` does."""
        self._server.halt(mode)

    def go_on(self) -> None:
        """Start it again."""
        self._server.go_on()

    def drop(self, schema: str) -> None:
        """Remove what a life has left."""
        import psycopg

        self._server.go_on()  # unless it runs
        with psycopg.connect(self._server.superuser_dsn, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._server is not None:
            self._server.stop()


def plan_of_both(seed: int) -> list[Operation]:
    """Return the life of a seed as both stores can have it."""
    life = [operation for operation in plan(seed, {}) if operation.kind not in _OF_FILES]
    return with_faults(life, seed) if seed % 2 else life


@define
class Twins:
    """Lives a life in both stores, and compares them."""

    root: Path
    registry: Any
    server: Server
    #: The version of Klaw that lives the first part in both stores, if not today's.
    earlier: Earlier | None = None
    problems: list[str] = field(factory=list)
    counts: Counter[str] = field(factory=Counter)

    def live(self, life: Sequence[Operation], seed: int) -> list[str]:
        """Return what is wrong, or differs."""
        self.problems, self.counts = [], Counter()
        schema = f"life{seed}"
        one = Home(self.root / "home", self.registry, facts=True, private=True)
        other = OnPostgres(one.root, self.registry, facts=True, private=True, dsn=self.server.dsn, schema=schema)
        told: list[list[str]] = []
        models: list[Model] = []
        early: set[str] = set()
        fails = any(operation.fault for operation in life)
        try:
            for home in (one, other):
                shutil.rmtree(home.root, ignore_errors=True)
                home.data.mkdir(parents=True)
                write_private(home)
                faulty = life if home is other else [evolve(operation, fault=None) for operation in life]
                models.append(self._begun(home, seed))
                early |= _sure(models[-1])
                told.append(self._live(home, faulty, seed, models[-1]))
        finally:
            self.server.drop(schema)
        if fails or early:
            words = _sure(models[0]) & _sure(models[1]) - early  # the moments of an earlier version are real ones
            told = [[record for record in each if words & {*_WORD.findall(record)}] for each in told]
            told = [[_unnamed(record) for record in each if json.loads(record)["kind"] in _TEXTS] for each in told]
        return [*self.problems, *_differences(*told)]

    def _begun(self, home: Home, seed: int) -> Model:
        """Return what an earlier version has acknowledged, if it lives the first part."""
        if self.earlier is None:
            return Model()
        place, die = ((home.dsn, home.schema), die_at) if isinstance(home, OnPostgres) else ((), None)
        model, problems = self.earlier.begin(home, seed, place, die)
        self.problems += [f"{_store(home)}: {problem}" for problem in problems]
        return model

    def _live(self, home: Home, life: Sequence[Operation], seed: int, model: Model) -> list[str]:
        """Live it in one store; return the records at its end."""
        store = _store(home)
        severing = Severing(self.server) if any(operation.fault for operation in life) else None
        begin, died = 0, self.earlier is not None  # all is looked at once
        while begin < len(life):
            after = [at for at in range(begin + 1, len(life)) if life[at].kind == "restart"]
            part = life[begin : (after or [len(life)])[0]]
            said, status = forked(partial(_act, home, part, model.copy(), seed=seed, severing=severing, has_died=died))
            current, has_ended = part[0], False
            for each in said:
                if each[0] == "begin":
                    current = next(operation for operation in part if operation.number == each[1])
                    has_ended = False
                elif each[0] == "problem":
                    self.problems.append(f"{store}: {each[1]}")
                else:
                    has_ended = has_ended or each[0] == "end"
                    self.counts.update({"cut", "stop", "thread"} & {each[0]})
                    model.hear(each, current)
            begin += len(part)
            died = status == CRASHED and current.fault is not None
            if died:
                begin = life.index(current) + 1
                self.counts["exit"] += 1
                if not has_ended:
                    model.died(current)
            elif status:
                self.problems.append(f"{store}: {current.kind}: it ended with {status}")
                return []
        said, status = forked(partial(_judge, home, model, life[-1].at))
        self.problems += [f"{store}: {each[1]}" for each in said if each[0] == "problem"]
        if status:
            self.problems.append(f"{store}: the look at the end has ended with {status}")
        return [each[1] for each in said if each[0] == "record"]


def _store(home: Home) -> str:
    return "postgres" if isinstance(home, OnPostgres) else "sqlite"


def _act(
    home: Home,
    life: Sequence[Operation],
    model: Model,
    say: Any,
    *,
    seed: int,
    severing: Severing | None,
    has_died: bool,
) -> None:
    dice, at = f"{seed} {life[0].number}", life[0].at
    if severing is None:
        actor = Actor(home, say, dice, at, model, company=TWIN)
    else:
        actor = Severed(home, say, severing, dice, at, model)
    if has_died:
        left = () if severing is None else severing.problems()
        for problem in [*left, *Judge(home, model, at).at_once(actor.memory)]:
            say("problem", f"at once: {problem}")
    for operation in life:
        actor.disk.dice.seed(operation.word)  # ids are the same, however much chance a store needs
        actor.live(operation)
    actor.memory.close()


def _judge(home: Home, model: Model, at: float, say: Any) -> None:
    Clock(at + 60, waits=True).install()
    seed_dice("judge", is_alone=False)
    judge = Judge(home, model, at)
    with home.open() as memory:
        for problem in judge.found_by_all(memory):
            say("problem", problem)
        records = dump(memory, home.root / "dump.jsonl")
        for problem in made_twice(records, model):
            say("problem", problem)
        for record in map(plain, records):
            say("record", record)


def made_twice(records: Sequence[str], model: Model) -> Iterator[str]:
    """Yield what was acknowledged once, and is there as two records."""
    texts = [record for record in records if json.loads(record)["kind"] in _TEXTS]
    counts = Counter(word for record in texts for word in {*_WORD.findall(record)})
    for word in sorted({*model.saved.values(), *model.said.values()} - {*model.unsure.values()}):
        if counts[word] > 1:
            yield "what was done once is there twice"


def _sure(model: Model) -> set[str]:
    """Return the words of what is there, whatever may have failed."""
    return {*model.saved.values(), *model.said.values()} - {*model.unsure.values()}


def plain(record: str) -> str:
    """Return a record without what the place of a message in its journal decides."""
    return _HASHED.sub("#", _OFFSET.sub(r"\1#\2", record))


def _unnamed(record: str) -> str:
    """Return the record of a message without its name, which may be that of an earlier one, chosen from what is there.

    The lives do not choose the same one: after a fault one of them is sure of fewer messages.
    """
    told = json.loads(record)
    if told["kind"] == "message":
        told["value"]["id"] = ""
    return json.dumps(told, sort_keys=True)


def _differences(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """Yield what only one of two dumps has."""
    counts = Counter(one), Counter(other)
    for name, only in (("sqlite", counts[0] - counts[1]), ("postgres", counts[1] - counts[0])):
        yield from (f"only {name} has the record {record[:300]}" for record in sorted(only.elements())[:_SHOWN])
