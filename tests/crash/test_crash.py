"""Klaw killed inside its n-th write: nothing acknowledged is lost, nothing forgotten is back, and the next run goes on.

A sample of the points by default; ``--campaigns`` (``nox -s campaigns``) takes every one.
"""

import pytest

#: Points of each scene in a default run, besides the first of each kind of call.
SAMPLE = {"first-save": 4, "save": 6, "append": 6, "index": 6, "forget": 8, "reindex": 6, "move": 4}
SAMPLE |= {"compact-index": 2, "compact-save": 2, "compact-forget": 2, "compact-reindex": 2}
SAMPLE |= {"remember": 2, "extract": 2, "forget-facts": 2, "compress": 2}
SAMPLE |= {"agents": 2, "export": 2, "import": 2, "background": 8}
SAMPLE |= {"forget-messages": 4, "purge": 3, "forget-after-reindex": 3}
#: Each seeded bug with the scene that must show it, and what is said of it.
SEEDED = {
    "acknowledge-before-commit": ("save", "is not in saved.jsonl"),
    "missing-transaction": ("index", "keys, the store"),
    "two-transactions": ("index", "keys, the store"),
    "forget-without-journal": ("forget", "which was forgotten, is in saved.jsonl"),
    "forget-without-purge": ("forget", "which was forgotten, is in klaw.db-wal"),
    "swap-in-pieces": ("reindex", "as found: saved/"),
}
SEEDED_POINTS = 10


@pytest.mark.parametrize("scene", SAMPLE)
def test_whatever_was_acknowledged_is_there_after_a_crash(drive, cases, scene):
    outcome = drive(scene, *([] if cases.whole else ["--points", str(SAMPLE[scene])]))
    assert outcome["run"] >= SAMPLE[scene]
    assert outcome["failures"] == []


@pytest.mark.parametrize("bug", SEEDED)
def test_a_defect_is_seen(drive, bug):
    scene, said = SEEDED[bug]
    outcome = drive(scene, "--points", str(SEEDED_POINTS), "--bug", bug, "--until", said)
    crashes = [failure for failure in outcome["failures"] if failure["point"] is not None]
    problems = [problem for failure in crashes for problem in failure["problems"]]
    assert any(said in problem for problem in problems), problems
