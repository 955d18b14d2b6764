"""Kill Klaw inside each write of a scene, and look each time at what is left: ``driver.py SCENE DIRECTORY``.

With ``--power MODE`` the scene runs once, and what is looked at is what power cuts would have left of it. With
``--fault KIND`` nobody dies: the n-th call fails, the caller is told, and the same process goes on.

Everything is imported once; each run and each look is a child of its own, forked before any database is open.
Prints one object of JSON: how many points the scene has, which were run, and what was not as promised.
"""

import argparse
import importlib
import json
import os
import pickle
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw.ext  # noqa: F401  # imported here, so that no child has to
import bugs
from attrs import frozen
from faults import KillSwitch
from io_faults import KINDS, Fault
from power import MODES, Disk, Recorder
from scenes import SCENES, Home, Scene, go_on, make_registry
from verdict import Story, examine

from klaw_core import KlawError


def main() -> int:
    """Run a scene, print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scene", choices=SCENES)
    parser.add_argument("directory", type=Path, help="an empty directory to work in")
    parser.add_argument("--points", type=int, help="so many, and the first of each kind of call (default: all)")
    parser.add_argument("--bug", choices=bugs.BUGS, help="a defect to put into the process that dies")
    parser.add_argument("--power", choices=MODES, help="cut the power instead, so often as --points says")
    parser.add_argument("--fault", choices=KINDS, help="let a call fail instead")
    parser.add_argument("--sticky", action="store_true", help="let every later call fail as well")
    arguments = parser.parse_args()
    stage = Stage.make(SCENES[arguments.scene], arguments.directory, arguments.bug)
    if arguments.power:
        outcome = cut(stage, arguments.points, arguments.power)
    elif arguments.fault:
        outcome = strain(stage, arguments.points, arguments.fault, sticky=arguments.sticky)
    else:
        outcome = play(stage, arguments.points)
    print(json.dumps(outcome))  # noqa: T201
    return 0


@frozen
class Stage:
    """A scene that is prepared: ``template`` holds what was there before, ``before`` what was said."""

    scene: Scene
    home: Home
    template: Path
    before: list[tuple[str, ...]]
    bug: str | None

    @classmethod
    def make(cls, scene: Scene, directory: Path, bug: str | None) -> "Stage":
        """Prepare a scene, and import whatever it will need."""
        home = Home(directory / "home", make_registry(), scene.compact, scene.agent, scene.facts)
        home.data.mkdir(parents=True)
        before, _ = in_child(lambda say: rehearse(scene, home, say))
        home.root.rename(directory / "template")
        for _, name, *_ in (line for line in before if line[0] == "module"):
            importlib.import_module(name)
        return cls(scene, home, directory / "template", before, bug)

    def set_up(self) -> None:
        """Make everything as it was before."""
        shutil.rmtree(self.home.root, ignore_errors=True)
        shutil.copytree(self.template, self.home.root)

    def act(self, say: Callable[..., None]) -> None:
        """Play the scene, with the defect if there is one."""
        if self.bug:
            bugs.BUGS[self.bug]()
        with self.home.open(self.scene.dimension) as memory:
            self.scene.act(memory, self.home, say)

    def problems(self, said: list[tuple[str, ...]]) -> list[str]:
        """Look at what is left, given what was said until then."""
        story = [line for line in (*self.before, *said) if line[0] in {"begin", "done"}]
        found, _ = in_child(lambda say: look(self.home, story, self.scene.dimension, say))
        return [line[1] for line in found]


def play(stage: Stage, points: int | None) -> dict[str, object]:
    """Kill a scene at its points, all or some, and once not at all; return counts and failures."""

    def act(target: int | None, say: Callable[..., None]) -> None:
        switch = KillSwitch(lambda name: say("killed", "in", name, ""), target)
        switch.install()
        stage.act(say)
        say("calls", *switch.names)

    def run(target: int | None) -> tuple[list[tuple[str, ...]], list[str]]:
        stage.set_up()
        said, killed = in_child(lambda say: act(target, say))
        if stage.scene.steady and killed != (target is not None):
            raise AssertionError(f"{stage.scene.name}: point {target} was not reached")
        return said, stage.problems(said)

    said, problems = run(None)
    calls = said[-1][1:]
    failures = [{"point": None, "problems": problems}] if problems else []
    chosen = range(len(calls)) if points is None else sample(calls, points)
    for target in chosen:
        said, problems = run(target)
        if problems:
            failures.append({"point": target, "call": said[-1][2:], "problems": problems})
    return {"scene": stage.scene.name, "total": len(calls), "run": len(chosen), "failures": failures}


def cut(stage: Stage, images: int | None, mode: str) -> dict[str, object]:
    """Play a scene once, cut the power at random moments of it, and look at what is left; the dice are seeded."""
    record = stage.template.with_name("steps")

    def act(_say: Callable[..., None]) -> None:
        recorder = Recorder(stage.home.root)
        recorder.install()
        stage.act(lambda *words: recorder.steps.append(("said", "", *words)))
        record.write_bytes(pickle.dumps(recorder.steps))

    stage.set_up()
    in_child(act)
    steps = pickle.loads(record.read_bytes())  # a child's of ours
    failures = []
    chance = Random(f"{stage.scene.name} {mode}")
    count = 600 if images is None else images
    for _ in range(count):
        moment = chance.randint(1, len(steps))
        disk = Disk(stage.template)
        disk.play([step for step in steps[:moment] if step[0] != "said"])
        shutil.rmtree(stage.home.root)
        disk.restore(stage.home.root, mode, chance)
        problems = stage.problems([step[2:] for step in steps[:moment] if step[0] == "said"])
        if problems:
            failures.append({"point": moment, "call": steps[moment - 1][:2], "problems": problems})
    return {"scene": stage.scene.name, "total": len(steps), "run": count, "failures": failures}


def strain(stage: Stage, points: int | None, kind: str, *, sticky: bool) -> dict[str, object]:
    """Let each call of a kind fail, all or some, and go on in the same process; return counts and failures."""

    def act(target: int | None, say: Callable[..., None]) -> None:
        fault = Fault(kind, stage.home.root, target, sticky)
        fault.install()
        try:
            stage.act(say)
        except KlawError as error:
            fault.clear()
            if not isinstance(error, KINDS[kind][1]):
                say("problem", f"told {type(error).__name__}: {error}")
        fault.clear()
        say("count", str(fault.count), str(fault.failed))
        with stage.home.open(stage.scene.dimension) as memory:
            go_on(memory, say)

    def run(target: int | None) -> tuple[int, list[str]]:
        stage.set_up()
        said, killed = in_child(lambda say: act(target, say))
        if killed:
            raise AssertionError(f"{stage.scene.name}: died of a failing call {target}")
        told = [line[1] for line in said if line[0] == "problem"]
        count = next(int(line[1]) for line in said if line[0] == "count")
        return count, told + stage.problems(said)

    total, problems = run(None)
    failures = [{"point": None, "problems": problems}] if problems else []
    chosen = range(total) if points is None else sorted({number * total // points for number in range(points)})
    for target in chosen:
        _, problems = run(target)
        if problems:
            failures.append({"point": target, "problems": problems})
    return {"scene": stage.scene.name, "total": total, "run": len(chosen), "failures": failures}


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
