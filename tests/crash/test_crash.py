"""Klaw killed inside its n-th write: nothing acknowledged is lost, nothing forgotten is back, and the next run goes on.

A sample of the points by default; ``KLAW_CRASH_POINTS=all`` (``nox -s crash``) takes every one.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("driver.py")

#: Points of each scene in a default run, besides the first of each kind of call; together over a hundred.
SAMPLE = {"first-save": 8, "save": 12, "append": 12, "index": 12, "forget": 16, "reindex": 12, "move": 8}
#: Each seeded bug with the scene that must show it, and what is said of it.
SEEDED = {
    "acknowledge-before-commit": ("save", "is not in saved.jsonl"),
    "missing-transaction": ("index", "keys, the store"),
    "two-transactions": ("save", "keys, the store"),
    "forget-without-journal": ("forget", "which was forgotten, is in saved.jsonl"),
    "forget-without-purge": ("forget", "which was forgotten, is in klaw.db-wal"),
    "swap-in-pieces": ("reindex", "as found: saved/"),
}
SEEDED_POINTS = 10


def play(directory, scene, points, bug=None):
    """Run the driver; return what it printed."""
    directory.mkdir()
    command = [sys.executable, str(DRIVER), scene, str(directory)]
    command += ["--points", str(points)] if points else []
    command += ["--bug", bug] if bug else []
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # no threads: the driver forks
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Every scene, and every bug in its scene, each in a process of its own, two at a time."""
    root = tmp_path_factory.mktemp("crash")
    whole = os.environ.get("KLAW_CRASH_POINTS") == "all"
    runs = {scene: (scene, None if whole else points) for scene, points in SAMPLE.items()}
    runs |= {bug: (scene, SEEDED_POINTS, bug) for bug, (scene, _) in SEEDED.items()}
    with ThreadPoolExecutor(2) as pool:
        futures = {name: pool.submit(partial(play, root / name), *run) for name, run in runs.items()}
    return {name: future.result for name, future in futures.items()}


@pytest.mark.parametrize("scene", SAMPLE)
def test_whatever_was_acknowledged_is_there_after_a_crash(outcomes, scene):
    outcome = outcomes[scene]()
    assert outcome["run"] >= SAMPLE[scene]
    assert outcome["failures"] == []


@pytest.mark.parametrize("bug", SEEDED)
def test_a_defect_is_seen(outcomes, bug):
    crashes = [failure for failure in outcomes[bug]()["failures"] if failure["point"] is not None]
    problems = [problem for failure in crashes for problem in failure["problems"]]
    assert any(SEEDED[bug][1] in problem for problem in problems), problems


def test_over_a_hundred_points_are_tried(outcomes):
    assert sum(outcomes[scene]()["run"] for scene in SAMPLE) >= 100
