"""The power fails: what was flushed is there, and that is enough for everything that was acknowledged.

Images of the disk are made from one recorded run of each scene (``power.py``). A sample by default;
``--campaigns`` (``nox -s campaigns``) takes 630 images in each mode.
"""

import pytest

SCENES = ("first-save", "save", "append", "index", "forget", "reindex", "move", "forget-after-reindex")
MODES = ("lost", "dropped", "torn")
#: Images of each scene and mode in a default run.
IMAGES = 1
#: And in one of every point.
MANY_IMAGES = 90
#: Each seeded bug with the scene and the mode that must show it, and what is said of it.
SEEDED = {
    "commits-not-flushed": ("save", "dropped", "is not found by fts"),
    "journal-not-flushed": ("save", "lost", "is not in saved.jsonl"),
    "acknowledge-before-commit": ("save", "lost", "is not in saved.jsonl"),
}
SEEDED_IMAGES = 30


@pytest.mark.needs("klaw-conversations")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scene", SCENES)
def test_whatever_was_acknowledged_is_there_after_a_power_cut(drive, cases, scene, mode):
    outcome = drive(scene, "--power", mode, "--points", str(MANY_IMAGES if cases.whole else IMAGES))
    assert outcome["run"] >= IMAGES
    assert outcome["failures"] == []


@pytest.mark.needs("klaw-conversations")
@pytest.mark.parametrize("bug", SEEDED)
def test_a_defect_is_seen(drive, bug):
    scene, mode, said = SEEDED[bug]
    outcome = drive(scene, "--power", mode, "--points", str(SEEDED_IMAGES), "--bug", bug, "--until", said)
    problems = [problem for failure in outcome["failures"] for problem in failure["problems"]]
    assert any(said in problem for problem in problems), problems
