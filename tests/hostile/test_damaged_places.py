"""Damage in any place of klaw.db is noticed, or changes no answer, and `klaw reindex` repairs it.

``--campaigns`` (``nox -s campaigns``) tries 300 places.
"""

from __future__ import annotations

import json
import random
import shutil

import pytest

#: Places in a default run.
SAMPLE = 4


@pytest.fixture(scope="module")
def good(places, tmp_path_factory):
    """A sound memory, and its answers."""
    world = places.World(tmp_path_factory.mktemp("places") / "good")
    world.root.mkdir()
    world.fill()
    with world.open() as memory:
        expected, notices = world.ask(memory)
    assert notices == []
    assert all(expected.values()), "every question has an answer"
    return world, expected


def test_damage_in_any_place_is_noticed_or_harmless_and_a_reindex_repairs_it(good, places, campaign, cases, tmp_path):
    world, expected = good
    problems = []
    for number in range(cases.number(SAMPLE, 300)):
        dice = random.Random(f"places {number}")
        kind = places.KINDS[number % len(places.KINDS)]
        damaged = places.copy_damaged(world, tmp_path / str(number), kind, dice)
        report = tmp_path / f"{number}.json"

        def work(damaged=damaged, report=report):
            report.write_text(json.dumps(places.look(damaged, expected)))

        problem = campaign.in_child(work, seconds=600)
        seen = json.loads(report.read_text()) if report.exists() else {}
        if problem := problem or places.verdict(seen):
            problems.append((number, kind, problem[-1500:]))
        shutil.rmtree(damaged.root)
    cases.add(0, len(problems))
    assert problems == []
