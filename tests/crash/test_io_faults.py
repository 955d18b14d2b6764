"""Calls fail: the caller is told which error it is, nothing acknowledged is lost, and the process goes on.

Every kind of call fails once, and from some moment on, until the fault is lifted. A sample by default;
``KLAW_CRASH_POINTS=all`` (``nox -s crash``) takes every call of every scene.
"""

import pytest

SCENES = ("save", "append", "index", "forget", "reindex")
KINDS = ("full", "write", "sync", "read", "open")
#: Calls of each scene and kind that fail in a default run.
SAMPLE = 1
#: A seeded bug, which must be seen.
BUG = ("index", "full", "missing-transaction")


@pytest.fixture(scope="module")
def outcomes(drive, whole):
    """Every scene with every kind of fault, once and lasting."""
    points = () if whole else ("--points", str(SAMPLE))
    runs = {
        f"{scene} {kind} {stay or 'once'}": (scene, "--fault", kind, *points, *([f"--{stay}"] if stay else []))
        for scene in SCENES
        for kind in KINDS
        for stay in ("", "sticky")
    }
    scene, kind, bug = BUG
    return drive({**runs, bug: (scene, "--fault", kind, "--points", "20", "--bug", bug)})


@pytest.mark.parametrize("stay", ["once", "sticky"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scene", SCENES)
def test_a_call_that_fails_costs_nothing_that_was_acknowledged(outcomes, scene, kind, stay):
    outcome = outcomes[f"{scene} {kind} {stay}"]()
    assert outcome["run"] > 0
    assert outcome["failures"] == []


def test_a_defect_is_seen(outcomes):
    problems = [problem for failure in outcomes[BUG[2]]()["failures"] for problem in failure["problems"]]
    assert any("keys, the store" in problem for problem in problems), problems
