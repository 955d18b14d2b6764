"""Index a directory of notes with the model out of the way: Klaw beside a naive program, LangChain's splitter, LanceDB.

    python benchmarks/index_files.py DIRECTORY [--rounds 3] [--stages]

Every system reads the same files and gets its vectors from the same table of unit vectors, which costs nothing: what is
measured is reading, parsing, splitting, words, rows and commits. Everything runs in processes of its own with one
thread, in turns. Klaw counts tokens by estimate here, because counting them is the model's part.

- naive: paragraphs joined up to 1,000 characters; vec0, and FTS5 kept by triggers
- langchain: LangChain's MarkdownTextSplitter (1,000 characters, 200 of overlap) into vec0, without words
- lancedb: the same splitter into a LanceDB table with an index of words
- klaw: ``Memory.index`` over the directory, by default; klaw, words: without vectors

``--stages`` prints instead what each step of Klaw's run costs a chunk, without the steps inside of it. A step that is
called for every chunk or word is not listed, because the clock would cost more than the step.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import known
import numpy as np
from corpus import Matrix
from measuring import Cost, Spread, in_own_process, resident_megabytes, table, timed
from peers.sqlite import Naive, SqliteVec

from klaw_core import VectorSpace
from klaw_core.embedding.run import PROBE

_DIMENSION = 384
_VECTORS = 4096
_CHARACTERS, _OVERLAP = 1000, 200
# The steps of an index run: what is called for a file or for a batch, never for a chunk.
_STAGES = {
    "read and decode a file": ("klaw_core.plugins.isolation", "IsolatedSource.read"),
    "front matter": ("klaw_notes.workspace", "read_front_matter"),
    "tags": ("klaw_notes.workspace", "with_tags_of"),
    "encoded files, link definitions": ("klaw_notes.workspace", "blank_unreadable"),
    "redaction": ("klaw_core.indexing.redacting", "DocumentRedactor.text_of"),
    "parse blocks": ("klaw_notes.chunking.blocks", "block_tokens"),
    "blocks as ranges": ("klaw_notes.chunking.blocks", "parse"),
    "sentences and sizes": ("klaw_notes.chunking.pieces", "lay_out"),
    "count tokens by estimate": ("known", "KnownVectors.count_tokens"),
    "pack chunks, spans": ("klaw_notes.chunking", "MarkdownChunker.split"),
    "chunks, ids": ("klaw_core.indexing.cutting", "make_chunks"),
    "rows": ("klaw_store_sqlitevec.transaction", "SqliteTransaction.replace_all"),
    "FTS5": ("klaw_fts5.index", "Fts5Index.add"),
    "packed words": ("klaw_fts5.packed.index", "PackedIndex.add"),
    "vectors": ("klaw_core.indexing.backfill", "Backfill.fill"),
    "transactions": ("klaw_core.indexing.collection", "Collection.replace"),
}


class Table(known.KnownVectors):
    """An embedder that picks vectors out of a table by a checksum of the text."""

    def __init__(self) -> None:
        self._rows = unit_vectors()
        self.space = VectorSpace("table", "1", _DIMENSION)

    def embed_query(self, text: str, /) -> Any:
        """Return the vector of a text."""
        return self.embed_documents([text])[0]

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return the vectors of texts."""
        return vectors_of(texts, self._rows)


class FromTable(known.Bench):
    """A Klaw that embeds from the table, or not at all."""

    @property
    def _registry(self) -> Any:
        with mock.patch.object(known, "KnownVectors", return_value=Table()):
            return super()._registry


def unit_vectors() -> Matrix:
    """Return the table."""
    rows = np.random.default_rng(1).normal(size=(_VECTORS, _DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def vectors_of(texts: Sequence[str], rows: Matrix) -> Matrix:
    """Return a vector for each text; the probe always gets the same."""
    return rows[[0 if text == PROBE else crc32(text.encode()) % _VECTORS for text in texts]]


def naive(notes: Path, place: Path) -> int:
    """Join paragraphs, and insert them."""
    chunks: list[str] = []
    for text in texts_of(notes):
        held = ""
        for paragraph in text.split("\n\n"):
            if held and len(held) + len(paragraph) > _CHARACTERS:
                chunks.append(held)
                held = paragraph
            else:
                held = f"{held}\n\n{paragraph}" if held else paragraph
        if held.strip():
            chunks.append(held)
    Naive(place).build(chunks, vectors_of(chunks, unit_vectors()))
    return len(chunks)


def langchain(notes: Path, place: Path) -> int:
    """Split with LangChain, and insert the vectors."""
    chunks = _split_by_langchain(notes)
    SqliteVec(place).build(chunks, vectors_of(chunks, unit_vectors()))
    return len(chunks)


def lancedb(notes: Path, place: Path) -> int:
    """Split with LangChain, and let LanceDB index words and vectors."""
    from peers.lance import Lance

    chunks = _split_by_langchain(notes)
    Lance(place).build(chunks, vectors_of(chunks, unit_vectors()))
    return len(chunks)


def klaw(notes: Path, place: Path) -> int:
    """Index the directory as ``klaw index`` does."""
    return _indexed(notes, place, {"": np.zeros(_DIMENSION, np.float32)})


def klaw_words(notes: Path, place: Path) -> int:
    """Index the directory without an embedder."""
    return _indexed(notes, place, {})


def _split_by_langchain(notes: Path) -> list[str]:
    from langchain_text_splitters import MarkdownTextSplitter

    splitter = MarkdownTextSplitter(chunk_size=_CHARACTERS, chunk_overlap=_OVERLAP)
    return [chunk for text in texts_of(notes) for chunk in splitter.split_text(text)]


def _indexed(notes: Path, place: Path, vectors: Mapping[str, Any]) -> int:
    with FromTable(place, vectors, markdown=True).open() as memory:
        return memory.index(notes).chunks


def texts_of(notes: Path) -> Iterator[str]:
    """Yield the text of every note."""
    for path in sorted(notes.rglob("*.md")):
        yield path.read_text(encoding="utf-8", errors="replace")


WAYS: Mapping[str, Callable[[Path, Path], int]] = {
    "naive": naive,
    "langchain": langchain,
    "lancedb": lancedb,
    "klaw": klaw,
    "klaw, words": klaw_words,
}


def measured(way: str, notes: Path) -> Mapping[str, float]:
    """Index once in this process."""
    with tempfile.TemporaryDirectory() as place:
        found: list[int] = []
        cost = timed(lambda: found.append(WAYS[way](notes, Path(place))))
    return {"cpu": cost.cpu, "wall": cost.wall, "chunks": found[0], "memory": resident_megabytes()}


@contextmanager
def clocked(spent: Counter[str], calls: list[float]) -> Iterator[None]:
    """Add up what each step takes, without the steps inside of it. ``calls`` holds what the open steps must give up."""

    def by_the_clock(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            calls.append(0.0)
            started = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                took = time.process_time() - started
                spent[name] += took - calls.pop()  # type: ignore[assignment]
                if calls:
                    calls[-1] += took

        return call

    with ExitStack() as stack:
        for name, (module, path) in _STAGES.items():
            owner: Any = import_module(module)
            *holders, attribute = path.split(".")
            for holder in holders:
                owner = getattr(owner, holder)
            stack.enter_context(mock.patch.object(owner, attribute, by_the_clock(name, getattr(owner, attribute))))
        yield


def stages(notes: Path) -> None:
    """Print what the steps of one run of Klaw cost."""
    spent: Counter[str] = Counter()
    chunks = 0

    def run() -> None:
        nonlocal chunks
        with tempfile.TemporaryDirectory() as place, clocked(spent, []):
            chunks = klaw(notes, Path(place))

    whole: Cost = timed(run)
    rest = whole.cpu - sum(spent.values())
    rows = [(name, took / chunks * 1e6, took / whole.cpu) for name, took in spent.most_common()]
    rows.append(("the rest: start, imports, scan, commits", rest / chunks * 1e6, rest / whole.cpu))
    print(table(("step", "µs a chunk", "share"), rows))


def report(found: Mapping[str, list[Mapping[str, float]]], size: int) -> None:
    """Print what each way cost beside the naive one."""
    rows = []
    for way, runs in found.items():
        cpu = Spread.of(run["cpu"] for run in runs).median
        ratios = Spread.of(base["cpu"] / run["cpu"] for base, run in zip(found["naive"], runs, strict=False))
        wall = Spread.of(run["wall"] for run in runs).median
        chunks = int(runs[0]["chunks"])
        memory = max(run["memory"] for run in runs)
        rows.append((way, cpu, wall, chunks, cpu / chunks * 1e6, size / 1e6 / cpu, str(ratios), memory))
    head = ("", "CPU s", "wall s", "chunks", "µs a chunk", "MB of text a second", "naive's CPU / its CPU", "memory MB")
    print(table(head, rows))


def main() -> None:
    """Compare; with ``--way``, be one of the processes that the comparison starts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.stages:
        stages(arguments.directory)
        return
    if arguments.way:
        print(json.dumps(measured(arguments.way, arguments.directory)))
        return
    found: dict[str, list[Mapping[str, float]]] = {}
    for _ in range(arguments.rounds):
        for way in WAYS:
            answer = in_own_process(Path(__file__), arguments.directory, "--way", way)
            if "failed" in answer:
                print(f"{way}: left out: {answer['failed']}", flush=True)
            else:
                found.setdefault(way, []).append(answer)
    report(found, sum(path.stat().st_size for path in arguments.directory.rglob("*.md")))


if __name__ == "__main__":
    main()
