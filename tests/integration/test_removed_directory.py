"""A command whose current directory was removed works, unless it needs that directory, and then it says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from command_lines import commands, of_core, of_plugins

from klaw_core import Memory, load_config
from klaw_core.cli.program import cli

#: Commands that serve until they are stopped, or claim the standard streams.
SERVERS = {"mcp", "serve", "watch"}
NAMES = [name for names in (of_core(), of_plugins()) for name, _ in commands(names) if name not in SERVERS]
#: Arguments that a command needs.
ARGUMENTS = {
    "search": ["kiln"],
    "save": ["The tea is hot."],
    "get": ["notes/kiln.md"],
    "index": ["ROOT/notes"],
    "export": ["ROOT/all.jsonl"],
    "context": ["where is the kiln"],
    "remember": ["Ada lives in Lyon."],
    "facts search": ["Ada"],
    "core set": ["user", "name", "Ada"],
    "core get": ["user"],
    "config set": ["memory.fusion.k", "61"],
    "config get": ["memory.fusion.k"],
    "demo": ["--keep", "ROOT/demo"],
    "eval poison": ["--limit", "1"],
    "logs": ["--chat", "telegram_1"],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("removed")
    (home / "config.toml").write_text('[memory.embedding]\ntype = "none"\n')
    (home / "notes").mkdir()
    (home / "notes" / "kiln.md").write_text("# Kiln\n\nThe kiln is hot.\n")
    with Memory.open(load_config(config_file=home / "config.toml", data_dir=home / "data")) as memory:
        memory.index(home / "notes")
    return home


@pytest.fixture
def _nowhere(home, monkeypatch):
    for name, path in {"CONFIG": "config.toml", "DATA_DIR": "data"}.items():
        monkeypatch.setenv(f"KLAW_{name}", str(home / path))
    monkeypatch.setenv("HOME", str(home))
    (home / "gone").mkdir()
    monkeypatch.chdir(home / "gone")
    (home / "gone").rmdir()


@pytest.mark.usefixtures("_nowhere")
@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_no_defect_there(name, home):
    arguments = [part.replace("ROOT", str(home)) for part in ARGUMENTS.get(name, ())]
    done = CliRunner().invoke(cli, [*name.split(), *arguments], prog_name="klaw", input="")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "defect in Klaw" not in done.stderr
    if name in {"search", "save", "get", "index", "export", "status", "context", "doctor", "list"}:
        assert done.exit_code == 0, done.stderr


@pytest.mark.usefixtures("_nowhere")
@pytest.mark.parametrize("line", ["init --here", "--data-dir data status", "export all.jsonl"])
def test_a_command_that_needs_the_directory_says_that_it_was_removed(line):
    done = CliRunner().invoke(cli, line.split(), prog_name="klaw")
    assert done.exit_code == 1
    assert "the current directory was removed" in done.stderr


@pytest.mark.parametrize("words", [["hook", "user-prompt", "--timeout", "60"], ["mcp"]])
def test_hooks_and_servers_work_there(words, home):
    asked = json.dumps({"session_id": "1", "prompt": "what about the kiln?"}) if words[0] == "hook" else ""
    (home / "gone").mkdir()
    program = "import sys; from klaw_core.cli.program import cli; cli(sys.argv[1:])"
    places = {"KLAW_CONFIG": str(home / "config.toml"), "KLAW_DATA_DIR": str(home / "data"), "HOME": str(home)}
    done = subprocess.run(
        ["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh", sys.executable, "-P", "-c", program, *words],
        input=asked,
        cwd=home,
        env={**os.environ, **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
