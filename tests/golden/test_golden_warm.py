"""A search that the warm helper runs prints what the same search prints in a process of its own: every golden case."""

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))
from cases import COMMANDS
from world import made, masked

pytestmark = [pytest.mark.needs("klaw-serve"), pytest.mark.skipif(sys.platform == "win32", reason="no Unix sockets")]
_PATIENCE = 300  # seconds; nothing is measured by it
#: Cases that have no expected file: wrong options, empty words, standard input.
_MORE = ["search", "search ''", "search a --limit 0", "search -- -x", "search -", "search harbour -v", "search --help"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with made(tmp_path_factory.mktemp("golden")) as world:
        world.renew()
        yield world


def _run(world, call):
    """Run ``klaw CALL`` in a process, with an embedder that every process has."""
    return subprocess.run(
        [sys.executable, "-m", "klaw_core", *shlex.split(call)],
        env={**world.environment, "PATH": "", "KLAW_EMBEDDER": "none"},
        cwd=world.home,
        input=b"harbour",
        capture_output=True,
        check=False,
        timeout=_PATIENCE,
    )


def test_every_golden_search_is_answered_alike(world):
    from klaw_serve.warm.state import HelperFiles

    calls = [*(call for call in COMMANDS["search"] if call.startswith("search")), *_MORE]
    assert len(calls) > len(_MORE) + 9
    cold = {call: _run(world, call) for call in calls}
    with (world.home / "config" / "klaw" / "config.toml").open("a") as file:
        file.write("\n[extensions.warm]\nenabled = true\n")
    files = HelperFiles(world.home / "data" / "klaw")
    with _helper(world):
        for call in calls:
            os.utime(files.state, (0, 0))
            warm = _run(world, call)
            assert files.last_search() > 0, call
            assert _seen(warm, world) == _seen(cold[call], world), call
    assert {run.returncode for run in cold.values()} == {0, 1, 2}


def _seen(run, world):
    """Return what a run printed; the last digits of a score that depends on the time are masked, as in the files."""
    printed = (run.stdout, run.stderr)
    if b'"score"' in run.stdout:
        printed = tuple(masked(text.decode(), world) for text in printed)
    return run.returncode, *printed


@contextmanager
def _helper(world):
    process = subprocess.Popen(
        [sys.executable, "-m", "klaw_core", "serve", "warm"],
        env={**world.environment, "PATH": "", "KLAW_EMBEDDER": "none"},
        cwd=world.home,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    try:
        line = process.stderr.readline()
        assert line.startswith(b"klaw: the warm helper answers"), line + process.stderr.read()
        yield
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(_PATIENCE)
        process.stderr.close()
