"""Compare a search with one that has a leg of links: python benchmarks/links.py DIR.

DIR has Markdown files that link to each other, with a ``description`` in front matter: each is a question, and its file
the answer. For npm: ``npm pack npm``, then the directory ``docs/content`` of the package. The leg ranks the neighbours
of the first ten results, and is fused with the results by reciprocal ranks.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from klaw_core import Memory

_DESCRIPTION = re.compile(r"^description:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_HEAD = 1_500  # characters that may contain front matter
_WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0)
_K = 60
_FOUND, _SOURCES = 50, 10


def questions(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the path of each file as in results, and its description."""
    for file in sorted(root.rglob("*.md")):
        if match := _DESCRIPTION.search(file.read_text("utf-8")[:_HEAD]):
            yield f"{root.name}/{file.relative_to(root).as_posix()}", match[1].strip("\"'")


def leg(graph: Any, found: Sequence[str]) -> Sequence[str]:
    """Return the neighbours of found documents; one of a page with many neighbours counts less."""
    scores: dict[str, float] = defaultdict(float)
    for rank, path in enumerate(found[:_SOURCES], start=1):
        neighbours = graph.neighbours(path)
        for other in neighbours:
            scores[other] += 1 / (_K + rank) / len(neighbours) ** 0.5
    return sorted(scores, key=lambda path: -scores[path])


def fused(found: Sequence[str], linked: Sequence[str], weight: float) -> Sequence[str]:
    """Return one ranking of two."""
    scores: dict[str, float] = defaultdict(float)
    for ranking, share in ((found, 1.0), (linked, weight)):
        for rank, path in enumerate(ranking, start=1):
            scores[path] += share / (_K + rank)
    return sorted(scores, key=lambda path: -scores[path])


def measure(memory: Memory, asked: Mapping[str, str]) -> None:
    """Print a line for each weight."""
    links: Any = memory.extension("links")
    graph = links.graph()
    ranks: dict[float, list[int]] = {weight: [] for weight in _WEIGHTS}
    for path, question in asked.items():
        found = list(dict.fromkeys(result.path for result in memory.search(question, _FOUND, per_document=1)))
        linked = leg(graph, found)
        for weight, places in ranks.items():
            order = fused(found, linked if weight else (), weight)
            places.append(order.index(path) + 1 if path in order else 10**6)
    for weight, places in ranks.items():
        shares = "  ".join(f"{sum(place <= most for place in places) / len(places):.3f}" for most in (1, 3, 10))
        print(
            f"weight {weight:<4}  first, among 3, among 10: {shares}  MRR {statistics.mean(1 / p for p in places):.3f}"
        )


def main() -> None:
    """Index the directory and ask its descriptions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    root = parser.parse_args().directory.resolve()
    with tempfile.TemporaryDirectory() as directory, Memory.open(data_dir=Path(directory)) as memory:
        memory.index(root)
        asked = dict(questions(root))
        print(f"{len(asked)} questions")
        measure(memory, asked)


if __name__ == "__main__":
    main()
