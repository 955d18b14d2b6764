"""A name on a command line that nothing has is refused, or a line says so; a number at its lowest has an effect.

The options are read from the commands, so a new one needs a line here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner
from command_lines import commands, of_core, of_plugins

from klaw_core import Memory, Message, load_config
from klaw_core.cli.program import cli

#: A command line for each option that names something; ``nope`` is the name that nothing has.
LINES = {
    "compact --chat": "compact --chat telegram_nope",
    "context --chat": "context --chat telegram_nope where is the kiln",
    "context --seen": "context --seen nope where is the kiln",
    "eval --part": "eval beir --part nope",
    "facts extract --chat": "facts extract --chat telegram_nope",
    "facts history --subject": "facts history --subject nope",
    "facts list --category": "facts list --category nope",
    "facts list --project": "facts list --project nope",
    "facts list --slot": "facts list --slot nope",
    "facts list --subject": "facts list --subject nope",
    "facts list --where": "facts list --where tags=nope",
    "facts search --category": "facts search --category nope kiln",
    "facts search --project": "facts search --project nope kiln",
    "facts search --slot": "facts search --slot nope kiln",
    "facts search --subject": "facts search --subject nope kiln",
    "facts search --where": "facts search --where tags=nope kiln",
    "import --from": "import --from nope records.jsonl",
    "index --include": "index notes --include nope",
    "list --collection": "list --collection nope",
    "logs --chat": "logs --chat telegram_nope",
    "mcp --collection": "mcp --collection nope",
    "mcp --tool": "mcp --tool nope",
    "mcp install --collection": "mcp install claude-code --print --collection nope",
    "recent --collection": "recent --collection nope",
    "reindex --embedding": "reindex --embedding nope",
    "save --supersedes": "save --supersedes nope text",
    "search --chat": "search --chat telegram_nope kiln",
    "search --collection": "search --collection nope kiln",
    "search --path": "search --path nope kiln",
    "search --source": "search --source nope kiln",
    "search --where": "search --where tags=nope kiln",
}
#: Options whose value is no name of something that must exist.
NEW = {
    "ask --path": "without a language model nothing is searched",
    "facts edit --category": "of a fact",
    "facts edit --slot": "of a fact",
    "facts edit --subject": "of a fact",
    "facts edit --tag": "of a fact",
    "facts end --reason": "a text",
    "facts retract --reason": "a text",
    "index --collection": "a directory may begin a collection",
    "index --exclude": "files that may come",
    "index --name": "a new workspace",
    "index --version": "a text",
    "list --after": "a place in the order",
    "models add --document-prefix": "a text",
    "models add --license": "a text",
    "models add --query-prefix": "a text",
    "remember --category": "of a fact",
    "remember --project": "a project may begin so",
    "remember --slot": "of a fact",
    "remember --subject": "of a fact",
    "remember --tag": "of a fact",
    "save --chat": "a chat may begin so",
    "save --source": "a new label",
    "save --tag": "of a memory",
    "serve --allow-host": "a name of this machine",
    "serve --oauth": "a name of this machine",
    "serve --host": "an address of this machine",
    "serve token --agent": "an agent begins with its token",
    "eval --fail-under": "a metric and a number",
}
#: Numbers below 2 that an option takes, and what they mean.
LOWEST = {
    "compact --keep": {0: "no message stays out of the summary"},
    "logs --limit": {0: "only new messages, with --follow"},
    "search --min-relevance": {0: "every result"},
    "hook user-prompt --min-relevance": {0: "every result"},
    "facts edit --importance": {0: "none"},
    "models try --chunks": {0: "all chunks"},
    "remember --importance": {0: "none"},
    "search --min-score": {-1: "scores have any sign", 0: "scores have any sign"},
    "serve --port": {0: "any free port"},
}


def options(*kinds):
    """Return the options whose values are of one of these kinds, by ``command --option``."""
    return {
        f"{name} {parameter.opts[-1]}": parameter
        for names in (of_core(), of_plugins())
        for name, command in commands(names)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.is_flag and isinstance(parameter.type, kinds)
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("names")
    (home / "config.toml").write_text('[memory.embedding]\ntype = "none"\n')
    (home / "notes").mkdir()
    (home / "notes" / "kiln.md").write_text("# Kiln\n\nThe kiln is in the yard.\n")
    (home / "records.jsonl").write_text("")
    for name, rows in {
        "corpus": [{"_id": "1", "text": "The kiln is hot."}],
        "queries": [{"_id": "1", "text": "the kiln"}],
    }.items():
        (home / "beir").mkdir(exist_ok=True)
        (home / "beir" / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (home / "beir" / "qrels").mkdir()
    (home / "beir" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    with Memory.open(load_config(config_file=home / "config.toml", data_dir=home / "data")) as memory:
        memory.index(home / "notes")
        meta = {"channel": "telegram", "chat_id": "1"}
        memory.conversations.append(Message("user", "The kiln is hot.", datetime(2026, 2, 24, tzinfo=UTC), meta=meta))
    return home


@pytest.fixture
def klaw(home, monkeypatch):
    monkeypatch.chdir(home)
    for name, path in {"CONFIG": "config.toml", "DATA_DIR": "data"}.items():
        monkeypatch.setenv(f"KLAW_{name}", str(home / path))
    monkeypatch.setenv("HOME", str(home))

    def run(line):
        done = CliRunner().invoke(cli, line.split(), prog_name="klaw", input="")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "defect in Klaw" not in done.stderr
        return done

    assert run("remember Ada lives near the kiln --slot home=yard").exit_code == 0
    return run


@pytest.mark.parametrize("line", [line for line in LINES.values() if not line.startswith("mcp --")])
def test_a_name_that_nothing_has_is_refused_or_named(line, klaw):
    assert "nope" in klaw(line).stderr, "the name is ignored without a word"


@pytest.mark.needs("klaw-facts")
def test_every_option_that_names_something_has_a_line():
    times = {"WHEN"}
    found = {line for line, option in options(click.types.StringParamType).items() if option.metavar not in times}
    assert found == {*LINES, *NEW}


def test_every_number_that_means_nothing_is_refused():
    for line, option in options(click.types.IntParamType, click.types.FloatParamType).items():
        lowest = getattr(option.type, "min", None)
        for value in (-1, 0):
            if value in LOWEST.get(line, {}) or (lowest is not None and value < lowest):
                continue
            with pytest.raises(click.UsageError):
                option.type.convert(str(value), option, None)


def test_a_number_at_its_lowest_has_an_effect_or_is_refused(klaw):
    assert "--budget" in klaw("context --budget 0 where is the kiln").stderr
    assert "nothing in memory fits the message and 1 token" in klaw("context --budget 1 where is the kiln").stderr
    assert "--limit 0 prints nothing without --follow" in klaw("logs --chat telegram_1 --limit 0").stderr
    assert "1 message summarised, 0 kept" in klaw("compact --chat telegram_1 --keep 0").stdout
    assert klaw("search --min-relevance 0 kiln").stdout


@pytest.mark.parametrize("option", ["--tool", "--collection"])
def test_a_server_without_requests_says_that_a_name_is_unknown(option, home, klaw):
    pytest.importorskip("klaw_mcp")
    started = [sys.executable, "-m", "klaw_core", "mcp", option, "nope"]
    done = subprocess.run(started, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert f"unknown {option.removeprefix('--')} 'nope'" in done.stderr
    assert klaw


@pytest.mark.parametrize("target", ["data", "data/klaw.db", "link", "link/klaw.db", "link.db"])
def test_a_memory_is_not_migrated_to_itself(target, home, klaw):
    pytest.importorskip("klaw_store_postgres")
    for name, place in {"link": "data", "link.db": "data/klaw.db"}.items():
        if not (home / name).is_symlink():
            (home / name).symlink_to(home / place)
    done = klaw(f"migrate sqlite:///{home}/data/klaw.db sqlite:///{home}/{target}")
    assert done.exit_code == 1
    assert "the source and the target are the same memory" in done.stderr


def test_the_chat_of_a_message_is_the_name_of_a_chat(klaw):
    assert "is not a chat name" in klaw("context --chat nope where is the kiln").stderr
    assert klaw("context --chat telegram_1 where is the kiln").stderr == ""
