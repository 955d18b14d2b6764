"""Every option of every command has an effect, or is refused with an error that names it; so has every pair.

As ``test_options_of_methods.py`` does for methods: a command is run with and without each option in two equal memories,
and its output, its exit status, the files and the rows are compared. The options are read from the commands, so a new
one needs an entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import pytest
from attrs import field, frozen
from click.testing import CliRunner
from worlds import Case, World, make_template, observed, opened, problems, without_now

from klaw_core.cli.program import cli
from klaw_core.cli.settings import common_options

#: Pairs of options that are tried without ``--campaigns``.
SAMPLE = 30
CONFIGURATION = '[memory.embedding]\ntype = "words"\n'
USAGE = 2


@frozen
class Command(Case):
    """A command line. ``others`` has options with their values; more forms of one are apart by a space."""

    line: str
    others: Mapping[str, Sequence[str]]
    moot: Mapping[tuple[str, str], str] = field(factory=dict)

    def __str__(self) -> str:
        return self.line

    def run(self, world: World, options: Mapping[str, Any]) -> dict[str, Any] | str:
        arguments = [part.replace("ROOT", str(world.root)) for part in self.line.split()]
        for name, values in options.items():
            arguments += [name.split()[0], *(value.replace("ROOT", str(world.root)) for value in values)]
        CURRENT[:] = [world]
        opened.clear()
        done = CliRunner().invoke(cli, arguments, prog_name="klaw")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        if done.exit_code == USAGE or (done.exit_code and not done.stdout):
            return done.stderr
        with world.open() as memory:
            shown = (done.exit_code, _without_durations(done.stdout), _without_durations(done.stderr))
            return observed(world, memory, shown)

    def names(self, option: str) -> tuple[str, ...]:
        return option.split(maxsplit=1)[0], *SYNONYMS.get(option, "").splitlines()

    def pairs(self) -> list[tuple[Case, str, str]]:
        """Return all pairs of different options; of one that is given twice, the last counts."""
        return [pair for pair in super().pairs() if pair[1].split()[0] != pair[2].split()[0]]


#: How a refusal names an option, if not by its own name.
SYNONYMS = {"--name": "is the workspace", "--collection": "of the collection", "--from": "is not JSON"}


#: The memory of the command that is running.
CURRENT: list[World] = []


def _without_durations(text: str) -> str:
    return without_now(re.sub(r"[0-9.]+ ?m?s\b|\"seconds\": [0-9.]+", "", text))


_FORMATS = {"--format json": ["json"], "--format md": ["md"], "--format csv": ["csv"], "--format files": ["files"]}
_LISTED = {**_FORMATS, "--json": []}
_OF_DIRECTORY = {
    "--name": ["renamed"],
    "--collection": ["charts"],
    "--version": ["2"],
    "--include": ["later.md"],
    "--exclude": ["draft*"],
}
_OF_RUN = {"--force": [], "--no-embed": [], "--verify": [], "--json": []}

_SAME = {("--format json", "--json"): "they mean the same", ("--json", "--format json"): "they mean the same"}
_READ = dict.fromkeys([("--verify", other) for other in ("--force", "--version", "--include")], "every file is read")
_LAST = {("--since", "--limit"): "both leave the last"}
_WHOLE = dict.fromkeys([("--full", form) for form in ("--json", "--format json", "--format csv")], "chunks are whole")
_NARROWED = dict.fromkeys(
    [
        *((name, "--top-k") for name in ("--min-relevance", "--min-score", "--until", "--full")),
        *((name, "--min-relevance") for name in ("--min-score", "--until", "--full")),
        *((name, "--min-score") for name in ("--min-relevance", "--until", "--full")),
        *((name, "--collection") for name in ("--min-relevance", "--min-score", "--until", "--full")),
        *(("--path", other) for other in ("--where", "--since")),
        ("--mode", "--format files"),
    ],
    "both leave the same results, which are short",
)

COMMANDS = [
    Command("init", {"--here": [], "--json": []}),
    Command("index ROOT/notes", {**_OF_DIRECTORY, **_OF_RUN}, _READ),
    Command("index ROOT/notes/note1.md", {**_OF_DIRECTORY, **_OF_RUN}),
    Command("index", {**_OF_DIRECTORY, **_OF_RUN}, _READ),
    Command("embed", {"--batch-size": ["1"], "--limit": ["2"], "--json": []}),
    Command("reindex", {"--embedding": ["other"], "--json": []}),
    Command(
        "search the harbour chart",
        {
            "--top-k": ["1"],
            "--mode": ["vector"],
            "--min-relevance": ["0.9"],
            "--min-score": ["0.018"],
            "--collection": ["charts"],
            "--source": ["manual"],
            "--path": ["notes/"],
            "--chat": ["telegram_1"],
            "--since": ["2026-02-25"],
            "--until": ["2026-02-25"],
            "--where": ["kind=plan"],
            "--explain": [],
            "--full": [],
            **_LISTED,
        },
        {**_SAME, **_WHOLE, **_NARROWED},
    ),
    Command("search note1 --top-k 3", {"--per-document": ["1"], "--json": []}),
    Command(
        "list",
        {
            "--saved": [],
            "--chats": [],
            "--workspaces": [],
            "--collection": ["charts"],
            "--limit": ["1"],
            "--after": ["notes/note1.md"],
            **_LISTED,
        },
        {**_SAME, ("--limit", "--workspaces"): "there is one"},
    ),
    Command(
        "recent",
        {"--limit": ["2"], "--since": ["2026-02-27"], "--collection": ["charts"], **_LISTED},
        {**_SAME, ("--since", "--limit"): "both leave the newest"},
    ),
    Command("save news", {"--source": ["agent"], "--chat": ["telegram_1"], "--date": ["2026-02-24"], "--json": []}),
    Command("logs --chat telegram_1", {"--since": ["2026-02-25"], "--limit": ["1"], "--json": []}, _LAST),
    Command("forget notes/note1.md --yes", {"--json": []}),
    Command("workspace exclude notes note3.md", {"--remove": [], "--json": []}),
    Command("workspace list", _LISTED, _SAME),
    Command("doctor", {"--fix": [], "--json": []}),
    Command("import ROOT/export.jsonl", {"--from": ["chatgpt"], "--dry-run": [], "--workspaces": [], "--json": []}),
]

#: Options that these tests do not try, and why.
ELSEWHERE = {
    "forget --yes": "without it, the command asks on a terminal",
    "workspace remove --yes": "the same",
    "logs --follow": "does not end",
    "demo --keep": "makes a memory of its own",
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    yield from make_template(tmp_path_factory.mktemp("options"))


@pytest.fixture(autouse=True)
def _environment(template, monkeypatch):
    """Use the memory and its embedders in each command."""
    from klaw_core.cli import settings

    root = template.parent
    (root / "config.toml").write_text(CONFIGURATION)
    monkeypatch.setenv("KLAW_CONFIG", str(root / "config.toml"))
    monkeypatch.setenv("KLAW_DATA_DIR", str(root / "data"))
    monkeypatch.chdir(root)
    installed = settings._registry
    monkeypatch.setattr(settings, "_registry", lambda config: installed(config).with_live(CURRENT[-1].components))


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_option_alone_has_an_effect_or_is_refused(command, template):
    assert [problem for option in command.others if (problem := command.check(template, option))] == []


def test_every_option_next_to_another_has_an_effect_or_is_refused(template, cases):
    assert problems([pair for command in COMMANDS for pair in command.pairs()], template, cases, SAMPLE) == []


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of the core and their names."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    names = cli._modules if command is cli else command.list_commands(context)
    for each in names:
        found = command.get_command(context, each)
        assert found is not None
        yield from commands(found, f"{name} {each}".strip())


def test_every_option_of_every_command_is_listed():
    common = {parameter.name for parameter in common_options(click.command()(lambda: None)).params}
    tried = {(str(command), option.split()[0]) for command in COMMANDS for option in command.others}
    missing = [
        f"{name} {parameter.opts[-1]}"
        for name, command in commands(cli)
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name not in common
        if not any(line.startswith(name) and option in parameter.opts for line, option in tried)
    ]
    assert [option for option in missing if option not in ELSEWHERE] == ["logs --chat"]
