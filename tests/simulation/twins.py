"""A life twice: with SQLite, and with PostgreSQL. At its end both have the same records, and find the same.

Nothing fails in it, as a fault would come at another step in the other store. What a disk or an editor does to files is
left out, and so is the second machine: what the owner has is in the tables.
"""

from __future__ import annotations

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
from lives import OF_TWO, Operation, plan
from machines import dump
from model import Judge, Model
from others import write_private
from scenes import Home
from world import Clock, seed_dice

#: What both lives leave out.
_OF_FILES = {*OF_TWO, "damage", "edit"}
_SHOWN = 3
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
        config = super().config(directory, dimension)
        vectors, words = config.retrieval
        store = evolve(config.store, type="postgres", options={"dsn": self.dsn, "schema": self.schema})
        retrieval = evolve(vectors, type="pgvector", options={}), evolve(words, type="pgwords", options={})
        return evolve(config, store=store, retrieval=retrieval)


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

    def drop(self, schema: str) -> None:
        """Remove what a life has left."""
        import psycopg

        with psycopg.connect(self._server.superuser_dsn, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._server is not None:
            self._server.stop()


def plan_of_both(seed: int) -> list[Operation]:
    """Return the life of a seed as both stores can have it."""
    return [operation for operation in plan(seed, {}) if operation.kind not in _OF_FILES]


@define
class Twins:
    """Lives a life in both stores, and compares them."""

    root: Path
    registry: Any
    server: Server
    problems: list[str] = field(factory=list)

    def live(self, life: Sequence[Operation], seed: int) -> list[str]:
        """Return what is wrong, or differs."""
        self.problems = []
        schema = f"life{seed}"
        one = Home(self.root / "home", self.registry, facts=True, private=True)
        other = OnPostgres(one.root, self.registry, facts=True, private=True, dsn=self.server.dsn, schema=schema)
        told = []
        try:
            for home in (one, other):
                shutil.rmtree(home.root, ignore_errors=True)
                home.data.mkdir(parents=True)
                write_private(home)
                told.append(self._live(home, life, seed))
        finally:
            self.server.drop(schema)
        return [*self.problems, *_differences(*told)]

    def _live(self, home: Home, life: Sequence[Operation], seed: int) -> list[str]:
        """Live it in one store; return the records at its end."""
        store = "postgres" if isinstance(home, OnPostgres) else "sqlite"
        model, begin = Model(), 0
        while begin < len(life):
            after = [at for at in range(begin + 1, len(life)) if life[at].kind == "restart"]
            part = life[begin : (after or [len(life)])[0]]
            begin += len(part)
            said, status = forked(partial(_act, home, part, model.copy(), seed))
            current = part[0]
            for each in said:
                if each[0] == "begin":
                    current = next(operation for operation in part if operation.number == each[1])
                elif each[0] == "problem":
                    self.problems.append(f"{store}: {each[1]}")
                else:
                    model.hear(each, current)
            if status:
                self.problems.append(f"{store}: {current.kind}: it ended with {status}")
                return []
        said, status = forked(partial(_judge, home, model, life[-1].at))
        self.problems += [f"{store}: {each[1]}" for each in said if each[0] == "problem"]
        if status:
            self.problems.append(f"{store}: the look at the end has ended with {status}")
        return [each[1] for each in said if each[0] == "record"]


def _act(home: Home, life: Sequence[Operation], model: Model, seed: int, say: Any) -> None:
    actor = Actor(home, say, f"{seed} {life[0].number}", life[0].at, model, company=TWIN)
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
        for record in map(plain, dump(memory, home.root / "dump.jsonl")):
            say("record", record)


def plain(record: str) -> str:
    """Return a record without what the place of a message in its journal decides."""
    return _HASHED.sub("#", _OFFSET.sub(r"\1#\2", record))


def _differences(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    """Yield what only one of two dumps has."""
    counts = Counter(one), Counter(other)
    for name, only in (("sqlite", counts[0] - counts[1]), ("postgres", counts[1] - counts[0])):
        yield from (f"only {name} has the record {record[:300]}" for record in sorted(only.elements())[:_SHOWN])
