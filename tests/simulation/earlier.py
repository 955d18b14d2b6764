"""A life that begins with an earlier version of Klaw: its sources, what it leaves, and how a person goes on with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from attrs import define, field
from children import forked
from lives import START
from model import Model
from others import command_in, run_command, with_offers
from scenes import Home
from world import CRASHED, Clock, Disk, seed_dice

from klaw_core import KlawError

HERE = Path(__file__).parent
_ROOT = HERE.parents[1]
#: The power of ten of the most steps on the disk before a crash, with which half of the updates begin.
_MOST_STEPS = 2
#: Lets this process crash at its step of that number; what was acknowledged, and what was wrong.
DieAt = Callable[[int], None]
Begun = tuple[Model, list[str]]
_COMMANDS = 3  # that a person tries, each from the hint of the one before


@define
class Earlier:
    """An earlier version, in a directory: what is installed here without Klaw, and its own sources and plugins."""

    commit: str
    root: Path
    paths: list[str] = field(factory=list)

    def make(self) -> None:
        """Take the sources of the commit. Raise CalledProcessError for a commit that is not here."""
        tree = self.root / "tree"
        tree.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", self.commit], cwd=_ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
        installed = self.root / "installed"
        installed.mkdir()
        for each in Path(sysconfig.get_path("purelib")).iterdir():
            if each.suffix != ".pth" and "klaw" not in each.name:
                (installed / each.name).symlink_to(each)
        metadata = self.root / "metadata"
        for project in [tree / "pyproject.toml", *sorted(tree.glob("plugins/*/pyproject.toml"))]:
            _describe(tomllib.loads(project.read_text("utf-8")).get("project", {}), metadata)
        sources = [str(path) for path in sorted(tree.glob("plugins/*/src"))]
        self.paths = [str(tree), *sources, str(tree / "tests" / "crash"), str(metadata), str(installed)]

    def begin(self, home: Home, seed: int, store: Sequence[str] = (), die: DieAt | None = None) -> Begun:
        """Let it live the first part of a life; return what it has acknowledged, and what was wrong.

        ``store`` is the DSN and the schema of PostgreSQL, where ``die`` lets the process crash at a statement.
        """
        # Without `site`, nothing of today's Klaw is on the path but this directory.
        command = [sys.executable, "-S", str(HERE / "earlier_part.py"), str(home.root), str(seed), *store]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(self.paths), "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.root, check=False)
        if done.returncode:
            return Model(), [f"the earlier version has failed: {done.stderr[-800:]}"]
        model = Model(**json.loads(done.stdout.splitlines()[-1]))
        dice = Random(f"{seed} update")
        step = int(10 ** (dice.random() * _MOST_STEPS)) if dice.random() < 1 / 2 else 0
        said, status = forked(partial(_take_over, home, step, die))
        if status == CRASHED:
            said, status = forked(partial(_take_over, home, 0, die))
        problems = [each[1] for each in said if each[0] == "problem"]
        return model, [*problems, *([f"to take it over has ended with {status}"] if status else [])]

    def remove(self) -> None:
        """Remove its sources."""
        shutil.rmtree(self.root, ignore_errors=True)


def _describe(project: dict[str, Any], metadata: Path) -> None:
    """Write what an installer would write about a distribution."""
    if not project:
        return
    name, version = project["name"], project.get("version", "0")
    place = metadata / f"{name.replace('-', '_')}-{version}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = [f"[{group}]\n{_lines(points)}" for group, points in project.get("entry-points", {}).items()]
    (place / "entry_points.txt").write_text("\n".join(groups))


def _lines(points: dict[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in points.items())


def _take_over(home: Home, step: int, die: DieAt | None, say: Any) -> None:
    """Open the memory with today's version, and do what errors and findings advise, as a person does.

    The process crashes at a step on the disk, or as ``die`` says, if there is one.
    """
    clock = Clock(START - 60)
    clock.install()
    disk = Disk(home.data, seed_dice("taken over"), clock)
    disk.install()
    if step and die is not None:
        die(step)
    else:
        disk.expect(("crash", step, 1) if step else None)
    with_offers(home.registry)
    for _ in range(_COMMANDS):
        advised = next(_advice(home), None)
        if advised is None:
            return
        code, told = run_command(home, command_in(advised)) if command_in(advised) else (1, "it names no command")
        if code:
            say("problem", f"after the update: the advice {advised!r} has failed: {told[-300:]}")
            return
    say("problem", f"after the update: after {_COMMANDS} commands it advises {advised!r}")


def _advice(home: Home) -> Iterator[str]:
    """Yield what is advised against what is wrong."""
    try:
        with home.open() as memory:
            findings = [each for each in memory.doctor().findings if each.severity == "error"]
    except KlawError as error:
        yield error.hint or f"nothing, about: {error}"
    else:
        yield from (each.hint or f"nothing, about: {each.what}" for each in findings)
