"""Several processes that write for one agent, or each for an agent of its own, beside the statements alone.

    python benchmarks/writers.py [--processes 4] [--transactions 150] [--rounds 3] [--dsn postgresql://…]

A transaction adds a document of two chunks with its words, its vectors (384 dimensions) and their cache, as a save
does. ``statements`` are those of the same transactions, recorded and sent again by psycopg from processes that do
nothing else: what the server and the driver take, and so the most that writers of one agent can reach on this machine.
What is printed is the median of the rounds. Client and server share its processors. Compare figures of one run.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import psycopg
from clients import documents
from measuring import figure, table

from klaw_core import SpaceRecord, VectorSpace
from klaw_store_postgres.halves import HalfVectors, HalfVectorsDumper
from klaw_store_postgres.options import PostgresOptions
from klaw_store_postgres.session import Session
from klaw_store_postgres.store import PostgresStore
from klaw_store_postgres.vectors import VectorIndex
from klaw_store_postgres.words.index import WordIndex
from klaw_testing.doubles.postgres import PostgresServer
from klaw_testing.values import cut_lines, make_document

_SPACE = VectorSpace("random", "1", 384)
_WARM = 20
Statement = tuple[str, Any]


class Writer:
    """Writes for an agent."""

    def __init__(self, dsn: str, agent: str, number: int) -> None:
        self.store = PostgresStore(PostgresOptions(dsn, timeout_seconds=120), agent=agent)
        self.indexes = (VectorIndex(), WordIndex())
        for name, index in zip(("pgvector", "pgwords"), self.indexes, strict=True):
            self.store.enlist(name, index)
        self.texts = documents(1_000_000, random.Random(number))
        self.vectors = np.random.default_rng(number)
        self.name = f"{number}-{os.getpid()}"

    def prepare(self) -> None:
        """Make the agent's vector space."""
        with self.store.write() as transaction:
            if transaction.space("memory") is None:
                transaction.set_space("memory", SpaceRecord(_SPACE, self._units(1)[0]))
                self.indexes[0].reset(transaction.resource, "memory", _SPACE)

    def write(self, turn: int) -> None:
        """Add one document."""
        text = f"{next(self.texts).text}\n{next(self.texts).text}"
        document = make_document(f"notes/{self.name}-{turn}.md", text)
        chunks = cut_lines(document)
        with self.store.write() as transaction:
            added = transaction.replace("memory", document, chunks, expected={}).added
            units = self._units(len(added))
            for index in self.indexes:
                index.add(transaction.resource, "memory", added, units)
            hashes = (stored.chunk.embedding_hash for stored in added)
            transaction.cache_vectors(_SPACE, dict(zip(hashes, units, strict=True)))

    def _units(self, count: int) -> Any:
        rows = self.vectors.standard_normal((count, _SPACE.dimension), dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _write(dsn: str, agent: str, number: int, gate: Any, count: int) -> None:
    writer = Writer(dsn, agent, number)
    writer.prepare()
    for turn in range(_WARM):
        writer.write(-1 - turn)
    gate.wait()
    for turn in range(count):
        writer.write(turn)
    gate.wait()


def _send(dsn: str, begin: str, recorded: Sequence[Sequence[Statement]], gate: Any) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET search_path = klaw, public")
        connection.adapters.register_dumper(HalfVectors, HalfVectorsDumper)
        gate.wait()
        for statements in recorded:
            while True:
                try:
                    connection.execute(begin, prepare=False)
                    for sql, values in statements:
                        connection.execute(sql, values, binary=True)
                    connection.execute("COMMIT")
                    break
                except psycopg.errors.DeadlockDetected:  # merges come in another order than when they were recorded
                    connection.execute("ROLLBACK")
        gate.wait()


def timed(processes: int, start: Callable[[int, Any], tuple[Callable[..., None], tuple[Any, ...]]]) -> float:
    """Start processes that meet twice; return the seconds in between."""
    context = get_context("spawn")
    gate = context.Barrier(processes + 1)
    started = []
    for number in range(processes):
        target, arguments = start(number, gate)
        started.append(context.Process(target=target, args=arguments))
        started[-1].start()
    gate.wait()
    began = time.perf_counter()
    gate.wait()
    took = time.perf_counter() - began
    for process in started:
        process.join()
    return took


def record(dsn: str, agent: str, count: int) -> tuple[str, list[list[Statement]]]:
    """Let one writer work; return how it began, and the statements of each transaction."""
    writer = Writer(dsn, agent, 99)
    writer.prepare()
    recorded: list[list[Statement]] = []
    execute = psycopg.Connection.execute
    begins: list[str] = []

    def noting(connection: Any, query: Any, values: Any = None, **how: Any) -> Any:
        if how.get("prepare") is False:
            begins.append(query)
            recorded.append([])
        elif query not in {"COMMIT", "ROLLBACK"}:
            recorded[-1].append((query, values))
        return execute(connection, query, values, **how)

    psycopg.Connection.execute = noting  # type: ignore[method-assign,assignment]  # of this process
    try:
        for turn in range(count):
            writer.write(turn)
    finally:
        psycopg.Connection.execute = execute  # type: ignore[method-assign]
    with writer.store.read() as snapshot:
        session: Session = snapshot.resource
        scope = session.scope
    with writer.store.write() as transaction:  # what was recorded can be written once more
        for name in ("documents", "chunks", "vectors", "word_segments", "word_rows", "word_blocks"):
            transaction.resource.run(f"DELETE FROM {name} WHERE tenant = %s", (scope[0],))
        transaction.resource.run("DELETE FROM embedding_cache WHERE tenant = %s", (scope[0],))
    return begins[0], [some for some in recorded if len(some) > 2]


def main() -> None:
    """Write with one process and with several, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--transactions", type=int, default=150, help="of each process, in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dsn", default="")
    given = parser.parse_args()
    numbers = (1, given.processes)
    taken: dict[int, list[list[float]]] = {processes: [] for processes in numbers}
    with ExitStack() as stack:
        dsn = given.dsn
        if not dsn:
            server = PostgresServer(durable=True)
            stack.callback(server.stop)
            server.start()
            dsn = server.dsn
        measure(dsn, "first", 1, given.transactions)  # in empty tables everything takes longer
        for turn in range(given.rounds):
            for processes in numbers:
                taken[processes].append(measure(dsn, f"{turn}-{processes}", processes, given.transactions))
    rows = {processes: [median(column) for column in zip(*rates, strict=True)] for processes, rates in taken.items()}
    head = ("processes", "one agent", "an agent each", "statements, one agent")
    shown = [[str(processes), *map(figure, row)] for processes, row in rows.items()]
    one, many = rows.values()
    print(f"transactions a second, the median of {given.rounds} rounds")
    ratios = [f"{more / alone:.2f} times" for alone, more in zip(one, many, strict=True)]
    print(table(head, [*shown, ["ratio", *ratios]]))


def measure(dsn: str, name: str, processes: int, count: int) -> list[float]:
    """Return how many transactions a second one agent takes, an agent for each process, and the statements alone."""
    Writer(dsn, f"one-{name}", 0).prepare()
    shared = timed(processes, lambda number, gate: (_write, (dsn, f"one-{name}", number, gate, count)))
    apart = timed(processes, lambda number, gate: (_write, (dsn, f"own-{name}-{number}", number, gate, count)))
    begin, recorded = record(dsn, f"recorded-{name}", processes * count)
    parts = [recorded[number * count : (number + 1) * count] for number in range(processes)]
    alone = timed(processes, lambda number, gate: (_send, (dsn, begin, parts[number], gate)))
    if processes == 1:  # that is the same
        shared = apart = (shared + apart) / 2
    return [processes * count / took for took in (shared, apart, alone)]


if __name__ == "__main__":
    main()
