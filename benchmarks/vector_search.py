"""Vector search as Klaw does it beside the exact scans: CPU a query, recall, with and without filters.

    python benchmarks/vector_search.py SOURCE [--cache DIR] [--count 10000 100000] [--queries 40] [--rounds 3]

SOURCE is the directory that ``corpus.py`` makes real vectors of (beyond 100,000 they are made: normalised mixtures of
a real one and a neighbour of it, and noise), or a ``.npy`` file of unit vectors, float32, of which the last 200 are
the questions.

The 50 nearest are asked for, through the indexes ``sqlite-vec`` and ``lancedb`` and the connections of the store, in a
process with one thread. Each way answers a round of questions after the other, so that other work on the machine meets
all of them.
Ratios are vec0's CPU without a filter by that of each way, of the means in a round: median and quartiles. *Cold* is
a new connection and a new index object for each question: the first search of a program, less opening the database.
Recall is against an exact scan in float32, of what the filter keeps if there is one; it keeps keys at random.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from corpus import Corpus
from measuring import Spread, disk_megabytes, in_own_process, table, timed
from numpy.typing import NDArray

from klaw_core import Index, Keys, KeySelection, Matrix, Query, Vector, VectorSpace
from klaw_lancedb.index import LanceIndex
from klaw_lancedb.options import LanceOptions
from klaw_store_sqlitevec.store import SqliteStore
from klaw_store_sqlitevec.vectors import VectorIndex
from klaw_testing.index import stored

_NEAREST = 50
_HELD_OUT = 200
_REAL = 100_000  # so many at most does corpus.py embed
_BATCH = 5_000
_SHARES = (1, 10, 50)

Search = Callable[[Vector, Keys | None], Sequence[int]]


def load(source: Path, cache: Path, count: int, questions: int) -> tuple[Matrix, Matrix]:
    """Return what is searched and what is asked."""
    if source.suffix == ".npy":
        rows = np.load(source, mmap_mode="r")
        return rows[: min(count, len(rows) - _HELD_OUT)], np.asarray(rows[-_HELD_OUT:][:questions])
    corpus = Corpus(source, cache)
    return corpus.vectors(count), corpus.questions().vectors[:questions]


@frozen
class Database:
    """A store of vectors in one of the forms of ``sqlite-vec``, or in LanceDB; keys count from 1."""

    path: Path
    form: str

    def index(self, memory_mb: int = 128) -> Index[Any]:
        """Return the index."""
        if self.form == "lancedb":
            return LanceIndex(LanceOptions(), self.path.parent)
        return VectorIndex(self.form, memory_mb=memory_mb)

    def build(self, vectors: Matrix) -> Mapping[str, float]:
        """Fill it; return the CPU and the size on disk."""
        index = self.index()
        store = SqliteStore(self.path)
        store.enlist("vectors", index)

        def fill() -> None:
            with store.write() as transaction:
                index.reset(transaction.resource, "memory", VectorSpace("benchmark", "1", vectors.shape[1]))
            for first in range(0, len(vectors), _BATCH):
                rows = np.asarray(vectors[first : first + _BATCH])
                chunks = [stored(key, "") for key in range(first + 1, first + 1 + len(rows))]
                with store.write() as transaction:
                    index.add(transaction.resource, "memory", chunks, rows)

        cost = timed(fill)
        store.close()
        return {"seconds": cost.cpu, "megabytes": disk_megabytes(self.path.parent)}

    @contextmanager
    def open(self, memory_mb: int = 128) -> Iterator[Search]:
        """Open it for searches in one snapshot."""
        index = self.index(memory_mb)
        store = SqliteStore(self.path)
        store.enlist("vectors", index)
        with store.read() as snapshot:

            def search(vector: Vector, within: Keys | None) -> Sequence[int]:
                query = Query("", vector=vector, within=None if within is None else KeySelection(within))
                return [hit.key for hit in index.search(snapshot.resource, query, _NEAREST)]

            yield search
        store.close()


def scan(vectors: Matrix, question: Vector, within: Keys | None) -> Sequence[int]:
    """Return the nearest by an exact scan in float32."""
    scores = vectors @ question if within is None else vectors[within - 1] @ question
    rows = np.argpartition(-scores, min(_NEAREST, len(scores) - 1))[:_NEAREST]
    best = rows[np.argsort(-scores[rows])]
    return (best + 1 if within is None else within[best]).tolist()


def measure(ask: Callable[[int], Sequence[int]], count: int) -> tuple[float, list[Sequence[int]]]:
    """Return the mean CPU of an answer, in milliseconds, and the answers."""
    answers: list[Sequence[int]] = []
    cpu = sum(timed(lambda number=number: answers.append(ask(number))).cpu for number in range(count))
    return cpu / count * 1e3, answers


def cold(database: Database, question: Vector) -> float:
    """Return the CPU of the first search, in milliseconds."""
    with database.open() as search:
        return timed(lambda: search(question, None)).cpu * 1e3


def recall(found: Sequence[Sequence[int]], exact: Sequence[Sequence[int]], at: int) -> float:
    """Return the share of the nearest ``at`` that were found among the first ``at``."""
    pairs = ((some[:at], right[:at]) for some, right in zip(found, exact, strict=True))
    return float(np.mean([len({*some} & {*right}) / len(right) for some, right in pairs]))


def run(source: Path, cache: Path, count: int, questions: int, rounds: int) -> Mapping[str, Any]:
    """Build both databases and measure every way, in this process."""
    vectors, asked = load(source, cache, count, questions)
    matrix: NDArray[np.float32] = np.asarray(vectors)
    random = np.random.default_rng(7)
    every = np.arange(1, len(matrix) + 1)
    filters = {share: np.sort(random.choice(every, len(every) * share // 100, replace=False)) for share in _SHARES}
    sets: dict[str, Keys | None] = {"": None, **{f", {share} %": keys for share, keys in filters.items()}}
    with tempfile.TemporaryDirectory() as directory:
        places = {form: Path(directory, form) for form in ("exact", "quantized", "lancedb")}
        built = {}
        for form, place in places.items():
            place.mkdir()
            built[form] = Database(place / "klaw.db", form).build(matrix)
        databases = {form: Database(place / "klaw.db", form) for form, place in places.items()}
        costs: dict[str, list[float]] = {}
        recalls: dict[str, list[float]] = {}
        with (
            databases["exact"].open() as exact,
            databases["quantized"].open(memory_mb=count // 16_000 + 2) as codes,
            databases["quantized"].open(memory_mb=1024) as rows,
            databases["lancedb"].open() as lance,
        ):
            ways: dict[str, Search] = {
                "vec0 float32": exact,
                "quantized, codes in RAM": codes,
                "quantized, int8 in RAM too": rows,
                "LanceDB in a directory": lance,
                "numpy float32": lambda question, within: scan(matrix, question, within),
            }
            for search in ways.values():
                for within in sets.values():
                    search(asked[0], within)
            for _ in range(count // 16_000 + 1):  # a search reads the int8 of one segment
                rows(asked[0], None)
            for _ in range(rounds):
                for label, within in sets.items():
                    answers = {}
                    for name, search in ways.items():
                        cpu, answers[name] = measure(
                            lambda number, search=search, within=within: search(asked[number], within), len(asked)
                        )
                        costs.setdefault(name + label, []).append(cpu)
                    for name, found in answers.items():
                        recalls[name + label] = [recall(found, answers["numpy float32"], at) for at in (10, 50)]
                first = [cold(databases["quantized"], question) for question in asked]
                costs.setdefault("quantized, cold", []).append(float(np.mean(first)))
        recalls["quantized, cold"] = recalls["quantized, codes in RAM"]
    return {"count": len(matrix), "grown": source.suffix != ".npy", "built": built, "costs": costs, "recalls": recalls}


def report(found: Mapping[str, Any]) -> str:
    """Return what was measured for one number of vectors, as Markdown."""
    base = found["costs"]["vec0 float32"]
    rows = []
    for name, costs in found["costs"].items():
        ratio = Spread.of(reference / cost for reference, cost in zip(base, costs, strict=True))
        rows.append([name, Spread.of(costs).median, str(ratio), *(f"{value:.3f}" for value in found["recalls"][name])])
    head = ["way", "ms of CPU", "times less than vec0", "recall@10", "recall@50"]
    sizes = ", ".join(
        f"{form} {values['megabytes']:.0f} MB in {values['seconds']:.1f} s" for form, values in found["built"].items()
    )
    made = max(0, found["count"] - _REAL) if found["grown"] else 0
    origin = f"{made:,} of them made: normalised mixtures of two real ones, and noise. " if made else ""
    return f"## {found['count']:,} vectors\n\n{origin}Built: {sizes} of CPU.\n\n{table(head, rows)}\n"


def main() -> None:
    """Parse, run each size in its own process, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "klaw-benchmarks"))
    parser.add_argument("--count", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(run(given.source, given.cache, given.count[0], given.queries, given.rounds)))
        return
    for count in given.count:
        more = ("--queries", given.queries, "--rounds", given.rounds, "--here")
        found = in_own_process(Path(__file__), given.source, "--cache", given.cache, "--count", count, *more)
        print(f"{count:,}: {found['failed']}" if "failed" in found else report(found), flush=True)
        if "failed" in found:
            sys.exit(1)


if __name__ == "__main__":
    main()
