"""The gate on lists that it was not made from: acknowledgements need nothing, questions always something."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_facts.gate import declines

HERE = Path(__file__).parent
ACKNOWLEDGEMENTS, QUESTIONS, NEEDS = (
    (HERE / f"{name}.txt").read_text("utf-8").splitlines() for name in ("acknowledgements", "questions", "needs")
)


def test_at_most_one_in_twenty_acknowledgements_is_looked_up():
    looked_up = [message for message in ACKNOWLEDGEMENTS if not declines(message)]
    assert len(ACKNOWLEDGEMENTS) > 100
    assert len(looked_up) <= 0.05 * len(ACKNOWLEDGEMENTS), looked_up


@pytest.mark.parametrize("messages", [QUESTIONS, NEEDS], ids=["questions", "messages like acknowledgements"])
def test_no_message_that_needs_memory_is_missed(messages):
    missed = [message for message in messages if declines(message)]
    assert len(messages) > 50
    assert missed == []


@pytest.mark.parametrize("message", ["", "   ", "```\nprint(1)\n```", "def f(x):\n    return x\n\nclass A:\n    y = 1"])
def test_empty_messages_and_code_are_declined(message):
    assert declines(message)


@pytest.mark.parametrize(
    "message",
    [
        *(
            "def f(): return 1",
            "class A(B): pass",
            "import os",
            "from a.b import c as d",
            "for i in range(3): print(i)",
        ),
        *("print('hi')", "const a = 1;", "let total = items.length", "function f(x) { return x }", "foo(bar);"),
        *("config = {'a': 1}", "x = compute(1, 2)", "#include <stdio.h>", "$ ls", ">>> 1 + 1"),
        *("SELECT * FROM t;", "SELECT a FROM t WHERE b = ?", "select a from t;", "DELETE FROM t WHERE a = 1"),
        *('{"a": 1}', "[1, 2, 3]", "<p>hello</p>", '<img src="a.png"/>'),
        *(
            "git push origin main",
            "git commit -m 'fix the parser'",
            "npm install foo",
            "pip install -r requirements.txt",
        ),
        *("docker compose up -d", "ls -la /tmp", "rm -rf build/", "curl https://example.org", "cat notes/a.md"),
    ],
)
def test_a_line_of_code_is_declined(message):
    assert declines(message) == "the message is code"


@pytest.mark.parametrize(
    "message",
    [
        *("git push fails with 403", "npm install is slow on my laptop", "git log style we use", "docker is broken"),
        *("select a winner from the list", "update the budget", "delete it from the list", "import duties rose"),
        *("home = Lyon", "x = 5", "name: Vera", "budget = 500", "let us meet at 5", "make a list of my friends"),
        *("for dinner: pasta (no cheese)", "cat is called Tom", "go home", "head to the airport", "class of 1998"),
        *(
            "I paid 30 (cash); she paid 20",
            "from Rome import wine",
            "Anna (my sister) is here",
            "[sic] I moved",
            "i <3 you",
        ),
        *("Victoria_(Australia)", "DTIME(f(n))", "古鲁(guru)", "Anna(sister)"),
        *("if I am late: call me", "with love: Anna", "while I sleep: no calls"),
    ],
)
def test_prose_that_begins_like_code_is_looked_up(message):
    assert not declines(message)


def test_code_with_a_question_is_looked_up():
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
def test_short_answers_orders_and_reports_of_failure_are_looked_up(message):
    assert not declines(message)


@pytest.mark.parametrize("message", ["慢慢来，不着急", "太谢谢你了", "你帮了大忙", "明天见", "let's hope so, probably"])
def test_phrases_of_acknowledgement_are_declined(message):
    assert declines(message)


def test_phrases_with_other_words_are_looked_up():
    assert not declines("谢谢你的护照")
    assert not declines("你决定航班")


@pytest.mark.parametrize(
    "message",
    [
        *("thanks, and the other one", "great, but the total is wrong", "ok so I spoke with the landlord"),
        *("спасибо, а второй", "ок, теперь за июль", "спасибо, я переехала в Пермь"),
        *("谢谢，那第二个呢", "好的，改到周五", "哈哈，我胖了五斤"),
        *("Thanks! Our son is called Kyle.", "Спасибо! Сына зовут Кирилл.", "谢谢！我儿子叫小宝。"),
    ],
)
def test_thanks_do_not_hide_what_else_is_said(message):
    assert not declines(message)


@pytest.mark.parametrize("message", ["鍵はどこ", "열쇠 어디", "où sont les clés", "wo ist der Schlüssel", "де ключі"])
def test_other_languages_are_looked_up(message):
    assert not declines(message)


@given(st.text(max_size=80))
def test_every_text_is_decided_and_a_question_is_looked_up(text):
    assert declines(text) == declines.__wrapped__(text)
    assert not declines(f"why {text}?")
