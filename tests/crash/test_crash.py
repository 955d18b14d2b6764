"""Klaw killed inside its n-th write: nothing acknowledged is lost, nothing forgotten is back, and the next run goes on.

A sample of the points by default; ``--campaigns`` (``nox -s campaigns``) takes every one.
"""

import pytest

#: Points of each scene in a default run, besides none: what an undisturbed run leaves is looked at as well.
SAMPLE = 1
SCENES = ("first-save", "save", "append", "index", "forget", "reindex", "move")
SCENES += ("compact-index", "compact-save", "compact-forget", "compact-reindex")
SCENES += ("remember", "extract", "forget-facts", "compress", "agents", "export", "import", "background")
SCENES += ("forget-messages", "purge", "forget-after-reindex")
#: Each seeded bug with the scene that must show it, and what is said of it.
SEEDED = {
    "acknowledge-before-commit": ("save", "is not in saved.jsonl"),
    "missing-transaction": ("index", "keys, the store"),
    "two-transactions": ("index", "keys, the store"),
    "forget-without-journal": ("forget", "which was forgotten, is in saved.jsonl"),
    "forget-without-purge": ("forget", "which was forgotten, is in klaw.db"),
    "swap-in-pieces": ("reindex", "as found: saved/"),
}
SEEDED_POINTS = 10


@pytest.mark.promise("D6", "D18", "D21")
@pytest.mark.needs("klaw-conversations")
@pytest.mark.parametrize("scene", SCENES)
def test_whatever_was_acknowledged_is_there_after_a_crash(drive, cases, scene):
    outcome = drive(scene, *([] if cases.whole else ["--points", str(SAMPLE)]))
    assert outcome["run"] >= SAMPLE
    assert outcome["failures"] == []


@pytest.mark.needs("klaw-conversations")
@pytest.mark.parametrize("bug", SEEDED)
def test_a_defect_is_seen(drive, bug):
    scene, said = SEEDED[bug]
    outcome = drive(scene, "--points", str(SEEDED_POINTS), "--bug", bug, "--until", said)
    crashes = [failure for failure in outcome["failures"] if failure["point"] is not None]
    problems = [problem for failure in crashes for problem in failure["problems"]]
    assert any(said in problem for problem in problems), problems
