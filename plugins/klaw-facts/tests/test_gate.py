"""The gate on lists that it was not made from: acknowledgements need nothing, questions always something."""

from pathlib import Path

import pytest

from klaw_facts.gate import declines

HERE = Path(__file__).parent
ACKNOWLEDGEMENTS, QUESTIONS = (
    (HERE / f"{name}.txt").read_text("utf-8").splitlines() for name in ("acknowledgements", "questions")
)


def test_acknowledgements_need_nothing_but_for_one_in_twenty():
    looked_up = [message for message in ACKNOWLEDGEMENTS if not declines(message)]
    assert len(ACKNOWLEDGEMENTS) > 100
    assert len(looked_up) <= 0.05 * len(ACKNOWLEDGEMENTS), looked_up


def test_no_question_is_missed():
    missed = [message for message in QUESTIONS if declines(message)]
    assert missed == []


@pytest.mark.parametrize("message", ["", "   ", "```\nprint(1)\n```", "def f(x):\n    return x\n\nclass A:\n    y = 1"])
def test_nothing_and_code_need_nothing(message):
    assert declines(message)


def test_code_with_a_question_needs_something():
    assert not declines("Why does this fail?\n```\nprint(1)\n```")
