"""Kill Klaw inside each write of a scene, and look each time at what is left: ``driver.py SCENE DIRECTORY``.

Everything is imported once; each run and each look is a child of its own, forked before any database is open.
Prints one object of JSON: how many points the scene has, which were run, and what was not as promised.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import apsw.ext  # noqa: F401  # imported here, so that no child has to
import bugs
from faults import KillSwitch
from scenes import SCENES, Home, Scene, make_registry
from verdict import Story, examine


def main() -> int:
    """Run a scene, print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scene", choices=SCENES)
    parser.add_argument("directory", type=Path, help="an empty directory to work in")
    parser.add_argument("--points", type=int, help="so many, and the first of each kind of call (default: all)")
    parser.add_argument("--bug", choices=bugs.BUGS, help="a defect to put into the process that dies")
    arguments = parser.parse_args()
    print(json.dumps(play(SCENES[arguments.scene], arguments.directory, arguments.points, arguments.bug)))  # noqa: T201
    return 0


def play(scene: Scene, directory: Path, points: int | None, bug: str | None) -> dict[str, object]:
    """Kill a scene at its points, all or some, and once not at all; return counts and failures."""
    home = Home(directory / "home", make_registry())
    template = directory / "template"
    home.data.mkdir(parents=True)
    before, _ = in_child(lambda say: rehearse(scene, home, say))
    home.root.rename(template)
    for _, name, *_ in (line for line in before if line[0] == "module"):
        importlib.import_module(name)

    def act(target: int | None, say: Callable[..., None]) -> None:
        switch = KillSwitch(lambda name: say("killed", "in", name, ""), target)
        if bug:
            bugs.BUGS[bug]()
        switch.install()
        with home.open(scene.dimension) as memory:
            scene.act(memory, home, say)
        say("calls", *switch.names)

    def run(target: int | None) -> tuple[list[tuple[str, ...]], list[str]]:
        shutil.rmtree(home.root, ignore_errors=True)
        shutil.copytree(template, home.root)
        said, killed = in_child(lambda say: act(target, say))
        if killed != (target is not None):
            raise AssertionError(f"{scene.name}: point {target} was not reached")
        story = [line for line in (*before, *said) if line[0] in {"begin", "done"}]
        problems, _ = in_child(lambda say: look(home, story, scene.dimension, say))
        return said, [line[1] for line in problems]

    said, problems = run(None)
    calls = said[-1][1:]
    failures = [{"point": None, "problems": problems}] if problems else []
    chosen = range(len(calls)) if points is None else sample(calls, points)
    for target in chosen:
        said, problems = run(target)
        if problems:
            failures.append({"point": target, "call": said[-1][2], "problems": problems})
    return {"scene": scene.name, "total": len(calls), "run": len(chosen), "failures": failures}


def sample(calls: tuple[str, ...], points: int) -> list[int]:
    """Return so many calls, evenly spread, and the first of each kind."""
    spread = {number * len(calls) // points for number in range(points)}
    return sorted(spread | {calls.index(kind) for kind in calls})


def rehearse(scene: Scene, home: Home, say: Callable[..., None]) -> None:
    """Prepare a scene, and say what had to be imported for it: the parent does so once, instead of each child."""
    known = set(sys.modules)
    scene.prepare(home, say)
    with home.open() as memory:
        memory.doctor()
    for name in set(sys.modules) - known:
        say("module", name, "", "")


def look(home: Home, lines: list[tuple[str, ...]], dimension: int, say: Callable[..., None]) -> None:
    """Say every problem; an error is one too."""
    try:
        for problem in examine(home, Story.of(lines), dimension):
            say("problem", problem)
    except Exception:  # noqa: BLE001  # whatever it is, it must not happen
        say("problem", traceback.format_exc())


def in_child(work: Callable[[Callable[..., None]], None]) -> tuple[list[tuple[str, ...]], bool]:
    """Do some work in a child that ends without cleaning up; return what it said and whether it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _be_child(work, writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:  # noqa: PTH123  # a descriptor
        said = [tuple(json.loads(line)) for line in pipe]
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status):
        raise AssertionError(f"a child failed, having said {said}")
    return said, os.WIFSIGNALED(status)


def _be_child(work: Callable[[Callable[..., None]], None], pipe: int) -> None:
    write = os.write  # the real one, whatever the work does to it

    def say(*words: str) -> None:
        write(pipe, json.dumps(words).encode() + b"\n")

    code = 70
    try:
        work(say)
        code = 0
    except BaseException:  # noqa: BLE001  # a child must never go on as its parent
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
