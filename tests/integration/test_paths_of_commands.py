"""A path on a command line that cannot be used is an error on one line, and nothing but a file is replaced.

The paths are read from the commands, so a new one needs a line here.
"""

from __future__ import annotations

import json
import os
import socket

import click
import pytest
from click.testing import CliRunner
from command_lines import commands, of_core, of_plugins

from klaw_core.cli.program import cli

#: A command line for each path that a command takes; PLACE is the path.
LINES = {
    "export FILE": "export PLACE",
    "import FILE": "import PLACE",
    "config trust DIRECTORY": "config trust PLACE",
    "core import FILE": "core import PLACE",
    "demo --keep": "demo --keep PLACE",
    "eval DATASETS": "eval PLACE",
    "eval --questions": "eval --questions PLACE",
    "eval --bilingual": "eval questions.jsonl --bilingual PLACE",
    "eval --plot": "eval --questions questions.jsonl --plot PLACE",
    "eval --keep": "eval locomo.json --keep PLACE",
    "eval facts DATASETS": "eval facts PLACE",
    "eval facts --keep": "eval facts locomo.json --keep PLACE",
    "facts history --plot": "facts history --plot PLACE",
    "facts import FILES": "facts import PLACE",
    "hook pre-compact --transcript": "hook pre-compact --transcript PLACE",
    "hook stop --transcript": "hook stop --transcript PLACE",
    "models add --from": "models add mine --from PLACE",
    "models try QUESTIONS": "models try hashing PLACE",
    "serve --tls-cert": "serve --tls-cert PLACE --tls-key PLACE",
    "serve --tls-key": "serve --tls-cert questions.jsonl --tls-key PLACE",
}
#: Paths that are given as text, and those that all commands take.
OTHERS = (
    "index PLACE",
    "get PLACE",
    "restore PLACE",
    "forget --yes PLACE",
    "import --from chatgpt PLACE",
    "import --from openclaw PLACE",
    "migrate sqlite:///PLACE sqlite:///other",
    "migrate sqlite:///data sqlite:///PLACE",
    "--config PLACE status",
    "--config PLACE config set memory.fusion.k 61",
    "--data-dir PLACE status",
    "--data-dir PLACE init",
    "--data-dir PLACE save hello",
)
PLACES = {
    "a socket": "socket.svg",
    "a directory": "directory.svg",
    "below a file": "questions.jsonl/plot.svg",
    "too long": f"{'long' * 80}.svg",
    "in a missing directory": "missing/plot.svg",
    "in a directory of the kernel": "/proc/missing/plot.svg",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with a memory, and a socket: a file that cannot be opened, but can be replaced."""
    home = tmp_path_factory.mktemp("paths")
    (home / "config.toml").write_text('[memory.embedding]\ntype = "none"\n')
    (home / "notes").mkdir()
    (home / "notes" / "kiln.md").write_text("# Kiln\n\nThe kiln is hot.\n")
    (home / "questions.jsonl").write_text(json.dumps({"question": "the kiln", "path": "notes/kiln.md"}) + "\n")
    said = [{"speaker": "A", "dia_id": "D1:1", "text": "The kiln is hot."}]
    talk = {"speaker_a": "A", "speaker_b": "B", "session_1": said, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    asked = [{"question": "the kiln", "evidence": ["D1:1"], "category": 4}]
    (home / "locomo.json").write_text(json.dumps([{"sample_id": "conv-1", "conversation": talk, "qa": asked}]))
    return home


@pytest.fixture(autouse=True)
def _here(home, monkeypatch):
    monkeypatch.chdir(home)
    for name, path in {"CONFIG": "config.toml", "DATA_DIR": "data"}.items():
        monkeypatch.setenv(f"KLAW_{name}", str(home / path))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("klaw_serve.run.serve", lambda *_, **__: None)


def _place(kind):
    place = PLACES[kind]
    if kind == "a socket" and not os.path.lexists(place):
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(place)
    if kind == "a directory":
        os.makedirs(place, exist_ok=True)  # noqa: PTH103  # a name
    return place


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("line", [*LINES.values(), *OTHERS])
def test_a_path_that_cannot_be_used_is_an_error_on_one_line(line, kind, home):
    place = _place(kind)

    done = CliRunner().invoke(cli, line.replace("PLACE", place).split(), prog_name="klaw")

    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "defect in Klaw" not in done.stderr
    if done.exit_code:
        assert sum(text.startswith("klaw") for text in done.stderr.splitlines()) >= 1
    assert kind != "a socket" or (home / place).is_socket(), "it was replaced by a file"


@pytest.mark.needs("klaw-conversations")
def test_every_path_of_every_command_has_a_line():
    common = {"config_file", "data_dir"}
    found = {
        f"{name} {parameter.opts[-1] if isinstance(parameter, click.Option) else str(parameter.name).upper()}"
        for names in (of_core(), of_plugins())
        for name, command in commands(names)
        for parameter in command.params
        if isinstance(parameter.type, click.Path) and parameter.expose_value and parameter.name not in common
    }
    assert found == {*LINES}
