"""Kill Klaw inside each write of a scene, and look each time at what is left.

With ``--power MODE`` the scene runs once, and what is looked at is what power cuts would have left of it. With
``--fault KIND`` nobody dies: the n-th call fails, the caller is told, and the same process goes on.

    driver.py DIRECTORY index --points 20     run one scene
    driver.py DIRECTORY                       run those that standard input names, a list of arguments as JSON a line

Everything is imported once, and each scene is prepared once; each run and each look is a child of its own, forked
before any database is open. The answer to each is an object of JSON in a line: how many points the scene has, which
were run, and what was not as promised; or the error that stopped it.
"""

import argparse
import importlib
import json
import os
import pickle
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import apsw.ext  # noqa: F401  # imported here, so that no child has to
import bugs
from attrs import evolve, field, frozen
from faults import KillSwitch
from io_faults import KINDS, Fault
from power import MODES, Disk, Recorder
from scenes import SCENES, Home, Scene, go_on, make_registry
from verdict import Story, examine

from klaw_core import KlawError


def main() -> int:
    """Run one scene or those that are asked for, print what came of each."""
    directory, *arguments = sys.argv[1:]
    stages: dict[str, Stage] = {}
    asked = [arguments] if arguments else map(json.loads, sys.stdin)
    for words in asked:
        try:
            outcome = run(PARSER.parse_args(words), Path(directory), stages)
        except Exception:  # noqa: BLE001  # the next one may succeed
            outcome = {"error": traceback.format_exc()}
        print(json.dumps(outcome), flush=True)  # noqa: T201
    return 0


PARSER = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
PARSER.add_argument("scene", choices=SCENES)
PARSER.add_argument("--points", type=int, help="so many, evenly spread (default: all)")
PARSER.add_argument("--bug", choices=bugs.BUGS, help="a defect to put into the process that dies")
PARSER.add_argument("--until", metavar="TEXT", help="stop at the first point at which a problem says so")
PARSER.add_argument("--power", choices=MODES, help="cut the power instead, so often as --points says")
PARSER.add_argument("--fault", choices=KINDS, help="let a call fail instead")
PARSER.add_argument("--sticky", action="store_true", help="let every later call fail as well")


def run(arguments: argparse.Namespace, directory: Path, stages: "dict[str, Stage]") -> dict[str, object]:
    """Run a scene, which is prepared in the directory at the first time; return what came of it."""
    if arguments.scene not in stages:
        stages[arguments.scene] = Stage.make(SCENES[arguments.scene], directory / arguments.scene)
    stage = evolve(stages[arguments.scene], bug=arguments.bug)
    if arguments.power:
        total, results = cut(stage, arguments.points, arguments.power)
    elif arguments.fault:
        total, results = strain(stage, arguments.points, arguments.fault, sticky=arguments.sticky)
    else:
        total, results = play(stage, arguments.points)
    count, failures = 0, []
    for point, call, problems in results:
        count += point is not None
        if problems:
            failures.append({"point": point, "call": call, "problems": problems})
        if arguments.until and point is not None and any(arguments.until in problem for problem in problems):
            break
    return {"scene": arguments.scene, "total": total, "run": count, "failures": failures}


#: Of each run: the point (None: nothing went wrong), the call that it was, and the problems found.
Results = Iterator[tuple[int | None, tuple[str, ...], list[str]]]


@frozen
class Stage:
    """A scene that is prepared: ``template`` holds what was there before, ``before`` what was said.

    ``undisturbed`` keeps what runs gave in which nothing went wrong: its calls, steps and problems, by who asked.
    """

    scene: Scene
    home: Home
    template: Path
    before: list[tuple[str, ...]]
    bug: str | None = None
    undisturbed: dict[str, Any] = field(factory=dict)

    @classmethod
    def make(cls, scene: Scene, directory: Path) -> "Stage":
        """Prepare a scene, and import whatever it will need."""
        home = Home(directory / "home", make_registry(), scene.compact, scene.agent, scene.facts)
        home.data.mkdir(parents=True)
        before, _ = in_child(lambda say: rehearse(scene, home, say))
        home.root.rename(directory / "template")
        import_what(before)
        return cls(scene, home, directory / "template", before)

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

    def once(self, what: str, run: Callable[[], Any]) -> Any:
        """Return what an undisturbed run gives; with a defect it is run each time."""
        if self.bug:
            return run()
        if what not in self.undisturbed:
            self.undisturbed[what] = run()
        return self.undisturbed[what]

    def problems(self, said: list[tuple[str, ...]]) -> list[str]:
        """Look at what is left, given what was said until then."""
        story = [line for line in (*self.before, *said) if line[0] in {"begin", "done"}]
        found, _ = in_child(lambda say: look(self.home, story, self.scene.dimension, say))
        import_what(found)
        return [line[1] for line in found if line[0] == "problem"]


def play(stage: Stage, points: int | None) -> tuple[int, Results]:
    """Kill a scene at its points, all or some, and once not at all; return how many there are, and the results."""

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

    undisturbed, found = stage.once("play", lambda: run(None))
    calls = undisturbed[-1][1:]

    def results() -> Results:
        yield None, (), found
        for target in range(len(calls)) if points is None else sample(stage, calls, points):
            said, problems = run(target)
            yield target, said[-1][2:], problems

    return len(calls), results()


def cut(stage: Stage, images: int | None, mode: str) -> tuple[int, Results]:
    """Play a scene once, cut the power at random moments of it, and look at what is left; the dice are seeded."""
    record = stage.template.with_name("steps")

    def act(_say: Callable[..., None]) -> None:
        recorder = Recorder(stage.home.root)
        recorder.install()
        stage.act(lambda *words: recorder.steps.append(("said", "", *words)))
        record.write_bytes(pickle.dumps(recorder.steps))

    def run() -> Any:
        stage.set_up()
        in_child(act)
        return pickle.loads(record.read_bytes())  # a child's of ours

    steps = stage.once("cut", run)

    def results() -> Results:
        chance = Random(f"{stage.scene.name} {mode}")
        for _ in range(600 if images is None else images):
            moment = chance.randint(1, len(steps))
            disk = Disk(stage.template)
            disk.play([step for step in steps[:moment] if step[0] != "said"])
            shutil.rmtree(stage.home.root)
            disk.restore(stage.home.root, mode, chance)
            said = [step[2:] for step in steps[:moment] if step[0] == "said"]
            yield moment, steps[moment - 1][:2], stage.problems(said)

    return len(steps), results()


def strain(stage: Stage, points: int | None, kind: str, *, sticky: bool) -> tuple[int, Results]:
    """Let each call of a kind fail, all or some, and go on in the same process."""

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
        say("calls", json.dumps(fault.calls))
        with stage.home.open(stage.scene.dimension) as memory:
            go_on(memory, say)

    def run(target: int | None) -> tuple[dict[str, int], list[str]]:
        stage.set_up()
        said, killed = in_child(lambda say: act(target, say))
        if killed:
            raise AssertionError(f"{stage.scene.name}: died of a failing call {target}")
        told = [line[1] for line in said if line[0] == "problem"]
        calls = next(json.loads(line[1]) for line in said if line[0] == "calls")
        return calls, told + stage.problems(said)

    calls, found = stage.once("strain", lambda: run(None))
    total = sum(calls.get(call, 0) for call in KINDS[kind][0])
    chosen = {(2 * number + 1) * total // (2 * points) for number in range(points)} if points else range(total)

    def results() -> Results:
        yield None, (), found
        for target in sorted(chosen, key=(lambda call: abs(2 * call - total)) if stage.bug else None):
            _, problems = run(target)
            yield target, (kind,), problems

    return total, results()


def sample(stage: Stage, calls: tuple[str, ...], points: int) -> list[int]:
    """Return so many calls, evenly spread from one that the scene's name says.

    With a defect, which must be seen, they are those and the first of each kind, from the middle to the ends.
    """
    begin = crc32(stage.scene.name.encode())
    spread = {(begin + number * len(calls) // points) % len(calls) for number in range(points)}
    if not stage.bug:
        return sorted(spread)
    return sorted(spread | {calls.index(kind) for kind in calls}, key=lambda call: abs(2 * call - len(calls)))


def rehearse(scene: Scene, home: Home, say: Callable[..., None]) -> None:
    """Prepare a scene."""
    with imports_said(say):
        scene.prepare(home, say)
        with home.open() as memory:
            memory.doctor()


def look(home: Home, lines: list[tuple[str, ...]], dimension: int, say: Callable[..., None]) -> None:
    """Say every problem; an error is one too."""
    with imports_said(say):
        try:
            for problem in examine(home, Story.of(lines), dimension):
                say("problem", problem)
        except Exception:  # noqa: BLE001  # whatever it is, it must not happen
            say("problem", traceback.format_exc())


@contextmanager
def imports_said(say: Callable[..., None]) -> Iterator[None]:
    """Say what had to be imported: the parent does so once, instead of each child."""
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        say("module", name, "", "")


def import_what(said: list[tuple[str, ...]]) -> None:
    """Import what a child had to import."""
    for _, name, *_ in (line for line in said if line[0] == "module"):
        importlib.import_module(name)


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
