"""Live days of an agent from seeds: operations, faults, and a look at what is left by somebody who was not there.

    python tests/simulation/simulator.py [--seed N] [--days D] [--twice] [--first] [--shrink SECONDS]
                                         [--bug NAME] [--replay FILE] [--keep FILE]
                                         [--store both|sqlite|postgres] [--from COMMIT]
    python tests/simulation/simulator.py --defects [NAME ...] [--seed N] [--seconds S]

A seed is one life of 60 operations at one commit: its texts, moments, faults and bytes are the same each time
(``--twice`` lives each life twice and compares every step on the disk, until a process with a real clock begins). A
failing life is shortened (``--shrink``) and kept as a file (``--keep``), which ``--replay`` lives again. ``--bug`` puts
a known defect into the product, which must be found. ``--store`` says which lives are lived in PostgreSQL, too.
``--from`` lets an earlier version of Klaw live the first part of each day, in both stores. The exit status is 1 if
anything was found.

``--defects`` puts defects into the product, one after the other: past ones, those that only PostgreSQL has, and more.
It lives until each is found, or for ``--seconds`` of CPU. It prints a table; the exit status is 1 if one was not found.
"""

import argparse
import importlib
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import regex  # type: ignore[import-untyped]  # it ships no types

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "crash")]

from attrs import evolve  # noqa: E402
from bugs import BUGS  # noqa: E402
from children import forked  # noqa: E402
from defects import MORE, NO_FAULTS, OF_TWINS, PAST, PROVED  # noqa: E402
from earlier import Earlier  # noqa: E402
from lives import (  # noqa: E402
    KINDS,
    LATER,
    Operation,
    Outcome,
    Plans,
    from_json,
    to_json,
    without,
)
from others import recalled, request, write_private  # noqa: E402
from scenes import Home, make_registry  # noqa: E402
from stage import BOUNDARIES, Stage, rehearse  # noqa: E402
from twins import plan_of_both  # noqa: E402

from klaw_redaction import forms  # noqa: E402

_TWINS = 15  # one life of so many is lived in PostgreSQL, too
_DEFECT_SECONDS = 360
_PATTERNS = 10_000  # that Python keeps, in place of 512
_monotonic = time.monotonic  # the real one
_AGAIN_SECONDS = 5.0
#: A part of the name of a kept life that is lived in both stores.
_BOTH = "both-"
#: Lives operations of a seed.
Live = Callable[[Sequence[Operation], int], Outcome]
_DEFECTS = {**BUGS, **MORE, **PAST}


def shrink(live: Live, life: list[Operation], seed: int, wanted: str, seconds: float) -> list[Operation]:
    """Return a shorter life with the same problem (delta debugging: halves, quarters, single operations, faults).

    ``live`` lives it where the problem was: in SQLite, or in both stores.
    """
    end = _monotonic() + seconds

    def fails(some: Sequence[Operation]) -> bool:
        return bool(some) and _monotonic() < end and wanted in live(some, seed).signatures()

    size = max(len(life) // 2, 1)
    while size:
        start, has_cut = 0, False
        while start < len(life):
            shorter = without(life, start, start + size)
            if fails(shorter):
                life, has_cut = shorter, True
            else:
                start += size
        size = size if has_cut and size <= len(life) else size // 2
    for at, operation in enumerate(life):
        if operation.fault is not None:
            shorter = [*life[:at], evolve(operation, fault=None), *life[at + 1 :]]
            life = shorter if fails(shorter) else life
    return life


def _end(*_: object) -> None:
    """End, and put everything away. Python may drop an exception, as in a hook of a fork, so it comes again."""
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
    sys.exit(128 + signal.SIGTERM)


def main() -> int:
    """Live the days that were asked for; print what was found, and return 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="of the first life; a new one by default")
    parser.add_argument("--days", type=int, default=20)
    parser.add_argument("--twice", action="store_true", help="live each life twice and compare every step")
    told = f"one life of {_TWINS} (both), none (sqlite) or each one (postgres) is lived in PostgreSQL, too"
    parser.add_argument("--store", choices=("both", "sqlite", "postgres"), default="both", help=told)
    parser.add_argument("--from", dest="earlier", metavar="COMMIT", help="the version that lives the first part")
    parser.add_argument("--first", action="store_true", help="stop at the first problem")
    parser.add_argument("--shrink", type=float, default=0, metavar="SECONDS", help="shorten each failing life")
    parser.add_argument("--bug", choices=sorted(_DEFECTS), help="put a known defect into the product")
    parser.add_argument("--seconds", type=float, default=0, help="of CPU, after which no other day begins")
    parser.add_argument(
        "--defects",
        nargs="*",
        metavar="NAME",
        choices=sorted(_DEFECTS),
        help="look for defects: all of the table by default",
    )
    parser.add_argument("--replay", type=Path, nargs="*", metavar="FILE", help="live kept lives instead")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep shortened lives in this directory")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a life
        os.execve(
            sys.executable,
            [sys.executable, *sys.argv],
            {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
        )
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, _end)
    memory_files = Path("/dev/shm")  # there a flush costs nothing
    prefix = f"days{os.getpid():07}_"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=memory_files if memory_files.is_dir() else None) as place:
        stage = Stage(Path(place), make_registry(), options.twice)
        warm_up(stage)
        if options.earlier:
            stage.earlier = Earlier(options.earlier, Path(f"{place}-earlier"))
        if options.bug:
            _DEFECTS[options.bug]()
        try:
            if stage.earlier is not None:
                stage.earlier.make()
            if options.replay is not None:
                return replay(stage, options.replay)
            if options.defects is not None:
                limits = options.seed or 1, options.seconds or _DEFECT_SECONDS
                return find_defects(stage, options.defects or [*PAST, *OF_TWINS, *PROVED], limits)
            first = Random().randrange(10**6) if options.seed is None else options.seed
            return night(stage, first, options)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            stage.server.stop()
            if stage.earlier is not None:
                stage.earlier.remove()


def warm_up(stage: Stage) -> None:
    """Import in this process what lives need, so that each child begins with it."""
    home = Home(stage.root / "warm", stage.registry, facts=True, private=True)
    home.root.mkdir(parents=True)
    write_private(home)
    home.write("warm.md", "# Warm\n\nwarm\n")
    with home.open() as memory:
        memory.save("warm")
        memory.index(home.notes)
        memory.search("warm")
        str(memory.context("warm"))
        memory.core.update("user", "warm", "warm")
        memory.export(home.root / "export.jsonl")
        memory.doctor()
        memory.reindex()
        request(memory, "GET /api/search", query="query=warm")
        recalled(memory, "warm")
        memory.extension("facts").remember("I moved to Warsaw.")  # its patterns are compiled once
    keep_compiled()


def keep_compiled() -> None:
    """Compile what lives may need of patterns, and import what few calls need, once: no child has to do it again."""
    importlib.import_module("jsonschema")
    re._MAXCACHE = _PATTERNS
    for pattern in (*forms.BUILTIN_PATTERNS, *forms.LOOSER.values()):
        regex.compile(pattern)


def night(stage: Stage, first: int, options: argparse.Namespace) -> int:
    """Live lives from seeds; print each kind of problem once, with its life."""
    total: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    began, spent = _monotonic(), sum(os.times()[:4])
    every = {"sqlite": sys.maxsize, "postgres": 1}.get(options.store, _TWINS)
    try:
        print(f"seeds {first} to {first + options.days - 1}", flush=True)
        plans = Plans(rehearse(stage))
        began, spent = _monotonic(), sum(os.times()[:4])
        for seed in range(first, first + options.days):
            life = plans.of(seed)
            outcome = stage.live(life, seed)
            total.update(outcome.counts)
            total["days"] += 1
            found = [(life, stage.live, outcome)]
            if seed % every == 0 and (options.store == "postgres" or not outcome.problems) and stage.server.dsn:
                both = plan_of_both(seed)
                twins = stage.live_twice(both, seed)
                total.update(twins.counts)
                found.append((both, stage.live_twice, twins))
            if options.twice and (again := stage.live(life, seed)).of_seed() != outcome.of_seed():
                outcome.problems.append((-1, f"a second time it was another life: {difference(outcome, again)}"))
            for lived, live, was in found:
                for signature in was.signatures():
                    if not seen[signature]:
                        _report(lived, live, seed, was.first(signature), options)
                    seen[signature] += 1
            if (options.first and seen) or sum(os.times()[:4]) - spent > options.seconds > 0:
                break
    finally:  # also if somebody ends it
        print(told(first, total, _monotonic() - began, sum(os.times()[:4]) - spent, seen), flush=True)
    if stage.server.missing:
        print(f"  no life in PostgreSQL: {stage.server.missing}")
    for signature, count in seen.most_common():
        print(f"  {count} days: {signature}")
    return int(bool(seen))


def told(first: int, total: Counter[str], seconds: float, used: float, seen: Counter[str]) -> str:
    """Return what was lived, in one paragraph."""
    days = total["days"]
    faults = {
        kind: total[kind] for kind in ("interrupts", "crash", "power", "full", "beside", "thread", "killed", "cut")
    }
    of_twins = {kind: total[f"twins {kind}"] for kind in ("exit", "cut", "stop", "thread")}
    operations = {kind: total[kind] for kind in (*KINDS, *LATER, *BOUNDARIES) if total[kind]}
    return (
        f"seeds {first} to {first + days - 1}: {days} days in {seconds:.0f} s, {used / max(days, 1):.1f} s of CPU each"
        "\n"
        f"  {total['operations']} operations: {operations}\n"
        f"  {sum(faults.values())} faults: {faults}\n"
        f"  {total['turns']} turns of threads; {total['twins']} lives in PostgreSQL, too, "
        f"with {sum(of_twins.values())} faults: {of_twins}\n"
        f"  {sum(seen.values())} failures of {len(seen)} kinds"
    )


def find_defects(stage: Stage, names: Sequence[str], limits: tuple[int, float]) -> int:
    """Look for defects, each in a process of its own; print what was said of each, and return 1 if one is left.

    ``limits`` are the first seed, and how much CPU may be used for each.
    """
    missed = []
    known = rehearse(stage) if {*names} - NO_FAULTS - {*OF_TWINS} else {}
    print("| defect | what it was | found | CPU | said |\n|---|---|---|---|---|", flush=True)
    for name in names:
        put_in = _DEFECTS[name]
        what = put_in.__doc__ or ""
        met = {} if name in NO_FAULTS else known  # a day without faults costs less
        live = partial(_live_twice, stage) if name in OF_TWINS else partial(_live_once, stage, Plans(met))
        if name in OF_TWINS and not stage.server.dsn:  # it runs in this process, and ends with it
            missed.append(name)
            print(f"| {name} | {what} | no: {stage.server.missing} | | |", flush=True)
            continue
        said, status = forked(partial(_look_for, live, put_in, limits), limit=0)
        ended = "missed", 0, 0.0, f"ended with {status}"
        how, days, used, text = next((each for each in said if each[0] in {"found", "missed"}), ended)
        missed += [name] * (how == "missed")
        where = f"seed {limits[0] + days - 1}, day {days}" if name not in missed else f"no, {days} days"
        text = re.sub(r"/dev/shm/\w+|/tmp/\w+", "", text).partition("\n")[0][:160].replace("|", " ")
        print(f"| {name} | {what.partition(chr(10))[0]} | {where} | {used:.0f} s | {text} |", flush=True)
    print(f"{len(names) - len(missed)} of {len(names)} found; not found: {', '.join(missed) or 'none'}")
    return int(bool(missed))


def _live_once(stage: Stage, plans: Plans, seed: int) -> Outcome:
    return stage.live(plans.of(seed), seed)


def _live_twice(stage: Stage, seed: int) -> Outcome:
    return stage.live_twice(plan_of_both(seed), seed)


def _look_for(
    live: Callable[[int], Outcome], put_in: Callable[[], None], limits: tuple[int, float], say: Callable[..., None]
) -> None:
    """Put a defect into this process, and live from a seed until it is found, or until so much CPU was used."""
    put_in()
    seed, seconds = limits
    began, days, used = sum(os.times()[:4]), 0, 0.0
    while used < seconds:
        days += 1
        outcome = live(seed + days - 1)
        used = sum(os.times()[:4]) - began
        if outcome.problems:
            say("found", days, used, outcome.problems[0][1])
            return
    say("missed", days, used, "")


def difference(one: Outcome, other: Outcome) -> str:
    """Return the first step on the disk, or else the answer, that two lives of one seed do not share."""
    one, other = one.of_seed(), other.of_seed()
    for step, second in zip(one.digests, other.digests, strict=False):
        if step != second:
            return f"{step}, {second}"
    return f"{one.counts - other.counts} {one.problems}, {other.counts - one.counts} {other.problems}"


def _report(
    life: list[Operation], live: Live, seed: int, problem: tuple[int, str], options: argparse.Namespace
) -> None:
    number, text = problem
    (signature,) = Outcome([problem]).signatures()
    guilty = next((operation for operation in life if operation.number == number), None)
    print(f"seed {seed}, operation {number}: {text}", flush=True)
    if guilty is not None:
        print(f"  {guilty.kind}, fault: {guilty.fault}", flush=True)
    if options.shrink and signature in live(life, seed).signatures():  # what depends on real time may not be
        life = shrink(live, life, seed, signature, options.shrink)
        print(f"  shortened to {len(life)} operations: {[operation.kind for operation in life]}", flush=True)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        where = _BOTH if live.__name__ == Stage.live_twice.__name__ else ""
        path = options.keep / f"{seed}-{where}{re.sub(r'[^a-z]+', '-', signature.lower())[:40].strip('-')}.json"
        path.write_text(to_json(life), "utf-8")
        print(f"  python tests/simulation/simulator.py --replay {path}", flush=True)


def replay(stage: Stage, files: Sequence[Path]) -> int:
    """Live kept lives again; print their problems."""
    found = 0
    for path in files:
        life = from_json(path)
        seed = int(path.name.partition("-")[0])
        outcome = (stage.live_twice if f"-{_BOTH}" in path.name else stage.live)(life, seed)
        found += len(outcome.problems)
        print(f"{path.name}: {outcome.signatures() or 'nothing'}", flush=True)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
