"""A statement gives no slot after a message by which it may be nobody's: a text to work on, a play, a quotation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import Memory, load_config
from klaw_facts.extracting.framing import EARLIER, doubtful, framed
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
    "Bob speaking.",
    "This is Bob now.",
    "I'm giving the phone to Bob.",
    "Say hi to Bob!",
    "请翻译下面的句子",
    "我们来角色扮演吧",
)
ASKED = (
    "Repeat after me: I live in Paris.",
    "In the story, where does your hero live?",
    "Fill in the form for your mother. Name?",
)
#: These concern the next messages only.
OF_NEXT = (
    *("Typing test.", "Mic check.", "Convert to uppercase.", "What language is this?", "How do I pronounce that?"),
    *("Here's the chorus.", "Diary, 5 May 1999", "Here is my old bio.", "Affirmations for today.", "Plan for 2030."),
    *("Как это по-русски?", "Что значит эта фраза?", "这句话对吗？", "这是什么意思？", "Count the words."),
)
QUESTIONS = (
    'Give me an example sentence with "live".',
    'How do you say "Ich wohne in Paris" in English?',
    "Complete the sentence: I live in ___.",
    "Where would you live if you were rich?",
    "What does the sign say?",
    "What did Bob say?",
    "What will you tell the police?",
    "Tell me two truths and a lie.",
    "Sure. What should it say?",
)
TAKES_BACK = (
    *("Just kidding!", "That was a joke.", "lol no", "Ignore my last message.", "Wrong chat, sorry.", "I lied."),
    *(
        "That was my brother typing.",
        "Oops, I meant Rome.",
        "*Rome",
        "Not really.",
        "No.",
        "/s",
        "in GTA",
        "Scratch that.",
    ),
    *("... in my dreams", "when I was a child", "Шучу", "Это шутка.", "开玩笑的", "说错了。"),
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
    "Where can I buy bread?",
    "Thanks!",
    "I moved the sofa into the other room.",
    "My flight is at noon.",
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


@pytest.mark.parametrize("frame", OF_NEXT)
def test_what_concerns_the_next_messages_frames_them_for_minutes(frame):
    assert [*framed([message(frame), message("I live in Paris.", 9), message("b", 11)])] == [False, True, False]


@pytest.mark.parametrize("asked", QUESTIONS)
def test_an_answer_to_a_question_about_words_or_wishes_is_framed(asked):
    assert [*framed([message(asked, 0, "assistant"), message("I live in Paris.", 1)])] == [False, True]


def test_only_the_last_sentence_of_an_assistant_asks():
    asked = message("It would help if you could tell me more. Where do you live?", 0, "assistant")
    assert [*framed([asked, message("I live in Paris.", 1)])] == [False, False]


def test_what_repeats_an_assistant_is_framed():
    talk = [message("In English: I live in Paris.", 0, "assistant"), message("i live in paris", 1)]
    assert [*framed(talk)] == [False, True]


@pytest.mark.parametrize("remark", TAKES_BACK)
def test_what_the_next_message_takes_back_is_no_value(memory, remark):
    assert homes_after(memory, message("I live in Paris.", 1), message(remark, 2)) == {"Oslo": True}


@pytest.mark.parametrize("remark", ["Just kidding!", "I lied.", "Wrong chat.", "Шучу", "开玩笑的"])
def test_what_was_read_before_it_is_taken_back_is_retracted(memory, remark):
    assert homes_after(memory, message("I live in Paris.", 1)) == {"Oslo": False, "Paris": True}
    memory.conversations.append_many([message("Nice city!", 2, "assistant"), message(remark, 3)])
    facts = memory.extension("facts")
    facts.extract()
    assert [fact.value for fact in facts.list() if fact.slot == "home"] == []
    assert "Paris" not in str([result.content for result in memory.search("where do I live", collection="facts")])
    assert [fact.end_reason for fact in facts.list(everything=True) if fact.value == "Paris"] == ["taken back"]


def test_an_answer_to_a_question_takes_nothing_back(memory):
    asked = message("Do you have children?", 2, "assistant")
    talk = (message("I live in Paris.", 1), asked, message("No.", 3))
    assert homes_after(memory, *talk) == {"Oslo": False, "Paris": True}


def test_nobody_takes_back_what_another_one_said_or_what_was_said_long_before():
    other = Message("user", "Just kidding!", NOON + timedelta(minutes=1), meta={**CHAT.meta, "name": "Bob"})
    assert doubtful([message("I live in Paris."), other]) == [False, False]
    assert doubtful([message("I live in Paris."), message("Just kidding!", 11)]) == [False, False]


@pytest.mark.parametrize(
    "said", ["That's true.", "This is my city.", "It was cold.", "Nice, no?", "I work at Siemens."]
)
def test_other_remarks_take_nothing_back(said):
    assert doubtful([message("I live in Paris."), message(said, 1)]) == [False, False]


def test_a_long_laugh_is_read_at_once():
    assert doubtful([message("I live in Paris."), message("哈" * 79, 1), message("ha" * 39 + "!?", 2)]) == [False] * 3


def test_a_second_joke_is_about_the_same_statement():
    talk = [message("I live in Paris."), message("lol no", 1), message("Just kidding!", 2)]
    assert doubtful(talk) == [True, False, False]


def test_what_a_person_wrote_is_not_retracted(memory):
    homes_after(memory, message("I live in Paris.", 1))
    facts = memory.extension("facts")
    (paris,) = (fact for fact in facts.list() if fact.value == "Paris")
    facts.keeper.edit(paris.id, text="I live in Paris, near the river.")
    memory.conversations.append_many([message("Just kidding!", 3)])
    facts.extract()
    assert [fact.text for fact in facts.list() if fact.slot == "home"] == ["I live in Paris, near the river."]
