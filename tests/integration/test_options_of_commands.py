"""Every option of every command has an effect, or is refused with an error that names it; so has every pair.

As ``test_options_of_methods.py`` does for methods: a command is run with and without each option in two equal memories,
and its output, its exit status, the files and the rows are compared. The options are read from the commands, so a new
one needs an entry.
"""

from __future__ import annotations

import pytest
from command_lines import Command, not_listed, of_core, prepare
from worlds import make_template, problems

#: Pairs of options that are tried without ``--campaigns``.
SAMPLE = 12

_FORMATS = {"--format json": ["json"], "--format md": ["md"], "--format csv": ["csv"], "--format files": ["files"]}
_LISTED = {**_FORMATS, "--json": []}
_OF_DIRECTORY = {
    "--name": ["renamed"],
    "--collection": ["charts"],
    "--version": ["2"],
    "--include": ["later.md"],
    "--exclude": ["draft*"],
    "--trust": ["foreign"],
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
    Command("plugins new klaw-lines --kind chunker", {"--kind": ["source"], "--json": []}),
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
    Command("search boat --top-k 8", {"--per-document": ["1"], "--json": []}),
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
    Command(
        "save news",
        {
            "--source": ["agent"],
            "--chat": ["telegram_1"],
            "--date": ["2026-02-24"],
            "--tag": ["home"],
            "--supersedes": ["saved/2026-02-25"],
            "--json": [],
        },
    ),
    Command("logs --chat telegram_1", {"--since": ["2026-02-25"], "--limit": ["1"], "--json": []}, _LAST),
    Command("forget notes/note1.md --yes", {"--json": []}),
    Command("workspace exclude notes note3.md", {"--remove": [], "--json": []}),
    Command("workspace describe notes the harbour", {"--remove": [], "--json": []}),
    Command("workspace list", _LISTED, _SAME),
    Command("doctor", {"--fix": [], "--json": []}),
    Command(
        "import ROOT/export.jsonl",
        {"--from": ["chatgpt"], "--dry-run": [], "--workspaces": [], "--trust": ["owner"], "--json": []},
    ),
]

#: Options that these tests do not try, and why.
ELSEWHERE = {
    "export --format": "writes a directory in place of a file; tests/test_okf.py of klaw-notes",
    "save --edit": "opens an editor; tests/test_versions.py of klaw-memories",
    "init --yes": "concerns the USER.md of the current directory; tests of klaw-memories",
    "forget --yes": "without it, the command asks on a terminal",
    "workspace remove --yes": "the same",
    "logs --follow": "does not end",
    **{f"ask --{name}": "needs a language model; tests of klaw-tools" for name in ("path", "since", "until", "trust")},
    "ask --json": "the same",
    "open --print": "needs an editor without it; tests/integration/cli/test_cli_get_and_open.py",
    "demo --keep": "makes a memory of its own",
    **{
        f"context --{name}": "with the commands of klaw-facts, whose facts it asks for"
        for name in ("chat", "budget", "as-of", "known-at", "seen", "trust", "explain")
    },
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    yield from make_template(tmp_path_factory.mktemp("options"))


@pytest.fixture(autouse=True)
def _environment(template, monkeypatch):
    prepare(template.parent, monkeypatch)


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_option_alone_has_an_effect_or_is_refused(command, template):
    assert [problem for option in command.others if (problem := command.check(template, option))] == []


def test_every_option_next_to_another_has_an_effect_or_is_refused(template, cases):
    assert problems([pair for command in COMMANDS for pair in command.pairs()], template, cases, SAMPLE) == []


def test_every_option_of_every_command_is_listed():
    assert [option for option in not_listed(COMMANDS, of_core()) if option not in ELSEWHERE] == ["logs --chat"]
