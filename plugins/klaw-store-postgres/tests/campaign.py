"""Writers that are killed, or whose server is: ``python campaign.py DSN client|server POINTS SEED``.

Prints, a line each: the agent, and how many of its documents were acknowledged. Each writer is a fork of this process,
which has no connection and no thread of its own. ``python campaign.py DSN memory 0 DIRECTORY`` saves texts in a memory
until it is killed, and prints what was acknowledged (``+``) or refused (``-``), with the error.
"""

import os
import random
import signal
import sys
import time
from itertools import count
from pathlib import Path

from attrs import evolve

from klaw_core import KlawError, Memory, StoreError, load_config
from klaw_core.values.vectors import SpaceRecord
from klaw_store_postgres.options import PgVectorOptions, PostgresOptions
from klaw_store_postgres.store import PostgresStore
from klaw_store_postgres.vectors import VectorIndex
from klaw_store_postgres.words.index import WordIndex
from klaw_testing.index import SPACE, unit_vectors
from klaw_testing.store_cache import vector
from klaw_testing.values import cut_lines, make_document

#: The HNSW index is made in the midst of a run.
INDEXES = {"pgvector": VectorIndex(PgVectorOptions(exact_up_to=20)), "pgwords": WordIndex()}
LINES = "the lantern hangs at the pier {0}\nthe boat lies at the quay {0}"
_SECONDS = 30.0
ENVIRONMENT = {"KLAW_CONFIG": os.devnull}


def path_of(number):
    return f"notes/{number}.md"


def open_store(dsn, agent):
    store = PostgresStore(PostgresOptions(dsn, timeout_seconds=60), agent=agent)
    for name, index in INDEXES.items():
        store.enlist(name, index)
    return store


def write(store, number):
    """Write a record, and a document with its words and vectors, as a save does."""
    store.journals.records("saved").append([{"id": str(number), "text": LINES.format(number)}])
    document = make_document(path_of(number), LINES.format(number))
    with store.write() as transaction:
        if transaction.space("memory") is None:
            transaction.set_space("memory", SpaceRecord(SPACE, vector(*[1] * SPACE.dimension)))
            INDEXES["pgvector"].reset(transaction.resource, "memory", SPACE)
        change = transaction.replace("memory", document, cut_lines(document))
        for index in INDEXES.values():
            index.remove(transaction.resource, "memory", change.removed)
            index.add(transaction.resource, "memory", change.added, unit_vectors(change.added))
        transaction.cache_vectors(SPACE, {stored.chunk.embedding_hash: row for stored, row in zip(
            change.added, unit_vectors(change.added), strict=True)})  # fmt: skip


def run_writer(dsn, agent, pipe):
    """Write until killed; what fails, because the server was, is done again."""
    store = open_store(dsn, agent)
    number = 0
    while True:
        try:
            write(store, number)
        except StoreError:
            time.sleep(0.05)
            continue
        os.write(pipe, b"+")
        number += 1


def fork_writer(dsn, agent):
    """Start a writer; return its process and where it acknowledges."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(reading)
            run_writer(dsn, agent, writing)
        finally:
            os._exit(1)
    os.close(writing)
    return process, reading


def kill(process, pipe):
    """Kill a writer; return how often it has acknowledged since."""
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    acknowledged = 0
    while some := os.read(pipe, 4096):
        acknowledged += len(some)
    os.close(pipe)
    return acknowledged


def kill_clients(dsn, points, chance):
    for point in range(points):
        agent = f"killed-{chance.getrandbits(64):x}"
        process, pipe = fork_writer(dsn, agent)
        first = len(os.read(pipe, 1))
        time.sleep(chance.uniform(0, 0.25))
        print(agent, first + kill(process, pipe), point, flush=True)  # noqa: T201  # a program's output


def kill_servers(dsn, points, chance):
    import psycopg

    agent = f"survivor-{chance.getrandbits(64):x}"
    process, pipe = fork_writer(dsn, agent)
    acknowledged = 0
    for _ in range(points):
        acknowledged += len(os.read(pipe, 1))  # it has gone on since the last time
        time.sleep(chance.uniform(0, 0.3))
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                with psycopg.connect(dsn, autocommit=True) as connection:
                    sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'klaw'"
                    pids = [pid for (pid,) in connection.execute(sql)]
                if pids:
                    break
            except psycopg.OperationalError:
                pass
            assert time.monotonic() < deadline, "the server does not come back"
            time.sleep(0.01)
        # A server process that is killed takes all others with it: memory that they share may be damaged.
        os.kill(chance.choice(pids), signal.SIGKILL)
    print(agent, acknowledged + kill(process, pipe), points, flush=True)  # noqa: T201  # a program's output


def open_memory(dsn, directory):
    store = {"type": "postgres", "dsn": dsn, "timeout_seconds": 5}
    tables = {"store": store, "embedding": {"type": "none"}}
    config = load_config(data_dir=Path(directory), environment=ENVIRONMENT, overrides={"memory": tables})
    return Memory.open(evolve(config, agent="stopped"))


def save_until_killed(dsn, _points, directory):
    memory = open_memory(dsn, directory)
    for number in count():
        try:
            memory.save(f"the lantern number{number}x hangs at the pier")
            told = f"+ {number}"
        except KlawError as error:
            told = f"- {number} {type(error).__name__}: {error.message} -> {error.hint}"
            time.sleep(0.1)
        print(" ".join(told.split()), flush=True)  # noqa: T201  # a program's output


if __name__ == "__main__":
    if sys.argv[2] == "memory":
        save_until_killed(sys.argv[1], 0, sys.argv[4])
    _, DSN, WHO, POINTS, SEED = sys.argv
    {"client": kill_clients, "server": kill_servers}[WHO](DSN, int(POINTS), random.Random(int(SEED)))
