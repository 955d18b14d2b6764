"""What indexing costs over the model alone: chunks a second of `klaw index` beside bare embedding of the same texts.

    python benchmarks/index_pipeline.py DIRECTORY [--files 60] [--rounds 3]

Each round indexes a sample of the directory's notes into a fresh database with the default configuration, and gives
the embedder the very chunks that were indexed in a single call, sorted by itself and nothing else to do: the bare
model. The two take turns at going first, and the model is warmed up. Columns, by the wall clock and by CPU time:

- index / model: the run's time divided by the bare model's
- outside: the share of the run that is not spent inside the embedder: scanning, reading, cutting, counting tokens,
  words, look-ups, commits

On a busy machine only the shares and the CPU ratio mean something; the ratio by the wall clock scatters.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klaw_core import Embedder, Matrix, Memory
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Config

COLUMNS = ("index / model, wall", "index / model, CPU", "outside, wall", "outside, CPU")


@dataclass(frozen=True)
class Cost:
    """Seconds by the wall clock and of CPU."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu)


def timed(action: Callable[[], Any]) -> tuple[Any, Cost]:
    """Run an action and return its result and its cost."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, Cost(time.perf_counter() - wall, time.process_time() - cpu)


class Clocked:
    """An embedder that adds up what its calls cost and remembers the texts."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.cost = Cost()
        self.texts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Embed, by the clock."""
        matrix, cost = timed(lambda: self._embedder.embed_documents(texts))
        self.cost += cost
        self.texts += texts
        return matrix


def sample(directory: Path, files: int, target: Path) -> None:
    """Copy every n-th note, so that the sample has the directory's mix of lengths."""
    notes = sorted(directory.rglob("*.md"))
    for number, note in enumerate(notes[:: max(1, len(notes) // files)][:files]):
        shutil.copy(note, target / f"{number:04} {note.name}")


def index(notes: Path, config: Config, registry: Registry, embedder: Embedder) -> tuple[Clocked, Cost]:
    """Index into a fresh database with an embedder that is warm."""
    clocked = Clocked(embedder)
    with Memory.open(config, registry=registry) as memory:
        memory._assembly.embedder = clocked  # noqa: SLF001  # one warm model for all
        _, cost = timed(lambda: memory.index(notes))
    return clocked, cost


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    registry = discover()
    found: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as work:
        notes = Path(work, "notes")
        notes.mkdir()
        sample(arguments.directory, arguments.files, notes)
        with Memory.open(load_config(data_dir=Path(work, "warm")), registry=registry) as memory:
            embedder = memory._assembly.embedder  # noqa: SLF001  # the model itself is meant
        embedder.embed_documents(["warm up"] * 8)
        chunks = index(notes, load_config(data_dir=Path(work, "first")), registry, embedder)[0].texts
        print(f"{len(chunks)} chunks of {statistics.mean(map(len, chunks)):.0f} characters on average")
        for number in range(arguments.rounds):
            bare = Cost()
            if number % 2:
                _, bare = timed(lambda: embedder.embed_documents(chunks))
            config = load_config(data_dir=Path(work, f"data{number}"))
            clocked, whole = index(notes, config, registry, embedder)
            if not number % 2:
                _, bare = timed(lambda: embedder.embed_documents(chunks))
            inside = clocked.cost
            ratios = whole.wall / bare.wall, whole.cpu / bare.cpu
            found.append((*ratios, 1 - inside.wall / whole.wall, 1 - inside.cpu / whole.cpu))
    for name, values in zip(COLUMNS, zip(*found, strict=True), strict=True):
        print(f"{name:20} {statistics.median(values):7.3f}   ({min(values):.3f} to {max(values):.3f})")


if __name__ == "__main__":
    main()
