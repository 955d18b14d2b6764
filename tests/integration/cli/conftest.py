"""What the tests of the command line share: a home of their own, and ways to run ``klaw`` in it."""

import contextlib
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from klaw_core.cli.program import cli

Run = Callable[..., Result]
Spawn = Callable[..., subprocess.CompletedProcess[str]]
Terminal = Callable[..., tuple[int, str]]

WORDS_ONLY = """\
# words only: no model is needed
[memory.embedding]
type = "none"

[[memory.retrieval]]
type = "fts5"
"""


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty home and work in it; nothing of the real user's is read."""
    for name in [name for name in os.environ if name.startswith(("KLAW_", "_KLAW", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("NO_COLOR", raising=False)
    place = tmp_path / "home"
    work = place / "work"
    work.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place))
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(place / name.lower()))
    monkeypatch.chdir(work)
    return place


@pytest.fixture
def klaw(user_home: Path) -> Run:
    """Run ``klaw`` in this process, with a configuration that needs no model."""
    config_file(user_home).parent.mkdir(parents=True)
    config_file(user_home).write_text(WORDS_ONLY, "utf-8")
    return run


@pytest.fixture
def spawn(klaw: Run) -> Spawn:
    """Run ``klaw`` in a process of its own, in the same home."""
    assert klaw is run  # the home and its configuration are made
    return spawn_klaw


@pytest.fixture
def terminal(klaw: Run) -> Terminal:
    """Run ``klaw`` in a pseudo-terminal, in the same home."""
    assert klaw is run  # the home and its configuration are made
    return run_in_terminal


@pytest.fixture
def notes(user_home: Path) -> Path:
    """Write three notes."""
    directory = user_home / "notes"
    (directory / "sub").mkdir(parents=True)
    (directory / "auth.md").write_text(
        "# Auth\n\n## Decision\n\nWe decided to use OIDC, because tokens expire.\nNobody objected.\n", "utf-8"
    )
    (directory / "sub" / "tls.md").write_text("# TLS\n\nThe gate showed `ERR_TLS_42` at dawn.\n", "utf-8")
    (directory / "2026-02-24.md").write_text("# Tuesday\n\nBaked rye bread with buttermilk.\n", "utf-8")
    return directory


@pytest.fixture
def indexed(klaw: Run, notes: Path) -> Run:
    """Run ``klaw`` where the three notes are indexed."""
    assert klaw("index", str(notes)).exit_code == 0
    return klaw


def run(*arguments: str, stdin: str | None = None) -> Result:
    """Run the command line as ``main`` does; what it would exit with is the result's ``exit_code``."""
    return CliRunner().invoke(cli, list(arguments), input=stdin, prog_name="klaw")


def spawn_klaw(
    *arguments: str, stdin: str | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m klaw_core``; stdout and stderr are apart and no terminal."""
    return subprocess.run(
        [sys.executable, "-m", "klaw_core", *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **(environment or {})},
        check=False,
        timeout=300,
    )


def run_in_terminal(
    *arguments: str, until: str = "", then: int = 0, answer: str = "", **environment: str
) -> tuple[int, str]:
    """Run ``klaw`` in a pseudo-terminal; at ``until`` send the signal ``then``, or type ``answer``."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "klaw_core", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
        start_new_session=True,
    )
    os.close(theirs)
    output = b""
    waiting = bool(until)
    # Linux reports that nobody has the other end open any more as an error of the read.
    with process, os.fdopen(ours, "r+b", buffering=0) as terminal, contextlib.suppress(OSError):
        while part := terminal.read(65536):
            output += part
            if waiting and until.encode() in output:
                waiting = False
                process.send_signal(then) if then else terminal.write(answer.encode())
    return process.returncode, output.decode()


def config_file(user_home: Path) -> Path:
    """Return where the configuration file of this home is."""
    return user_home / "config" / "klaw" / "config.toml"
