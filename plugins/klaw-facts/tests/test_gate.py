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


@pytest.mark.parametrize(
    "message",
    [
        *("nothing works", "Same problem", "not that one", "ok now the second", "ok add it", "tomorrow", "in May"),
        *("не помогло", "ничего не работает", "ок, добавь", "ок, отправьте", "завтра", "то же самое"),
        *("解释一下", "天气", "明天", "没用", "还是不行"),
        *("你去不去", "能不能去", "可不可以", "有没有", "我不想让你去"),
        *("我也去", "我去过", "我不喜欢", "再给我", "还没来"),
    ],
)
def test_short_answers_orders_and_reports_of_failure_need_something(message):
    assert not declines(message)


@pytest.mark.parametrize("message", ["慢慢来，不着急", "太谢谢你了", "你帮了大忙", "明天见", "let's hope so, probably"])
def test_phrases_of_acknowledgements_need_nothing(message):
    assert declines(message)


def test_phrases_with_anything_else_need_something():
    assert not declines("谢谢你的护照")
    assert not declines("你决定航班")
