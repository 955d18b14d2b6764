"""An agent's day, over and over: does anything grow that should not?

    python tests/soak/soak.py [MINUTES] [--plot FILE.png] [--json FILE] [--seed N]

One process keeps a memory open, as an agent does, and another memory is opened and closed each round, as a command
does. A round edits a fifth of the notes, removes one and adds one, indexes, saves and forgets, appends to a
conversation and purges an older one, and searches in every mode; some rounds embed later, force, rebuild or examine
everything. How much there is to remember is the same after every round, so whatever is measured should be too.

Measured after each round: the database, its log and everything else in the data directory, in bytes; resident
memory; open handles; threads; objects that Python tracks. The last third of the rounds is held against the second
by their medians: a number that has grown by more than its tolerance fails the run, with exit code 1. The first third
is warming up, so give it five minutes or more. Deterministic but for the clock: the seed decides what is written.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from random import Random
from statistics import median

from attrs import define, field, frozen

from klaw_core import Memory, QueryError
from klaw_core.config.load import load_config
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_journals.chats import Chat
from klaw_journals.messages import Message

FAKES = Path(__file__).parents[1] / "packaging" / "fakes"

NOTES, SAVED, SAID, CHATS, QUESTIONS = 60, 60, 20, 3, 12
NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)

#: What is measured, in which unit, and by how much the last third may exceed the second: a share of it, or so much.
MEASURES: dict[str, tuple[str, float, float]] = {
    "database": ("MB", 0.03, 0.2),  # SQLite reuses pages; how full they are varies
    "log": ("MB", 0.10, 0.5),
    "others": ("MB", 0.05, 0.1),
    "memory": ("MB", 0.02, 4.0),  # the allocator's own wobble is as large, without any trend
    "handles": ("", 0.0, 0.0),
    "threads": ("", 0.0, 0.0),
    "objects": ("thousands", 0.01, 2.0),
}


@frozen
class Sample:
    """What was measured after one round: ``second`` since the start, and a number for each of ``MEASURES``."""

    second: float
    values: dict[str, float]


@define
class Life:
    """Everything that goes on. What there is stays as much as it was; only the words change."""

    root: Path
    registry: Registry
    chance: Random
    round: int = 0
    saved: deque[str] = field(factory=deque)
    words: Sequence[str] = ()

    def __attrs_post_init__(self) -> None:
        letters = "abcdefghijklmnoprstuvwyz"
        self.words = ["".join(self.chance.choices(letters, k=self.chance.randint(3, 9))) for _ in range(3000)]
        self.notes.mkdir(parents=True)
        for number in range(NOTES):
            self.write(number)

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    def open(self) -> Memory:
        tables = {
            "store": {"type": "sqlite"},
            "retrieval": [{"type": "sqlite-vec"}, {"type": "fts5"}],
            "embedding": {"type": "hashing", "dimension": 384},
            "cache": {"max_entries": 400},
        }
        environment = {"KLAW_CONFIG": os.devnull}
        config = load_config(data_dir=self.root / "data", environment=environment, overrides={"memory": tables})
        return Memory.open(config, registry=self.registry)

    def text(self, words: int) -> str:
        """Return so many words; as in any language, a few of them stand everywhere."""
        return " ".join(self.words[int(len(self.words) * self.chance.random() ** 3)] for _ in range(words))

    def write(self, number: int) -> None:
        parts = (f"## {self.text(3)}\n\n{self.text(90)}.\n\n{self.text(90)}.\n" for _ in range(3))
        (self.notes / f"{number}.md").write_text(f"# {self.text(2)}\n\n" + "\n".join(parts), "utf-8")

    def live(self, memory: Memory) -> None:
        """Live one round."""
        self.round += 1
        self._index(memory)
        self._save_and_forget(memory)
        self._talk(memory)
        self._ask(memory)
        if self.round % 20 == 0:
            memory.reindex()
        if self.round % 10 == 0:
            with self.open() as another:
                problems = [finding for finding in another.doctor().findings if finding.severity != "note"]
            assert not problems, problems

    def _index(self, memory: Memory) -> None:
        for number in self.chance.sample(range(NOTES), NOTES // 5):
            self.write(self.round * NOTES if number == 0 else number)
        for path in sorted(self.notes.iterdir(), key=lambda path: path.stat().st_mtime)[:-NOTES]:
            path.unlink()
        memory.index(self.notes, force=self.round % 7 == 0, embed=self.round % 3 != 0)
        memory.embed(limit=5)
        with self.open() as command:
            assert command.index().lacking == 0

    def _save_and_forget(self, memory: Memory) -> None:
        moment = NOON + timedelta(minutes=self.round)
        while len(self.saved) < SAVED + 8:
            self.saved.append(memory.save(self.text(40), created_at=moment).path)
        for _ in range(8):
            memory.forget(self.saved.popleft())

    def _talk(self, memory: Memory) -> None:
        moment = NOON + timedelta(minutes=self.round)
        chat = Chat("telegram", str(self.round))
        for number in range(SAID):
            memory.conversations.append(
                Message("user", self.text(20), moment + timedelta(seconds=number), meta=chat.meta)
            )
        memory.conversations.purge(Chat("telegram", str(self.round - CHATS)))
        memory.index()

    def _ask(self, memory: Memory) -> None:
        for number in range(QUESTIONS):
            memory.search(self.text(4), mode=("hybrid", "fts", "vector")[number % 3])
        try:
            memory.search(" ")
        except QueryError:
            memory.status()

    def measure(self) -> dict[str, float]:
        """Return the size of everything."""
        gc.collect()
        data = self.root / "data"
        sizes = {str(path.relative_to(data)): path.stat().st_size for path in data.rglob("*") if path.is_file()}
        database, log = sizes.pop("klaw.db"), sizes.pop("klaw.db-wal", 0)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "database": database / 1e6,
            "log": log / 1e6,
            "others": sum(sizes.values()) / 1e6,
            "memory": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
            "handles": len(list(Path("/proc/self/fd").iterdir())),
            "threads": threading.active_count(),
            "objects": (len(gc.get_objects()) - self.round) / 1e3,  # one a round is what the soak itself keeps
        }


def make_registry() -> Registry:
    """Return the installed plugins and the embedder that hashes words: a model would be all that one waits for."""
    sys.path.insert(0, str(FAKES / "klaw-hello"))
    return discover(points=[*entry_points(group="klaw"), EntryPoint("hello", "klaw_hello", "klaw")])


def trend(samples: Sequence[Sample], name: str) -> tuple[float, float]:
    """Return the medians of the second and of the last third."""
    third = len(samples) // 3
    parts = samples[third : 2 * third], samples[2 * third :]
    second, last = (median(sample.values[name] for sample in part) for part in parts)
    return second, last


def report(samples: Sequence[Sample]) -> bool:
    """Print the trend of every number; return whether all are flat."""
    print(f"{len(samples)} rounds in {samples[-1].second:.0f} s; medians of the second and of the last third")  # noqa: T201
    flat = True
    for name, (unit, share, slack) in MEASURES.items():
        second, last = trend(samples, name)
        grown = last > second + max(share * second, slack)
        flat = flat and not grown
        low, high = (choose(sample.values[name] for sample in samples) for choose in (min, max))
        verdict = "GROWS" if grown else "flat"
        print(f"{name:>9} {second:10.3f} {last:10.3f} {unit:<9} {verdict}   (all rounds: {low:.3f} to {high:.3f})")  # noqa: T201
    return flat


def plot(samples: Sequence[Sample], file: Path) -> None:
    """Draw every number over time, one panel each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.6 * len(MEASURES)), layout="constrained")
    panels = figure.subplots(len(MEASURES), 1, sharex=True)
    seconds = [sample.second for sample in samples]
    for axes, (name, (unit, *_)) in zip(panels, MEASURES.items(), strict=True):
        axes.plot(seconds, [sample.values[name] for sample in samples], color="#0072B2", linewidth=0.9)
        axes.set_ylabel(f"{name}\n{unit}", fontsize=8)
        axes.set_ylim(bottom=0)
        for part in (1, 2):
            axes.axvline(seconds[len(seconds) * part // 3], color="#888888", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("seconds; the vertical lines divide the thirds that are compared")
    figure.savefig(file, dpi=120)


def soak(seconds: float, seed: int) -> list[Sample]:
    """Live for so long, at least for six rounds; return what was measured after each."""
    samples = []
    with tempfile.TemporaryDirectory(prefix="klaw-soak-") as directory:
        life = Life(Path(directory).resolve(), make_registry(), Random(seed))
        started = time.monotonic()
        with life.open() as memory:
            while (elapsed := time.monotonic() - started) < seconds or len(samples) < 6:
                life.live(memory)
                samples.append(Sample(elapsed, life.measure()))
    return samples


def main() -> int:
    """Soak, print, and say whether anything grows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("minutes", type=float, nargs="?", default=5.0)
    parser.add_argument("--plot", type=Path, help="write a picture (needs matplotlib)")
    parser.add_argument("--json", type=Path, help="write every number, a line a round")
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    samples = soak(60 * arguments.minutes, arguments.seed)
    if arguments.json:
        lines = (json.dumps({"second": sample.second, **sample.values}) + "\n" for sample in samples)
        arguments.json.write_text("".join(lines), "utf-8")
    if arguments.plot:
        plot(samples, arguments.plot)
    return 0 if report(samples) else 1


if __name__ == "__main__":
    sys.exit(main())
