"""What small changes cost: an index of nothing new, a save, a forget, a deletion; this tree beside another one.

    python benchmarks/changes.py [--against TREE] [--files 20000] [--records 5000] [--saves 200] [--rounds 5]

TREE is another checkout of Klaw, such as ``git worktree add /tmp/before HEAD~20``. Each tree has a directory of its own
with the same made notes and memories (their words mean nothing; nothing here searches), words only, no model. In each
round both trees take each step, in processes of their own, and in turns at going first:

- unchanged: ``memory.index()`` over FILES notes that nobody has changed, the second of two in one process
- verify: the same, reading every file (``verify=True``; where there is no such option, the same as unchanged)
- process: ``klaw index`` of those notes as a whole process
- save, forget: one memory, with RECORDS others; the median of SAVES, and of 10
- delete 50: ``Memory.delete`` of 50 documents, with RECORDS others, after a first document of that process

Printed are CPU and wall in milliseconds, medians and quartiles over rounds, and the quartiles of the rounds' ratios of
TREE to this tree: more than 1 means that this tree takes less. Flushes are part of the wall time alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from measuring import ONE_THREAD, Cost, Spread, table, timed

HERE = Path(__file__).resolve().parent.parent
STEPS = ("unchanged", "verify", "process", "save", "forget", "delete 50")
KLAW = "import sys; sys.argv[0] = 'klaw'; from klaw_core.cli.startup import run; run()"
_WORDS = 60


def make_notes(notes: Path, files: int) -> None:
    """Write notes with front matter in some hundred directories, below one with an ignore file."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(5000)]
    for number in range(files):
        place = notes / f"area {number % 40:02}" / f"topic {number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        body = "\n\n".join(" ".join(chance.choices(words, k=_WORDS)) for _ in range(3))
        (place / f"note {number:06}.md").write_text(f"---\ntags: [a, b]\n---\n# Note {number}\n\n{body}\n")
    (notes / ".gitignore").write_text("*.log\nbuild/\n")


def text(number: int) -> str:
    """Return the text of a memory."""
    return f"Memory number {number}: " + " ".join(f"word{(number * 7 + k * k) % 3000}" for k in range(40))


def opened(work: Path, name: str) -> Any:
    """Open a memory for words alone, in a directory of its own."""
    from klaw_core import Memory
    from klaw_core.config.load import load_config

    place = work / name
    place.mkdir(parents=True, exist_ok=True)
    nothing = place / "nothing.toml"
    nothing.touch()
    memory = {"embedding": {"type": "none"}}
    config = load_config(config_file=nothing, data_dir=place / "data", environment={}, overrides={"memory": memory})
    return Memory.open(config)


def prepare(work: Path, notes: Path, records: int) -> dict[str, Any]:
    """Index the notes until nothing is left to be noted of them; save the memories and documents."""
    with opened(work, "notes") as memory:
        for _ in range(3):
            memory.index(notes)
            time.sleep(2.1)  # until a file that was just written counts as settled
    from klaw_journals.record_journal import FileJournal
    from klaw_memories.saved import Saved

    with opened(work, "saved") as memory:
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        journal = work / "saved" / "data" / "saved.jsonl"
        saved = [Saved.make(text(number), "manual", None, moment) for number in range(records)]
        FileJournal(journal).append([one.record() for one in saved])
        memory.index()
    with opened(work, "documents") as memory:
        if hasattr(memory, "add"):
            from klaw_core import NewDocument

            memory.add([NewDocument(f"document {number}", text(number)) for number in range(records)])
    (work / "ids.json").write_text(json.dumps([one.id for one in saved]))
    return {}


def take(step: str, work: Path, saves: int, turn: int) -> dict[str, Any]:
    """Take a step in this process and return its cost."""
    if step in {"unchanged", "verify"}:
        with opened(work, "notes") as memory:
            memory.index()
            try:
                cost = timed(lambda: memory.index(verify=True) if step == "verify" else memory.index())
            except TypeError:
                cost = timed(memory.index)
            return {"cpu": cost.cpu, "wall": cost.wall}
    with opened(work, "documents" if step == "delete 50" else "saved") as memory:
        memory.save("the first of a process")
        ids = json.loads((work / "ids.json").read_text())
        actions: list[Callable[[], object]] = []
        if step == "save":
            actions = [lambda n=n: memory.save(text(10**6 + turn * 10**4 + n)) for n in range(saves)]
        elif step == "forget":
            actions = [lambda n=n: memory.forget(ids[turn * 20 + n]) for n in range(10)]
        elif not hasattr(memory, "delete"):
            return {}
        else:
            names = [f"document {turn * 60 + n}" for n in range(50)]
            memory.delete([f"document {turn * 60 + 50}"])
            actions = [lambda: memory.delete(names)]
        costs = [timed(action) for action in actions]
    return {kind: statistics.median(getattr(cost, kind) for cost in costs) for kind in ("cpu", "wall")}


def environment(tree: Path) -> dict[str, str]:
    """Return an environment in which a tree's own packages are imported, with byte code."""
    sources = (str(place) for place in sorted(tree.glob("plugins/*/src")) if "minilm" not in str(place))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KLAW_", "PYTHONDONTWRITE"))}
    cache = str(Path(tempfile.gettempdir(), "klaw-benchmarks-bytecode"))
    return {**kept, **ONE_THREAD, "PYTHONPATH": os.pathsep.join([str(tree), *sources]), "PYTHONPYCACHEPREFIX": cache}


def run(tree: Path, *arguments: object) -> dict[str, Any]:
    """Run this program with a tree's packages; return what it prints."""
    command = [sys.executable, str(Path(__file__).resolve()), *map(str, arguments)]
    done = subprocess.run(command, env=environment(tree), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{tree}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def process(tree: Path, work: Path) -> dict[str, float]:
    """Run ``klaw index`` to its end and return what it cost."""
    place = work / "notes"
    options = ["--quiet", "--data-dir", str(place / "data"), "--config", str(place / "words.toml")]
    (place / "words.toml").write_text('[memory.embedding]\ntype = "none"\n')
    began = time.perf_counter()
    started = subprocess.Popen([sys.executable, "-c", KLAW, "index", *options], env=environment(tree))
    _, status, usage = os.wait4(started.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{tree}: klaw index failed")
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": time.perf_counter() - began}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--saves", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", default=",".join(STEPS), help="which steps, with commas")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--turn", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        told = arguments.work, arguments.work.parent / "notes", arguments.records
        done = (
            prepare(*told)
            if arguments.step == "prepare"
            else take(arguments.step, arguments.work, arguments.saves, arguments.turn)
        )
        print(json.dumps(done))
        return
    trees = {"this": HERE, **({"other": arguments.against.resolve()} if arguments.against else {})}
    with tempfile.TemporaryDirectory() as place:
        make_notes(Path(place, "notes"), arguments.files)
        works = {name: Path(place, name) for name in trees}
        for name, tree in trees.items():
            works[name].mkdir()
            run(tree, "--step", "prepare", "--work", works[name], "--records", arguments.records)
        costs: dict[tuple[str, str], list[Cost]] = {}
        for turn in range(arguments.rounds):
            for step in arguments.steps.split(","):
                for name in list(trees)[:: -1 if turn % 2 else 1]:
                    told = ("--step", step, "--work", works[name], "--saves", arguments.saves, "--turn", turn)
                    found = process(trees[name], works[name]) if step == "process" else run(trees[name], *told)
                    if found:
                        costs.setdefault((step, name), []).append(Cost(**found))
    print(report(arguments.steps.split(","), costs))


def report(steps: list[str], costs: dict[tuple[str, str], list[Cost]]) -> str:
    """Return the table."""
    rows: list[tuple[object, ...]] = []
    for step in steps:
        own, other = costs.get((step, "this"), []), costs.get((step, "other"), [])
        cells: list[object] = [step]
        for kind in ("cpu", "wall"):
            cells.append(Spread.of(1e3 * getattr(cost, kind) for cost in own) if own else "")
            cells.append(Spread.of(1e3 * getattr(cost, kind) for cost in other) if other else "")
            pairs = [getattr(one, kind) / getattr(two, kind) for one, two in zip(other, own, strict=False)]
            cells.append(Spread.of(pairs) if pairs else "")
        rows.append(tuple(cells))
    head = ("ms", "CPU", "CPU before", "times less CPU", "wall", "wall before", "times less wall")
    return table(head, [[str(cell) for cell in row] for row in rows])


if __name__ == "__main__":
    main()
