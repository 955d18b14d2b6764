"""Calls fail: the caller is told which error it is, nothing acknowledged is lost, and the process goes on.

Every kind of call fails once, and from some moment on, until the fault is lifted. A call of every third kind and scene
by default; ``--campaigns`` (``nox -s campaigns``) takes every call of every scene.
"""

import pytest

SCENES = ("save", "append", "index", "forget", "reindex")
KINDS = ("full", "write", "sync", "read", "open")
#: Calls of each scene and kind that fail in a default run.
SAMPLE = 1
#: A seeded bug, which must be seen, and what is said of it.
BUG, SAID = ("index", "full", "missing-transaction"), "keys, the store"


@pytest.mark.needs("klaw-conversations")
@pytest.mark.one_of(3)
@pytest.mark.parametrize("stay", ["once", "sticky"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scene", SCENES)
def test_a_call_that_fails_costs_nothing_that_was_acknowledged(drive, cases, scene, kind, stay):
    points = () if cases.whole else ("--points", str(SAMPLE))
    outcome = drive(scene, "--fault", kind, *points, *(["--sticky"] if stay == "sticky" else []))
    assert outcome["run"] > 0
    assert outcome["failures"] == []


@pytest.mark.needs("klaw-conversations")
def test_a_defect_is_seen(drive):
    scene, kind, bug = BUG
    outcome = drive(scene, "--fault", kind, "--points", "20", "--bug", bug, "--until", SAID)
    problems = [problem for failure in outcome["failures"] for problem in failure["problems"]]
    assert any(SAID in problem for problem in problems), problems
