"""A search that the warm helper runs prints what the same search prints in a process of its own: every golden case."""

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
_UNUSED = 99
# A client that gives the helper as much time as it needs, and cannot answer by itself.
_CLIENT = f"""
import sys
from klaw_core.cli.warm import run_in_helper
status = run_in_helper(sys.argv[1:], {_PATIENCE})
sys.exit({_UNUSED} if status is None else status)
"""
#: Cases that have no expected file: wrong options, empty words, standard input.
_MORE = ["search", "search ''", "search a --limit 0", "search -- -x", "search -", "search harbour -v", "search --help"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with made(tmp_path_factory.mktemp("golden")) as world:
        world.renew()
        yield world


def _run(world, call, *program):
    """Run ``klaw CALL`` in a process, with an embedder that every process has."""
    return subprocess.run(
        [sys.executable, *(program or ("-m", "klaw_core")), *shlex.split(call)],
        env={**world.environment, "PATH": "", "KLAW_EMBEDDER": "none"},
        cwd=world.home,
        input=b"harbour",
        capture_output=True,
        check=False,
        timeout=_PATIENCE,
    )


def test_every_golden_search_is_answered_alike(world):
    calls = [*(call for call in COMMANDS["search"] if call.startswith("search")), *_MORE]
    assert len(calls) > len(_MORE) + 9
    cold = {call: _run(world, call) for call in calls}
    with (world.home / "config" / "klaw" / "config.toml").open("a") as file:
        file.write("\n[extensions.warm]\nenabled = true\n")
    assert _run(world, calls[0], "-c", _CLIENT).returncode == _UNUSED, "without a helper, this client answers nothing"
    with _helper(world):
        for call in calls:
            warm = _run(world, call, "-c", _CLIENT)
            assert warm.returncode != _UNUSED, call
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
