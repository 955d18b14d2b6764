"""What a search costs in two versions of Klaw, in pairs: the same question, asked of one and then of the other.

    python benchmarks/two_trees.py DATA --before PYTHON --after PYTHON --work DIR [--notes 130,650] [--rounds 3]

``--before`` and ``--after`` are the interpreters of two environments, each with one version of ``klaw[default]``
installed (``git worktree add --detach DIR COMMIT``, then an environment with what is in it). DATA is what ``corpus.py``
describes. From its notes every nth is taken, so that there are as many as ``--notes`` says; each version indexes them
with the default model in a directory of its own below ``--work``, which is kept. *In place* is a copy of the index of
the version before, brought up to date by the version after with ``klaw index``.

The questions of the notes are sentences of all notes that end with a question mark; *weak* ones are Cranfield's, of
which the notes know nothing. Each version answers in a process of its own, with one thread for every library. Ten
questions a turn, first one version, then the other, the order reversed at every turn; new processes in every round.
Twenty other questions come first and are not counted. *Without the model*: the vector of the question is known already,
because the question was asked by vectors alone just before.

CPU is that of the whole process (``time.process_time``). A ratio is after over before for one question, of the medians
of the rounds; printed are the median and the quartiles over the questions, and the ratio of the sums. Cold processes
are whole ones (``os.wait4``), in turns as well.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from measuring import ONE_THREAD, Cost, Spread, figure, table
from startup import run

_WARM_UP, _TURN = 20, 10
_COLD = ("search", "--mode", "fts"), ("search",)

# Runs in either version, so it uses only what both have.
_WORKER = """
import json, sys, time
from klaw_core import Memory
memory = Memory.open()
for line in sys.stdin:
    asked = json.loads(line)
    if asked["known"]:
        for question in asked["questions"]:
            memory.search(question, 10, mode="vector")
    costs = []
    for question in asked["questions"]:
        began = time.process_time()
        memory.search(question, 10, mode=asked["mode"])
        costs.append(time.process_time() - began)
    print(json.dumps(costs), flush=True)
"""


@dataclass(frozen=True)
class Version:
    """One version of Klaw: its interpreter, and where it keeps its index."""

    python: Path
    place: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment that its processes run in: nothing of the user's own configuration."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KLAW_", "PYTHON"))}
        places = {f"XDG_{name}_HOME": str(self.place / name.lower()) for name in ("DATA", "CACHE", "CONFIG")}
        # One directory of byte code for each interpreter: the first process of each writes it.
        return {**kept, **ONE_THREAD, **places, "PYTHONPYCACHEPREFIX": str(self.place.parent / "bytecode")}

    def klaw(self, *arguments: str) -> Cost:
        """Run the program ``klaw`` to its end."""
        return run([str(self.python.parent / "klaw"), *arguments], self.environment)


class Worker:
    """A process that has one version's memory open and answers questions."""

    def __init__(self, version: Version) -> None:
        self._process = subprocess.Popen(
            [str(version.python), "-c", _WORKER],
            env=version.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, questions: Sequence[str], mode: str, *, known: bool) -> list[float]:
        """Return the CPU seconds of each question."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"questions": questions, "mode": mode, "known": known}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit("a version ended before it answered")
        costs: list[float] = json.loads(answer)
        return costs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate()


def compare(pair: Sequence[Version], questions: Sequence[str], mode: str, rounds: int, *, known: bool) -> list[str]:
    """Ask both versions everything; return a row of the table: milliseconds of both, and the ratios."""
    first, others = questions[:_WARM_UP], questions[_WARM_UP:]
    found: list[list[list[float]]] = [[], []]
    for _ in range(rounds):
        costs: list[list[float]] = [[], []]
        with ExitStack() as stack:
            workers = [stack.enter_context(Worker(version)) for version in pair]
            for worker in workers:
                worker.ask(first, mode, known=known)
            for turn, start in enumerate(range(0, len(others), _TURN)):
                for number in (0, 1) if turn % 2 else (1, 0):
                    costs[number] += workers[number].ask(others[start : start + _TURN], mode, known=known)
        for each, measured in zip(found, costs, strict=True):
            each.append(measured)
    before, after = ([1e3 * statistics.median(times) for times in zip(*each, strict=True)] for each in found)
    return _row(before, after)


def compare_cold(pair: Sequence[Version], arguments: Sequence[str], runs: int) -> list[str]:
    """Run the same command in both versions, in turns."""
    costs: list[list[float]] = [[], []]
    for number in range(runs + 1):
        for which in (0, 1) if number % 2 else (1, 0):
            cost = pair[which].klaw(*arguments)
            if number:  # the first of each makes byte code
                costs[which].append(1e3 * cost.cpu)
    return _row(*costs)


def _row(before: Sequence[float], after: Sequence[float]) -> list[str]:
    ratios = Spread.of(new / old for old, new in zip(before, after, strict=True))
    return [str(Spread.of(before)), str(Spread.of(after)), str(ratios), figure(sum(after) / sum(before))]


def prepare(data: Path, work: Path, count: int, interpreters: Mapping[str, Path]) -> dict[str, Version]:
    """Index ``count`` notes with both versions, once; return these, and the version after on what the other made."""
    texts = sorted((data / "notes").rglob("*.md"))
    notes = work / f"notes-{count}" / "notes"
    if not notes.exists():
        notes.mkdir(parents=True)
        for number in range(min(count, len(texts))):
            shutil.copy(texts[number * len(texts) // min(count, len(texts))], notes)
    versions = {}
    for name, python in interpreters.items():
        version = versions[name] = Version(python, work / f"notes-{count}" / name)
        if not (version.place / "done").exists():
            version.klaw("index", "--quiet", str(notes))
            (version.place / "done").touch()
    moved = versions["in place"] = Version(interpreters["after"], work / f"notes-{count}" / "in place")
    if not (moved.place / "done").exists():
        shutil.rmtree(moved.place, ignore_errors=True)
        shutil.copytree(versions["before"].place, moved.place)
        moved.klaw("index", "--quiet")
    return versions


def note_questions(data: Path, count: int) -> list[str]:
    """Return sentences of the notes that end with a question mark."""
    found: dict[str, None] = {}
    for note in sorted((data / "notes").rglob("*.md")):
        text = note.read_text("utf-8", errors="replace")
        for sentence in re.findall(r"(?:(?<=[.!?:]\s)|^)[A-Z][^.!?\n|#]{20,150}\?", text, re.MULTILINE):
            found.setdefault(" ".join(sentence.split()))
    questions = list(found)
    random.Random(0).shuffle(questions)
    return questions[:count]


def foreign_questions(data: Path, count: int) -> list[str]:
    """Return Cranfield's questions."""
    records = re.split(r"^\.I \d+\n", (data / "cranfield" / "cran.qry").read_text(), flags=re.MULTILINE)[1:]
    return [" ".join(record.partition(".W\n")[2].split()) for record in records][:count]


def rows(arguments: argparse.Namespace) -> Iterator[list[str]]:
    """Yield the rows of the table, one measurement each."""
    interpreters = {"before": arguments.before, "after": arguments.after}
    own, foreign = note_questions(arguments.data, arguments.questions), foreign_questions(arguments.data, 120)
    for count in arguments.notes:
        versions = prepare(arguments.data, arguments.work, count, interpreters)
        pair = (versions["before"], versions["after"])
        for name, questions, mode, known in (
            ("words", own, "fts", False),
            ("hybrid without the model", own, "hybrid", True),
            ("hybrid with the model", own, "hybrid", False),
            ("weak, words", foreign, "fts", False),
            ("weak, hybrid without the model", foreign, "hybrid", True),
        ):
            yield [f"{count}: {name}", *compare(pair, questions, mode, arguments.rounds, known=known)]
        moved = (versions["before"], versions["in place"])
        for name, mode, known in (("words", "fts", False), ("hybrid without the model", "hybrid", True)):
            yield [f"{count} in place: {name}", *compare(moved, own, mode, arguments.rounds, known=known)]
        for command in _COLD if arguments.cold else ():
            row = compare_cold(pair, (*command, own[0]), arguments.cold)
            yield [f"{count}: klaw {' '.join(command)}, whole process", *row]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--before", type=Path, required=True, help="the interpreter of one version")
    parser.add_argument("--after", type=Path, required=True, help="the interpreter of the other")
    parser.add_argument("--work", type=Path, required=True, help="where the indexes are kept")
    parser.add_argument("--notes", type=_numbers, default=[130, 650], help="how many notes, such as 130,650")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--cold", type=int, default=21, help="how often whole processes run")
    arguments = parser.parse_args()
    measured = []
    for row in rows(arguments):
        print(*row, sep=" | ", flush=True)
        measured.append(row)
    head = ("CPU ms", "before, median (quartiles)", "after", "after / before", "of the sums")
    print("", table(head, measured), sep="\n")


def _numbers(text: str) -> list[Any]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
