"""Cost as a function of chunks: queries warm and cold, one file changed, one deleted, opening, disk and memory.

    python benchmarks/growth.py DATA --cache DIR [--counts 1000,10000,100000] [--plot growth.svg] [--naive]

For each number of chunks a database is built (``Memory.index``, vectors known: no model), and then measured in
processes of its own with one thread, through the public ``Memory``:

- hybrid, vectors, words: CPU of a real question, warm (the mean over 240, after 240 others)
- cold: the first question in a new process, opening included, imports not; the median of five processes
- open: opening alone
- file changed, deleted: ``memory.index(directory)`` after one file of 20 chunks changed, or was deleted, with all the
  others there; the median of five
- unchanged: ``memory.index()`` where nothing has changed; save: one memory of some words; forget: the one saved last;
  forget old: one that was there before all others, each until no byte of it is in the file; medians of five
- status: what `klaw status` shows; list: the ten newest documents; get: one document; context: a prompt's context of
  1,000 tokens, with its search; workspace added, removed: a directory with one file of 20 chunks; medians of five
- disk: the database after closing; memory: what the process holds after all questions, warm

With ``--naive`` the same questions are asked of vec0 + FTS5 as well. Up to 100,000 vectors (``--real``) are real,
beyond that they are made of these (``corpus.py``). A million chunks take 15 GB of disk and an hour.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from corpus import Corpus, Embedded
from known import CHUNKS_A_DOCUMENT, Bench
from measuring import figure, in_own_process, resident_megabytes, table, timed
from peers.sqlite import Naive

_REPEATS = 5
_LIMIT = 10
# Where the paths of the memories are listed that were saved first.
_OLD = "old.json"
_Mode = Literal["hybrid", "vector", "fts"]
_MODES: tuple[_Mode, ...] = ("hybrid", "vector", "fts")
# Keys of what is measured, and what the table and the plot call it.
_COLUMNS = {
    "hybrid": "hybrid ms",
    "vector": "vectors ms",
    "fts": "words ms",
    "naive": "naive hybrid ms",
    "cold hybrid": "cold hybrid ms",
    "cold vector": "cold vectors ms",
    "cold fts": "cold words ms",
    "open": "open ms",
    "changed": "file changed ms",
    "deleted": "file deleted ms",
    "unchanged": "unchanged ms",
    "save": "save ms",
    "forget": "forget ms",
    "forget old": "forget old ms",
    "status": "status ms",
    "list": "list ms",
    "get": "get ms",
    "context": "context ms",
    "workspace added": "workspace added ms",
    "workspace removed": "workspace removed ms",
    "build": "build µs a chunk",
    "disk": "disk MB",
    "memory": "memory MB",
}


def build(corpus: Corpus, count: int, work: Path, real: int) -> Mapping[str, float]:
    """Index the corpus, and the directory with the one file that will change."""
    texts, vectors = corpus.chunks(count)[:], corpus.vectors(count, real)
    known = dict(zip(texts, vectors, strict=True))
    bench = Bench(work, known, texts)
    with bench.open() as memory:
        old = [memory.save(f"{number}: {texts[-1 - number]}").path for number in range(_REPEATS)]
        (work / _OLD).write_text(json.dumps(old))
        cost = timed(memory.index)
        _write_file(work, texts[:CHUNKS_A_DOCUMENT], "first")
        memory.index(work / "notes")
    return {"build": 1e6 * cost.cpu / count, "disk": bench.database.stat().st_size / 1e6}


def build_naive(corpus: Corpus, count: int, work: Path, real: int) -> Mapping[str, float]:
    """Build vec0 + FTS5."""
    Naive(work).build(corpus.chunks(count)[:], corpus.vectors(count, real))
    return {}


def warm(work: Path, questions: Embedded) -> Mapping[str, float]:
    """Ask in each way; the first half of the questions is not counted."""
    found: dict[str, float] = {}
    half = len(questions.texts) // 2
    with _bench(work, questions).open() as memory:
        for mode in _MODES:
            times = [timed(partial(memory.search, text, _LIMIT, mode=mode)).cpu for text in questions.texts]
            found[mode] = 1e3 * statistics.fmean(times[half:])
        found["memory"] = resident_megabytes()
    return found


def warm_naive(work: Path, questions: Embedded) -> Mapping[str, float]:
    """Ask the naive design some of the same questions: it is slow, and has no caches of its own to fill."""
    peer = Naive(work)
    peer.open(questions)
    half = len(questions.texts) // 2
    pairs = list(zip(questions.texts[half:], questions.vectors[half:], strict=True))[:40]
    times = [timed(partial(peer.search, *pair, _LIMIT)).cpu for pair in pairs]
    return {"naive": 1e3 * statistics.fmean(times)}


def cold(work: Path, questions: Embedded, mode: _Mode) -> Mapping[str, float]:
    """Open, and ask one question; what must be imported for that was imported for a memory of one text."""
    with tempfile.TemporaryDirectory() as place:
        text, vector = questions.texts[0], questions.vectors[0]
        with Bench(Path(place), {text: vector}, [text]).open() as memory:
            memory.index()
            memory.search(text, _LIMIT, mode=mode)
    bench = _bench(work, questions)
    opened = timed(lambda: bench.open().close())
    memory = bench.open()
    first = timed(lambda: memory.search(questions.texts[0], _LIMIT, mode=mode))
    memory.close()
    return {"open": 1e3 * opened.cpu, f"cold {mode}": 1e3 * (opened.cpu + first.cpu)}


def change(work: Path, questions: Embedded) -> Mapping[str, float]:
    """Change the file, then delete it, again and again."""
    changed, deleted = [], []
    with _bench(work, questions).open() as memory:
        for number in range(_REPEATS):
            _write_file(work, questions.texts[:CHUNKS_A_DOCUMENT], f"change {number}")
            changed.append(timed(lambda: memory.index(work / "notes")).cpu)
            (work / "notes" / "changing.md").unlink()
            deleted.append(timed(lambda: memory.index(work / "notes")).cpu)
            _write_file(work, questions.texts[:CHUNKS_A_DOCUMENT], f"again {number}")
            memory.index(work / "notes")
    return {"changed": 1e3 * statistics.median(changed), "deleted": 1e3 * statistics.median(deleted)}


def small(work: Path, questions: Embedded) -> Mapping[str, float]:
    """Save a memory, forget it, and index where nothing has changed, again and again."""
    costs: dict[str, list[float]] = {"save": [], "forget": [], "forget old": [], "unchanged": []}
    with _bench(work, questions).open() as memory:
        memory.forget(memory.save("what only the first of a process loads").path)
        memory.index()
        for number in range(_REPEATS):
            text = f"{number}: {questions.texts[number]}"
            costs["save"].append(timed(partial(memory.save, text)).cpu)
            saved = memory.save(text).path
            costs["forget"].append(timed(partial(memory.forget, saved)).cpu)
            costs["unchanged"].append(timed(memory.index).cpu)
        old = json.loads((work / _OLD).read_text())
        costs["forget old"] = [timed(partial(memory.forget, path)).cpu for path in old]
    return {name: 1e3 * statistics.median(values) for name, values in costs.items()}


def shown(work: Path, questions: Embedded) -> Mapping[str, float]:
    """Take what commands show, and add and remove a workspace, again and again."""
    kinds = ("status", "list", "get", "context", "workspace added", "workspace removed")
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    with _bench(work, questions).open() as memory:
        kept = memory.save("what is looked at").path
        memory.context(questions.texts[-1])
        for number in range(_REPEATS):
            place = work / f"more-{number}"
            _write_file(place, questions.texts[:CHUNKS_A_DOCUMENT], f"more {number}")
            calls = (
                memory.status,
                partial(memory.recent, 10),
                partial(memory.get, kept),
                partial(memory.context, questions.texts[number]),
                partial(memory.index, place / "notes", name=place.name),
                partial(memory.workspaces.remove, place.name),
            )
            for kind, call in zip(kinds, calls, strict=True):
                costs[kind].append(timed(call).cpu)
    return {name: 1e3 * statistics.median(values) for name, values in costs.items()}


def _bench(work: Path, questions: Embedded) -> Bench:
    return Bench(work, dict(zip(questions.texts, questions.vectors, strict=True)))


def _write_file(work: Path, texts: Sequence[str], mark: str) -> None:
    """Write a file of 20 chunks, each with the mark, beside one that stays."""
    notes = work / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "staying.md").write_text("This one stays.")
    (notes / "changing.md").write_text("\n".join(f"{mark}: {text}" for text in texts))


def measure(told: Sequence[object], count: int, work: Path, *, naive: bool) -> Mapping[str, float]:
    """Return everything about one number of chunks, every step in a process of its own; what fails is left out."""
    steps = ["build", "warm", *(f"cold {mode}" for mode in _MODES for _ in range(_REPEATS)), "change", "small", "shown"]
    found: dict[str, list[float]] = {}
    for step in [*steps, *(["build naive", "warm naive"] if naive else [])]:
        answer = in_own_process(Path(__file__), *told, "--counts", count, "--work", work, "--step", step)
        if "failed" in answer:
            print(f"{count:,} chunks: {step}: {answer['failed']}", flush=True)
            continue
        for key, value in answer.items():
            found.setdefault(key, []).append(value)
    return {key: statistics.median(values) for key, values in found.items()}


def take(step: str, corpus: Corpus, count: int, work: Path, real: int) -> Mapping[str, float]:
    """Take one step in this process."""
    if step == "build":
        corpus.questions(480).save(work)
        return build(corpus, count, work, real)
    if step == "build naive":
        return build_naive(corpus, count, work, real)
    questions = Embedded.load(work)
    if step.startswith("cold"):
        mode = next(mode for mode in _MODES if step.endswith(mode))
        return cold(work, questions, mode)
    return {"warm": warm, "change": change, "small": small, "shown": shown, "warm naive": warm_naive}[step](
        work, questions
    )


def plot(found: Mapping[int, Mapping[str, float]], path: Path) -> None:
    """Draw costs and sizes over the number of chunks, both axes logarithmic."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "klaw"  # the same figures give the same file
    from matplotlib import pyplot as plt

    figure_, panels = plt.subplots(1, 3, figsize=(12, 4))
    groups = {
        "CPU of a warm query, ms": ("hybrid", "vector", "fts", "naive"),
        "CPU, ms": ("cold hybrid", "open", "changed", "deleted", "unchanged", "save", "forget", "forget old", "status"),
        "size, MB": ("disk", "memory"),
    }
    for panel, (title, keys) in zip(panels, groups.items(), strict=True):
        for key in keys:
            points = [(count, values[key]) for count, values in found.items() if key in values]
            if points:
                panel.plot(*zip(*points, strict=True), marker="o", label=_COLUMNS[key].rpartition(" ")[0])
        panel.set(title=title, xlabel="chunks", xscale="log", yscale="log")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8)
    figure_.tight_layout()
    figure_.savefig(path, metadata={"Date": None})


def report(found: Mapping[int, Mapping[str, float]]) -> str:
    """Return the table: a line for each cost, a column for each number of chunks."""
    rows = [
        (label, *(figure(values[key]) if key in values else "" for values in found.values()))
        for key, label in _COLUMNS.items()
        if any(key in values for values in found.values())
    ]
    return table(("chunks", *(f"{count:,}" for count in found)), rows)


def main() -> None:
    """Measure every number of chunks; with ``--step``, be one of the processes that do it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--counts", default="1000,10000,100000")
    parser.add_argument("--real", type=int, default=100_000, help="how many vectors are computed by the model")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--naive", action="store_true")
    parser.add_argument("--work", type=Path, help="where everything is built (default: a temporary directory)")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.counts.split(",")]
    corpus = Corpus(arguments.data, arguments.cache)
    if arguments.step:
        print(json.dumps(take(arguments.step, corpus, counts[0], arguments.work, arguments.real)))
        return
    corpus.vectors(max(counts), arguments.real)  # embedded by one process, before the others look
    found: dict[int, Mapping[str, float]] = {}
    for count in counts:
        with tempfile.TemporaryDirectory(dir=arguments.work) as work:
            told = (arguments.data, "--cache", arguments.cache, "--real", arguments.real)
            found[count] = measure(told, count, Path(work), naive=arguments.naive)
        print(f"{report(found)}\n", flush=True)
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
