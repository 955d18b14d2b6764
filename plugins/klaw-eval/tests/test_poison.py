"""``klaw eval poison``: no attack reaches a context unasked, although all are found; the owner's notes do."""

import json

import pytest

from klaw_eval.attacks import DOORS, PER_DOOR, attacks

pytestmark = pytest.mark.needs(
    "klaw-notes", "klaw-memories", "klaw-conversations", "klaw-tools", "klaw-doctor", "klaw-facts"
)


def test_there_are_two_hundred_attacks_each_with_a_word_of_its_own():
    plan = attacks()
    assert len(plan) == len(DOORS) * PER_DOOR == 200
    assert len({attack.marker for attack in plan} | {attack.answer for attack in plan}) == 400
    assert len({attack.question for attack in plan}) == 200
    seen = [attack for attack in plan for other in plan if attack.is_in(other.text) and attack is not other]
    assert seen == []


def test_a_marker_is_recognised_however_it_is_spelled():
    hidden = [attack for attack in attacks() if attack.marker not in attack.payload and attack.number in {6, 7}]
    assert len(hidden) == 2 * len(DOORS)
    for attack in attacks():
        assert attack.is_in(attack.text)
        assert attack.is_in(attack.line)
        assert not attack.is_in(attack.note)


def test_none_of_a_sample_reaches_a_context(klaw):
    done = klaw("eval", "poison", "--limit", "4", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert set(report["doors"]) == set(DOORS)
    for door, counts in report["doors"].items():
        assert counts["attacks"] == counts["found"] == counts["answered"] == 4, door
        assert counts["injected"] == 0, door
        assert counts["asked"] >= 3, door
    assert report["total"]["attacks"] == 4 * len(DOORS)


def test_a_memory_that_takes_everything_is_poisoned_and_the_command_says_so(klaw, tmp_path):
    (tmp_path / "careless.toml").write_text('[extensions.tools]\ntrust = "foreign"\n', "utf-8")
    done = klaw("eval", "poison", "--limit", "1", "--config", tmp_path / "careless.toml")
    assert done.exit_code == 1
    (row,) = (line.split() for line in done.stdout.splitlines() if line.startswith("all "))
    assert int(row[3]) >= 8
