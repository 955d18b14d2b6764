"""Hybrid search beside its peers: CPU a query without the embedding, recall, memory, disk, and what building costs.

    python benchmarks/hybrid_search.py DATA --cache DIR [--count 100000] [--rounds 3] [--peers klaw,naive] [--work DIR]

The same texts (about 300 words each), the same vectors, the same real questions (``corpus.py``); ten texts are asked
for. Every peer is built, and then asked, in processes of its own with one thread for all that heeds it, in turns,
round by round, so that other work on the machine meets all of them. 240 other questions come first and are not counted
(caches fill, indexes load); "cold" is a whole process up to its first answer: the interpreter, imports (numpy for
all), opening, searching.

CPU is the process's, threads included. Ratios are to Klaw in the same round: of the mean over the questions, the
median of the rounds. Recall is that of the ten nearest by vectors alone against an exact scan. What ranks no words
(sqlite-vec, numpy, Chroma) does half the work. A peer that is not installed is named and left out
(``pip install -r benchmarks/requirements-peers.txt``). With ``--work`` what was built is kept there and used again by
the next run of the same count; remove ``DIR/NAME.json`` to have one built anew.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from corpus import Corpus, Embedded
from measuring import Spread, disk_megabytes, figure, in_own_process, resident_megabytes, table, timed
from peers import PEERS, peer_class

_LIMIT = 10
_QUESTIONS = 240


def build(name: str, corpus: Corpus, count: int, work: Path) -> Mapping[str, Any]:
    """Build one peer in this process."""
    texts, vectors = corpus.chunks(count)[:], corpus.vectors(count)
    place = work / name
    shutil.rmtree(place, ignore_errors=True)  # what an interrupted run left
    place.mkdir()
    peer = peer_class(name)(place)
    cost = timed(lambda: peer.build(texts, vectors))
    return {"cpu": cost.cpu, "wall": cost.wall}


def ask(name: str, work: Path) -> Mapping[str, Any]:
    """Open one peer in this process and ask it everything."""
    questions = Embedded.load(work)
    exact = json.loads((work / "exact.json").read_text())
    peer = peer_class(name)(work / name)
    pairs = list(zip(questions.texts, questions.vectors, strict=True))
    others, pairs = pairs[len(exact) :], pairs[: len(exact)]
    peer.open(questions)
    peer.search(*others[0], _LIMIT)
    cold = time.process_time()
    for question, vector in others:
        peer.search(question, vector, _LIMIT)
    costs = [timed(partial(peer.search, *pair, _LIMIT)) for pair in pairs]
    memory = resident_megabytes()
    found = [peer.nearest(question, vector, _LIMIT) for question, vector in pairs]
    shared = [len({*numbers} & {*right}) / _LIMIT for numbers, right in zip(found, exact, strict=True)]
    return {
        "cold": cold,
        "cpu": [cost.cpu for cost in costs],
        "wall": [cost.wall for cost in costs],
        "memory": memory,
        "recall": sum(shared) / len(shared),
        "summary": peer.summary,
    }


def compare(names: Sequence[str], corpus: Sequence[object], work: Path, rounds: int) -> None:
    """Build all, ask all in turns, and print the tables. ``corpus`` is how this program is told what to build from."""
    built: dict[str, dict[str, Any]] = {}
    for name in names:
        known = work / f"{name}.json"
        if not known.exists():
            answer = in_own_process(Path(__file__), *corpus, "--step", "build", "--peers", name, "--work", work)
            if "failed" in answer:
                print(f"{name}: left out: {answer['failed']}", flush=True)
                continue
            known.write_text(json.dumps(answer | {"disk": disk_megabytes(work / name)}))
        built[name] = json.loads(known.read_text())
        print(f"{name}: built in {built[name]['wall']:.0f} s", flush=True)
    asked: dict[str, list[dict[str, Any]]] = {name: [] for name in built}
    for _ in range(rounds):
        for name in list(asked):
            answer = in_own_process(Path(__file__), "--step", "ask", "--peers", name, "--work", work)
            if "failed" in answer:
                print(f"{name}: left out: {answer['failed']}")
                del asked[name]
            else:
                asked[name].append(answer)
    print(_table_of_queries(asked), _table_of_builds(asked, built), sep="\n\n")


def _table_of_queries(asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    rows = []
    for name, rounds in asked.items():
        queries = Spread.of(
            1e3 * float(np.median(times)) for times in zip(*(each["cpu"] for each in rounds), strict=True)
        )
        wall = Spread.of(1e3 * cost for each in rounds for cost in each["wall"])
        rows.append(
            (
                name,
                queries.mean,
                str(queries),
                _ratio(asked, name, "cpu"),
                wall.median,
                1e3 * Spread.of(each["cold"] for each in rounds).median,
                _ratio(asked, name, "cold"),
                f"{rounds[0]['recall']:.3f}",
                Spread.of(each["memory"] for each in rounds).median,
                rounds[0]["summary"],
            )
        )
    head = (
        "",
        "CPU ms, mean",
        "median (quartiles)",
        "× Klaw",
        "wall ms",
        "cold ms",
        "× Klaw",
        "recall@10",
        "RSS MB",
        "what",
    )
    return table(head, rows)


def _table_of_builds(asked: Mapping[str, Any], built: Mapping[str, Mapping[str, float]]) -> str:
    klaw = built.get("klaw", {})
    rows = [
        (
            name,
            *(built[name][key] for key in ("cpu", "wall", "disk")),
            *(figure(built[name][key] / klaw[key]) if klaw else "" for key in ("cpu", "disk")),
        )
        for name in asked
    ]
    return table(("", "build CPU s", "build wall s", "disk MB", "CPU × Klaw", "disk × Klaw"), rows)


def _ratio(asked: Mapping[str, Sequence[Mapping[str, Any]]], name: str, what: str) -> str:
    """Return the cost as a multiple of Klaw's, round by round: the median, and the least and the most."""
    if not asked.get("klaw"):
        return ""
    pairs = zip(asked[name], asked["klaw"], strict=False)
    ratios = [float(np.mean(other[what]) / np.mean(klaw[what])) for other, klaw in pairs]
    spread = Spread.of(ratios)
    return f"{figure(spread.median)} ({figure(min(ratios))} to {figure(max(ratios))})"


def write_tasks(corpus: Corpus, count: int, work: Path) -> None:
    """Write what the asking processes read: questions, and the exact answers."""
    questions = corpus.questions(2 * _QUESTIONS)
    questions.save(work)
    scores = questions.vectors[:_QUESTIONS] @ corpus.vectors(count).T
    exact = np.argsort(-scores, axis=1)[:, :_LIMIT]
    (work / "exact.json").write_text(json.dumps(exact.tolist()))


def main() -> None:
    """Compare; with ``--step``, be one of the processes that the comparison starts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--work", type=Path, help="keep what is built here, and use it again")
    parser.add_argument("--step", choices=("build", "ask"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.peers.split(",")
    if arguments.step == "ask":
        print(json.dumps(ask(names[0], arguments.work)))
        return
    if arguments.data is None or arguments.cache is None:
        parser.error("DATA and --cache are needed")
    corpus = Corpus(arguments.data, arguments.cache)
    if arguments.step == "build":
        print(json.dumps(build(names[0], corpus, arguments.count, arguments.work)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(arguments.work or temporary)
        work.mkdir(exist_ok=True)
        write_tasks(corpus, arguments.count, work)
        told = (arguments.data, "--cache", arguments.cache, "--count", arguments.count)
        compare(names, told, work, arguments.rounds)


if __name__ == "__main__":
    main()
