"""Words as Klaw searches for them beside FTS5's usual ways: CPU a question, and whether the same chunks are found.

    python benchmarks/word_search.py SOURCE [--cache DIR] [--count 100000] [--questions 200] [--rounds 2]

SOURCE is the directory that ``corpus.py`` makes chunks and real questions of. The index is filled in transactions of
256 chunks, and answers in a process with one thread, inside a read transaction, as the store has it. All ways answer
one question after the other, so that other work on the machine meets all of them. Ratios are the first way's CPU by
that of each way, for each question: median and quartiles, and of the sums.

Overlap is the share of the first ten chunks: of the plain ways with FTS5's OR of all words by rank; of Klaw's with its
exact plan, which also leaves out question words, and prefers neighbouring words that stand side by side. *Cold* is a
new connection and a new index object for each question. The filter keeps 1 % of the chunks at random.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import apsw
import numpy as np
from corpus import Corpus
from measuring import Spread, disk_megabytes, figure, in_own_process, table, timed

from klaw_core import Keys, KeySelection, Query
from klaw_fts5.exact import ExactSearch
from klaw_fts5.index import Fts5Index
from klaw_fts5.sql import statements
from klaw_testing.index import stored
from klaw_words.query import compile_query, render
from klaw_words.searching import Searcher, Weights

_BATCH = 256
_BEST = 10
_FORMS: tuple[Literal["exact", "packed"], ...] = ("exact", "packed")
Answer = Callable[[str], Sequence[int]]

_RANK = "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? ORDER BY rank LIMIT 10"
_BM25 = "SELECT rowid FROM memory_fts WHERE memory_fts MATCH ? ORDER BY bm25(memory_fts) LIMIT 10"


def build(path: Path, chunks: Sequence[str], search_by: Literal["exact", "packed"]) -> Mapping[str, float]:
    """Fill an index; return the CPU and the size on disk."""
    connection = _open(path)
    index = Fts5Index(search_by=search_by)
    for migration in index.migrations():
        migration.apply(connection)

    def fill() -> None:
        for first in range(0, len(chunks), _BATCH):
            batch = [
                stored(first + number, text) for number, text in enumerate(chunks[first : first + _BATCH], start=1)
            ]
            connection.execute("BEGIN IMMEDIATE")
            index.add(connection, "memory", batch, None)
            connection.execute("COMMIT")

    cost = timed(fill)
    connection.close()
    return {"seconds": cost.cpu, "megabytes": disk_megabytes(path.parent)}


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("secure_delete", 1)
    connection.pragma("cache_size", -64_000)
    return connection


@contextmanager
def _ways(path: Path, within: Keys) -> Iterator[dict[str, Answer]]:
    """Give every way of answering, the usual one first."""
    connection, plainly = _open(path), _open(path)  # two programs: FTS5 alone reads so much that it empties the cache
    connection.execute("BEGIN")
    plainly.execute("BEGIN")

    def by(sql: str) -> Answer:
        return lambda text: [key for (key,) in plainly.execute(sql, (render(compile_query(text)),))]

    def klaw(index: Fts5Index, asked: apsw.Connection = connection, within: KeySelection | None = None) -> Answer:
        return lambda text: [hit.key for hit in index.search(asked, Query(text, within=within), _BEST)]

    def cold(text: str) -> Sequence[int]:
        fresh = _open(path)
        try:
            return [hit.key for hit in Fts5Index(search_by="packed").search(fresh, Query(text), _BEST)]
        finally:
            fresh.close()

    weights, sql = Weights(), statements("memory")
    plain = Fts5Index(search_by="packed", heading_weight=1.0, context_weight=1.0)

    def rare(searcher: Callable[[], Searcher[Keys | None] | None]) -> Answer:
        def answer(text: str) -> Sequence[int]:
            asked = searcher()
            assert asked is not None
            terms = [term for term in compile_query(text) if not asked.is_everyday(term)]
            return list(asked.best(terms, _BEST, None))

        return answer

    yield {
        "FTS5, OR of all words, ORDER BY rank": by(_RANK),
        "the same, ORDER BY bm25()": by(_BM25),
        "FTS5, words of more than half left out": rare(lambda: ExactSearch(plainly, sql, weights, len(within) * 100)),
        "packed, the same words": rare(lambda: plain._packed(connection, sql, plain._state(connection, "memory"))),  # noqa: SLF001  # a part alone
        "Klaw, exact": klaw(Fts5Index(search_by="exact"), plainly),
        "Klaw, packed": klaw(Fts5Index(search_by="packed")),
        "Klaw, packed, cold": cold,
        "Klaw, packed, a filter that keeps 1 %": klaw(Fts5Index(search_by="packed"), within=KeySelection(within)),
    }
    connection.close()
    plainly.close()


def ask(path: Path, questions: Sequence[str], within: Keys, rounds: int) -> dict[str, list[tuple[float, set[int]]]]:
    """Return what each way took for each question, the least of the rounds, and what it found."""
    answers: dict[str, list[tuple[float, set[int]]]] = {}
    with _ways(path, within) as ways:
        for question in questions[:10]:
            ways["Klaw, packed"](question)
        for question in questions:
            for name, answer in ways.items():
                found: list[Sequence[int]] = []
                costs = [timed(lambda: found.append(answer(question))).cpu for _ in range(rounds)]  # noqa: B023  # called at once
                answers.setdefault(name, []).append((min(costs), set(found[0])))
    return answers


def report(answers: Mapping[str, Sequence[tuple[float, set[int]]]]) -> str:
    """Return the table."""
    names = list(answers)
    usual = answers[names[0]]
    rows = []
    for name, given in answers.items():
        reference = answers["Klaw, exact"] if name.startswith("Klaw, packed") else usual
        shares = [
            len(found & right) / len(right) for (_, found), (_, right) in zip(given, reference, strict=True) if right
        ]
        ratios = Spread.of(one / max(cost, 1e-6) for (one, _), (cost, _) in zip(usual, given, strict=True))
        total = sum(one for one, _ in usual) / sum(cost for cost, _ in given)
        overlap = "" if "filter" in name else f"{np.mean(shares):.3f}"
        milliseconds = Spread.of(1000 * cost for cost, _ in given)
        rows.append((name, str(milliseconds), str(ratios), figure(total), overlap))
    return table(("", "CPU ms", "times less", "of the sums", "overlap@10"), rows)


def measure(given: argparse.Namespace) -> str:
    """Build both indexes, ask, and return what there is to print."""
    corpus = Corpus(given.source, given.cache)
    chunks = list(corpus.chunks(given.count))
    questions = corpus.questions().texts[: given.questions]
    within = np.sort(np.random.default_rng(0).choice(given.count, given.count // 100, replace=False)) + 1
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        for search_by in _FORMS:
            (place := Path(directory, search_by)).mkdir()
            cost = build(place / "klaw.db", chunks, search_by)
            microseconds = 1e6 * cost["seconds"] / given.count
            lines.append(f"{search_by}: {microseconds:.0f} µs of CPU a chunk, {cost['megabytes']:.0f} MB")
        lines.append(report(ask(Path(directory, "packed", "klaw.db"), questions, within, given.rounds)))
    return "\n".join(lines)


def main() -> None:
    """Parse, measure in a process with one thread, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "klaw-benchmarks"))
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps({"report": measure(given)}))
        return
    options = (f"--{name}={getattr(given, name)}" for name in ("cache", "count", "questions", "rounds"))
    found = in_own_process(Path(__file__), given.source, *options, "--here")
    print(found.get("report") or found["failed"])
    sys.exit("failed" in found)


if __name__ == "__main__":
    main()
