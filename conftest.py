"""Runs the code in the README and the documentation: ``python`` blocks, and ``console`` blocks line by line.

Each page starts in a directory of its own with the sample notes in ``notes/``, a data directory and a
configuration that nothing else uses. A command must succeed, unless the page shows its error; lines shown below it must
occur in its output, in order, ``…`` standing for anything.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# No deadlines: on a busy machine they fail, and say nothing about what is tested.
# A law has 20 examples in the tests, unless it says another number: the same ones on every machine, so that a commit is
# red for all or for none. `properties` draws new ones in every run, as many as there is time for.
settings.register_profile("untimed", max_examples=20, deadline=None, derandomize=True)
settings.register_profile("few", max_examples=10, deadline=None, derandomize=True)
settings.register_profile("fresh", max_examples=300, deadline=None)
settings.register_profile("thorough", max_examples=2_000, deadline=None)
settings.load_profile("untimed")

# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

try:
    from sybil import Example, Sybil
    from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser
except ModuleNotFoundError:  # the documentation has a session of its own; the others need no Sybil
    Sybil = None

ROOT = Path(__file__).parent

sys.path.insert(0, str(ROOT / "tests" / "plugins"))
pytest_plugins = ["executed", "campaigns", "features", "installed", "order", "preloaded", "collector", "promises"]

#: A line of a page that shows an error; its command may fail.
_ERROR = re.compile(r"klaw[a-z ]*: |error |\d+ errors?$")

_PAGES_SETUP = ("KLAW_DATA_DIR", "KLAW_CONFIG", "KLAW_EMBEDDER", "KLAW_DISABLE_PLUGINS", "XDG_CONFIG_HOME")


def _set_up(namespace: dict[str, Any]) -> None:
    home = Path(tempfile.mkdtemp(prefix="klaw-docs-"))
    namespace["_before"] = (Path.cwd(), dict(os.environ), home)
    shutil.copytree(ROOT / "klaw_core" / "demo" / "notes", home / "notes")
    for name in _PAGES_SETUP:
        os.environ.pop(name, None)
    os.environ.update(
        KLAW_DATA_DIR=str(home / "data"), XDG_CONFIG_HOME=str(home / "config"), NO_COLOR="1", KLAW_OFFLINE="1"
    )
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.chdir(home)


def _tear_down(namespace: dict[str, Any]) -> None:
    directory, environment, home = namespace["_before"]
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    shutil.rmtree(home)


def _run_console(example: "Example") -> str | None:
    """Run each ``$ command`` and compare what is shown below it; return what went wrong."""
    for command, shown in _commands(str(example.parsed)):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)  # noqa: S603, S607  # our own pages
        output = done.stdout + done.stderr
        if done.returncode != 0 and not any(_ERROR.match(line) for line in shown):
            return f"$ {command}\nexited {done.returncode}:\n{output}"
        pattern = ".*?".join(re.escape(part) for line in shown for part in [*line.strip().split("…"), ""])
        if not re.search(pattern, output, re.DOTALL):
            return f"$ {command}\nshown:\n" + "\n".join(shown) + f"\nprinted:\n{output}"
    return None


def _commands(block: str) -> Iterator[tuple[str, list[str]]]:
    command, shown = "", []
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        else:
            shown.append(line)
    if command:
        yield command, shown


if Sybil is not None:
    pytest_collect_file = Sybil(
        parsers=[PythonCodeBlockParser(), CodeBlockParser("console", _run_console), SkipParser()],
        patterns=["README.md", "docs/**/*.md"],
        setup=_set_up,
        teardown=_tear_down,
    ).pytest()


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give each test a directory of its own by a counter: ``mktemp`` looks through all that are there, each time."""
    root = tmp_path_factory.mktemp("homes")
    return (root / str(number) for number in count())


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch, _homes: Iterator[Path]) -> None:
    """Keep tests away from the configuration, data and caches of whoever runs them."""
    for name in list(os.environ):
        if name.startswith("KLAW_") and name != "KLAW_TEST_NOTES":
            monkeypatch.delenv(name)
    home = next(_homes)
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(home))
