"""Command lines with options, for tests that run them with and without each option and compare what can be observed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
from attrs import field, frozen
from click.testing import CliRunner
from worlds import Case, World, observed, opened, without_now

from klaw_core.cli import settings
from klaw_core.cli.extensions import installed
from klaw_core.cli.program import cli

CONFIGURATION = '[memory.embedding]\ntype = "words"\n'
USAGE = 2
#: How a refusal names an option, if not by its own name.
SYNONYMS = {
    "--name": "is the workspace",
    "--collection": "of the collection",
    "--from": "is not JSON",
    "--format": "expected a BEIR folder",
    "--half": "in the half",
}
#: The memory of the command that is running.
CURRENT: list[World] = []
FACT = [""]
#: Commands that the tree of commands does not show, and the modules that have them.
HIDDEN = {"eval facts": "klaw_eval.facts_command", "eval poison": "klaw_eval.poison_command"}


@frozen
class Command(Case):
    """A command line. ``others`` has options with their values; more forms of one are apart by a space.

    ``ROOT`` stands for the directory of the memory, in which the command has the current directory ``here``; ``FACT``
    for the id of a fact.
    """

    line: str
    others: Mapping[str, Sequence[str]]
    moot: Mapping[tuple[str, str], str] = field(factory=dict)
    stdin: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        return self.line

    def run(self, world: World, options: Mapping[str, Any]) -> dict[str, Any] | str:
        given = [*self.line.split(), *(part for name, values in options.items() for part in (name.split()[0], *values))]
        arguments = [part.replace("ROOT", str(world.root)).replace("FACT", FACT[-1]) for part in given]
        CURRENT[:] = [world]
        opened.clear()
        done = CliRunner().invoke(cli, arguments, input=self.stdin.replace("ROOT", str(world.root)), prog_name="klaw")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "defect in Klaw" not in done.stderr, (arguments, done.stderr)
        written = _written(world.root / "here")
        if done.exit_code == USAGE or (done.exit_code and not done.stdout):
            return done.stderr
        with world.open() as memory:
            shown = (done.exit_code, _without_durations(done.stdout), _without_durations(done.stderr))
            return {**observed(world, memory, shown), "written": written}

    def names(self, option: str) -> tuple[str, ...]:
        return option.split(maxsplit=1)[0], *SYNONYMS.get(option, "").splitlines()

    def pairs(self) -> list[tuple[Case, str, str]]:
        """Return all pairs of different options; of one that is given twice, the last counts."""
        return [pair for pair in super().pairs() if pair[1].split()[0] != pair[2].split()[0]]


def _without_durations(text: str) -> str:
    return without_now(re.sub(r"[0-9.]+ ?m?s\b|\"seconds\": [0-9.]+", "", text))


def _written(here: Path) -> dict[str, str]:
    """Return what a command wrote in its current directory, which is empty afterwards."""
    files = (path for path in sorted(here.rglob("*")) if path.is_file())
    found = {str(path.relative_to(here)): without_now(path.read_bytes().decode(errors="replace")) for path in files}
    for path in here.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return found


def prepare(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Let commands use the memory in this directory, and its embedders."""
    (root / "config.toml").write_text(CONFIGURATION)
    (root / "here").mkdir(exist_ok=True)
    patch.setenv("KLAW_CONFIG", str(root / "config.toml"))
    patch.setenv("KLAW_DATA_DIR", str(root / "data"))
    patch.setenv("HOME", str(root / "here" / "home"))
    patch.chdir(root / "here")
    registry = settings._registry
    patch.setattr(settings, "_registry", lambda config: registry(config).with_live(CURRENT[-1].components))


def commands(names: Iterable[str]) -> Iterator[tuple[str, click.Command]]:
    """Yield each of these commands, and their subcommands, with its name."""
    for name in names:
        found = cli.get_command(click.Context(cli), name)
        assert found is not None
        yield from _tree(found, name)
    yield from (
        (name, pytest.importorskip(module).command) for name, module in HIDDEN.items() if name.split()[0] in names
    )


def _tree(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    if command.invoke_without_command:
        yield name, command
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from _tree(found, f"{name} {each}")


def not_listed(listed: Sequence[Command], names: Iterable[str]) -> list[str]:
    """Return the options of commands that no case tries, but for those that all commands have."""
    common = {parameter.name for parameter in settings.common_options(click.command()(lambda: None)).params}
    tried = {(str(command), option.split()[0]) for command in listed for option in command.others}
    return [
        f"{name} {parameter.opts[-1]}"
        for name, command in commands(names)
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in common
        if not any(line.startswith(name) and option in parameter.opts for line, option in tried)
    ]


def of_core() -> list[str]:
    """Return the commands of the core, and of the default distributions that are installed."""
    return [
        name for name, (module, _) in cli._modules.items() if "." not in module or find_spec(module.partition(".")[0])
    ]


def of_plugins() -> list[str]:
    """Return the commands of all installed plugins."""
    return sorted(installed())
