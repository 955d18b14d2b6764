"""Ingest without the model: CPU and file size of Klaw beside triggers on an external-content FTS5 table and vec0.

    python benchmarks/ingest.py DATA --cache DIR [--count 100000] [--rounds 1]

Rows of about 2 kB of text with their words and their vector, which is known already. Everything runs in processes of
its own with one thread, in turns.

- naive: one transaction for each thousand rows; triggers keep the words; vec0 holds float32
- klaw: ``Memory.index`` over documents of 20 rows: manifest, hashes, chunks, words, vectors, and the embedding cache,
  which the naive design lacks: with it, what has been embedded once is never paid for again
- klaw, compressed: the same with ``compress = true`` in the table of the store
- klaw, words / vectors: the same with one index only: what each of them costs is the difference
- klaw, files: ``Memory.index`` over a directory of Markdown files of the same texts, read, parsed and cut as by default

The second table says where the bytes are (SQLite's dbstat), free pages left out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw
from corpus import Corpus, Matrix
from known import CHUNKS_A_DOCUMENT, Bench
from measuring import Cost, Spread, figure, in_own_process, table, timed
from peers.sqlite import Naive

_VECTORS = ({"type": "sqlite-vec"},)
_WORDS = ({"type": "fts5"},)
# What a table's name begins with, in the order in which it is asked, and what it is for.
_PURPOSES = {
    "embedding_cache": "embedding cache",
    "cache_": "embedding cache",
    "vec": "vectors",
    "quantized": "vectors",
    "words": "words",
    "memory_fts": "words",
    "memory_words": "words",
    "memory_chunks": "text",
    "texts": "text",
    "documents": "text",
}


def naive(texts: list[str], vectors: Matrix, place: Path) -> tuple[Cost, Path]:
    """Insert everything with triggers and vec0."""
    peer = Naive(place)
    return timed(lambda: peer.build(texts, vectors)), place / "naive.db"


def klaw(texts: list[str], vectors: Matrix, place: Path, **options: Any) -> tuple[Cost, Path]:
    """Index generated documents, one line a chunk."""
    bench = Bench(place, dict(zip(texts, vectors, strict=True)), texts, **options)
    with bench.open() as memory:
        cost = timed(memory.index)
    return cost, bench.database


def klaw_compressed(texts: list[str], vectors: Matrix, place: Path) -> tuple[Cost, Path]:
    """Keep the texts compressed."""
    return klaw(texts, vectors, place, compress=True)


def klaw_words(texts: list[str], vectors: Matrix, place: Path) -> tuple[Cost, Path]:
    """Index words only, without an embedder."""
    del vectors
    bench = Bench(place, {}, texts, _WORDS)
    with bench.open() as memory:
        cost = timed(memory.index)
    return cost, bench.database


def klaw_vectors(texts: list[str], vectors: Matrix, place: Path) -> tuple[Cost, Path]:
    """Index vectors only."""
    return klaw(texts, vectors, place, retrieval=_VECTORS)


def klaw_files(texts: list[str], vectors: Matrix, place: Path) -> tuple[Cost, Path]:
    """Index a directory of Markdown files: a heading, and a paragraph for each text."""
    notes = place / "notes"
    notes.mkdir()
    for first in range(0, len(texts), CHUNKS_A_DOCUMENT):
        paragraphs = "\n\n".join(texts[first : first + CHUNKS_A_DOCUMENT])
        (notes / f"{first:07}.md").write_text(f"# Note {first}\n\n{paragraphs}\n")
    bench = Bench(place, dict(zip(texts, vectors, strict=True)), markdown=True)
    with bench.open() as memory:
        cost = timed(lambda: memory.index(notes))
    return cost, bench.database


WAYS: Mapping[str, Callable[[list[str], Matrix, Path], tuple[Cost, Path]]] = {
    "naive": naive,
    "klaw": klaw,
    "klaw, compressed": klaw_compressed,
    "klaw, words": klaw_words,
    "klaw, vectors": klaw_vectors,
    "klaw, files": klaw_files,
}


def ingest(way: str, corpus: Corpus, count: int) -> Mapping[str, Any]:
    """Do it once in this process."""
    texts, vectors = corpus.chunks(count)[:], corpus.vectors(count)
    with tempfile.TemporaryDirectory() as place:
        cost, database = WAYS[way](texts, vectors, Path(place))
        return {"cpu": cost.cpu, "wall": cost.wall, "bytes": bytes_by_purpose(database)}


def bytes_by_purpose(database: Path) -> Mapping[str, int]:
    """Return how many bytes each part of a database holds, indexes apart from their tables."""
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    tables = dict(connection.execute("SELECT name, tbl_name FROM sqlite_schema"))
    used: Counter[str] = Counter()
    for name, size in connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"):
        found = (label for prefix, label in _PURPOSES.items() if tables.get(name, name).startswith(prefix))
        purpose = next(found, "other")
        used[f"{purpose}, B-trees" if name != tables.get(name, name) else purpose] += size
    connection.close()
    return dict(used)


def report(found: Mapping[str, list[Mapping[str, Any]]]) -> None:
    """Print what each way cost beside the naive one, and where the bytes are."""
    bytes_of = {way: Counter(runs[0]["bytes"]) for way, runs in found.items()}
    rows = []
    for way, runs in found.items():
        cpu = Spread.of(run["cpu"] for run in runs)
        total = bytes_of[way].total()
        bare = total - sum(size for purpose, size in bytes_of[way].items() if purpose.startswith("embedding cache"))
        ratios = Spread.of(base["cpu"] / run["cpu"] for base, run in zip(found["naive"], runs, strict=False))
        base = bytes_of["naive"].total()
        wall = Spread.of(run["wall"] for run in runs).median
        rows.append((way, str(cpu), wall, str(ratios), total / 1e6, total / base, bare / base))
    head = ("", "CPU s", "wall s", "times less CPU than naive", "MB", "× naive", "without the cache")
    purposes = sorted({purpose for sizes in bytes_of.values() for purpose in sizes})
    parts = [(purpose, *(figure(sizes[purpose] / 1e6) for sizes in bytes_of.values())) for purpose in purposes]
    print(table(head, rows), table(("MB", *bytes_of), parts), sep="\n\n")


def main() -> None:
    """Compare; with ``--way``, be one of the processes that the comparison starts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    corpus = Corpus(arguments.data, arguments.cache)
    if arguments.way:
        print(json.dumps(ingest(arguments.way, corpus, arguments.count)))
        return
    corpus.vectors(arguments.count)  # embedded by one process, before the others look
    told = (arguments.data, "--cache", arguments.cache, "--count", arguments.count)
    found: dict[str, list[Mapping[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for way in WAYS:
            answer = in_own_process(Path(__file__), *told, "--way", way)
            if "failed" in answer:
                print(f"{way}: left out: {answer['failed']}", flush=True)
            else:
                found.setdefault(way, []).append(answer)
    report(found)


if __name__ == "__main__":
    main()
