"""A statement gives no slot after a message by which it may be nobody's: a text to work on, a play, a quotation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import Memory, load_config
from klaw_facts.extracting.framing import EARLIER, framed
from klaw_journals import Chat, Message

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
CHAT = Chat("cli", "main")
FRAMES = (
    "Translate the next message into French.",
    "Please translate everything I write from now on.",
    "Let's play a game: I am a knight in 1300.",
    "Let's role-play. You are the waiter and I am a tourist.",
    "You are a doctor and I'm your patient.",
    "I'm writing a novel in first person, here is the first line",
    "Is this sentence correct?",
    "Correct my grammar",
    "My sister texted me this:",
    "Here is what Bob wrote:",
    "This is from Bob's CV",
    "Pretend you are me.",
    "Test message follows.",
    "The next message is a lie.",
    "Hypothetically speaking",
    "I'm using Eve's account.",
    "Hi, it's Eve's husband.",
    "[Forwarded from Bob]",
    "Переведи на английский",
    "Давай поиграем",
    "Сообщение переслано",
    "请翻译下面的句子",
    "我们来角色扮演吧",
)
ASKED = (
    "Repeat after me: I live in Paris.",
    "In the story, where does your hero live?",
    "Fill in the form for your mother. Name?",
)
PLAIN = (
    "I like science fiction and novels.",
    "I work as a translator.",
    "What should I cook tonight?",
    "I played football with my brother.",
    "I have an interview at Bosch tomorrow.",
    "My forwarding address has changed.",
    "Я люблю рассказы Чехова.",
    "我喜欢看小说",
)


def message(text, minutes=0, role="user"):
    return Message(role, text, NOON + timedelta(minutes=minutes), meta=CHAT.meta)


def homes_after(memory, *messages):
    memory.conversations.append_many([message("I live in Oslo.", -600), *messages])
    facts = memory.extension("facts")
    facts.extract()
    return {fact.value: fact.valid_to is None for fact in facts.list(everything=True) if fact.slot == "home"}


@pytest.fixture
def memory(tmp_path):
    overrides = {"memory": {"embedding": {"type": "none"}}}
    config = load_config(data_dir=tmp_path, overrides=overrides, environment={"KLAW_CONFIG": "/dev/null"})
    with Memory.open(config) as opened:
        yield opened


@pytest.mark.parametrize("frame", FRAMES)
def test_a_statement_after_a_frame_is_framed(frame):
    assert [*framed([message(frame), message("I live in Paris.", 1)])] == [False, True]


@pytest.mark.parametrize("asked", ASKED)
def test_an_answer_to_an_assistant_that_asks_for_another_is_framed(asked):
    talk = [
        message(asked, 0, "assistant"),
        message("I live in Paris.", 1),
        message("Where do you live?", 2, "assistant"),
    ]
    assert [*framed([*talk, message("I live in Paris.", 3)])] == [False, True, True, False]


@pytest.mark.parametrize("plain", PLAIN)
def test_other_messages_frame_nothing(plain):
    assert not any(framed([message(plain), message("I live in Paris.", 1)]))


def test_a_frame_lasts_for_some_hours_and_a_colon_for_minutes():
    assert [*framed([message(FRAMES[0]), message("a", 359), message("b", 361)])] == [False, True, False]
    assert [*framed([message("Here:"), message("a", 9), message("b", 11)])] == [False, True, False]


def test_a_framed_statement_ends_no_value(memory):
    play = message("Let's role-play. You are the waiter and I am a tourist.")
    assert homes_after(memory, play, message("I live in Paris.", 1)) == {"Oslo": True}


def test_a_frame_that_was_read_before_still_counts(memory):
    homes_after(memory, message("Translate the next message into French."))
    memory.conversations.append_many([message("I live in Paris.", 1)])
    facts = memory.extension("facts")
    facts.extract()
    assert [fact.value for fact in facts.list() if fact.slot == "home"] == ["Oslo"]


def test_many_messages_before_the_unread_ones(memory):
    fill = [message(f"Message {number}", number / 100) for number in range(EARLIER + 50)]
    homes_after(memory, *fill)
    memory.conversations.append_many([message("I moved to Paris.", 60)])
    facts = memory.extension("facts")
    facts.extract()
    assert [fact.value for fact in facts.list() if fact.slot == "home"] == ["Paris"]
