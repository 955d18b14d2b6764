"""What indexing costs over the model alone: chunks a second of `klaw index` beside bare embedding of the same texts.

    python benchmarks/index_pipeline.py DIRECTORY [--files 60] [--rounds 3]

Each round indexes a sample of the directory's notes into a fresh database with the default configuration, then gives
the embedder the very passages that were indexed, in calls of the same size and order, and nothing else. Wall time
and CPU of both, and their ratio round by round; the model is warmed up first. The rest of an index run is
reading, cutting, counting tokens, words, and commits.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from klaw_core import Memory
from klaw_core.assembly import Parts
from klaw_core.config import load_config
from klaw_core.embedding import embed_passages
from klaw_core.plugins import discover


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """Run an action and return its wall time and CPU time, in seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


def sample(directory: Path, files: int, target: Path) -> None:
    """Copy every n-th note, so that the sample has the directory's mix of lengths."""
    notes = sorted(directory.rglob("*.md"))
    for note in notes[:: max(1, len(notes) // files)][:files]:
        shutil.copy(note, target / note.name)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    registry = discover()
    ratios: dict[str, list[float]] = {"wall": [], "cpu": []}
    with tempfile.TemporaryDirectory() as work:
        notes = Path(work, "notes")
        notes.mkdir()
        sample(arguments.directory, arguments.files, notes)
        embedder = Parts(load_config(data_dir=Path(work, "warm")), registry).embedder
        embedder.embed_documents(["warm up"] * 8)
        print(f"{'round':>5} {'chunks':>7} {'index/s':>8} {'model/s':>8} {'wall':>6} {'cpu':>6}   (index over model)")
        for number in range(1, arguments.rounds + 1):
            config = load_config(data_dir=Path(work, f"data{number}"))
            with Memory.open(config, registry=registry) as memory:
                memory._parts.embedder = embedder  # noqa: SLF001  # one warm model for both
                index_wall, index_cpu = timed(lambda memory=memory: memory.index(notes))
                with memory._parts.store.read() as snapshot:  # noqa: SLF001  # the passages are not public
                    stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
            passages = {item.chunk.passage_hash: item.chunk.passage for item in stored}
            model_wall, model_cpu = timed(lambda passages=passages: list(embed_passages(passages, embedder)))
            ratios["wall"].append(index_wall / model_wall)
            ratios["cpu"].append(index_cpu / model_cpu)
            speeds = len(passages) / index_wall, len(passages) / model_wall
            print(
                f"{number:>5} {len(passages):>7} {speeds[0]:>8.1f} {speeds[1]:>8.1f} "
                f"{ratios['wall'][-1]:>6.3f} {ratios['cpu'][-1]:>6.3f}"
            )
    for name, values in ratios.items():
        print(
            f"{name}: index / model = {statistics.median(values):.3f} (median of {min(values):.3f}..{max(values):.3f})"
        )


if __name__ == "__main__":
    main()
