"""Ask for definitions by their names, and print where each is: python benchmarks/definitions.py DIR [--questions FILE].

DIR has a directory for each table of the file with the questions (default: definitions.toml beside this program, which
says where the corpora come from). The printed rank is that of the definition among ten results. A wrong first result
with a relevance above .9 is a confident mistake.
"""

from __future__ import annotations

import argparse
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from klaw_core import Memory, SearchResult

_PATTERNS = ("*.md", "*.py", "*.html", "*.pdf", "*.rst", "*.txt")
_SURE = 0.9


def is_right(result: SearchResult, wanted: str) -> bool:
    """Return whether a result is the place: ``PATH`` or ``PATH#TEXT``."""
    path, _, text = wanted.partition("#")
    held = " ".join(" ".join((*result.heading, result.content)).split())
    return result.path.endswith(path) and text in held


def ask(memory: Memory, questions: Mapping[str, Mapping[str, str]]) -> tuple[int, int, int, int]:
    """Print a line for each question; return how many there are, right firsts, among three, and confident mistakes."""
    asked = firsts = among = mistakes = 0
    for name, wanted in questions.items():
        for question, place in wanted.items():
            results: Sequence[SearchResult] = memory.search(question, collection=name).results
            rank = next((rank for rank, each in enumerate(results, 1) if is_right(each, place)), 0)
            first = results[0] if results else None
            relevance = (first.relevance or 0.0) if first else 0.0
            mistake = rank != 1 and relevance > _SURE
            asked, firsts, among, mistakes = asked + 1, firsts + (rank == 1), among + (0 < rank < 4), mistakes + mistake
            where = "" if first is None or rank == 1 else f"  {first.path}:{first.start_line}"
            print(f"{name:>10}  {question:<32} {rank or '-':>2}  {relevance:.2f}{'  SURE' if mistake else ''}{where}")
    return asked, firsts, among, mistakes


def main() -> None:
    """Index the corpora, unless they are kept, and ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--questions", type=Path, default=Path(__file__).with_suffix(".toml"))
    parser.add_argument("--keep", type=Path, help="keep the index in this directory, and reuse it")
    options = parser.parse_args()
    questions = tomllib.loads(options.questions.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as temporary, Memory.open(options.keep or Path(temporary)) as memory:
        for name in questions:
            memory.index(options.path / name, name=name, collection=name, include=_PATTERNS)
        asked, firsts, among, mistakes = ask(memory, questions)
    print(f"{asked} questions: {firsts} first, {among} among three, {mistakes} confident mistakes")


if __name__ == "__main__":
    main()
