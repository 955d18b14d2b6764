"""What a person repeats, quotes, denies or pretends states no slot; what the person says does."""

import tomllib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random

import pytest

from klaw_facts.extracting import forms, rule_extractor
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import make_fact

MESSAGES = tomllib.loads((Path(__file__).parent / "own_words.toml").read_text("utf-8"))["message"]
SAID = datetime(2026, 11, 20, 12, tzinfo=UTC)


def facts_in(text, said=SAID):
    """Return the facts with a slot that the rules take from a message."""
    message = SourceMessage("tg_1", "m1", "user", "user", text, said)
    facts = [make_fact(candidate, [message]) for candidate in rule_extractor.extract([message])]
    return [fact for fact in facts if fact is not None and fact.slot]


def slots_in(text):
    """Return the slots that the rules take from a message, and their values."""
    return {fact.slot: fact.value for fact in facts_in(text)}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["text"][:40])
def test_only_what_a_person_says_of_himself_is_a_slot(message):
    assert slots_in(message["text"]) == message.get("slots", {})


OPENERS = (
    "",
    "Hi! ",
    "Hello Klaw, ",
    "By the way, ",
    "Update: ",
    "I have a cat, ",
    "Yes, ",
    "- ",
    "Can you help? ",
    "I am a nurse. ",
)
PLAIN = {
    "home": ("I live in Graz", "I moved to Graz", "I currently live in Graz", "My wife and I moved to Graz"),
    "employer": ("I work at Siemens", "I started working for Siemens"),
    "name": ("My name is Greta", "Please call me Greta"),
}
VALUES = {"home": "Graz", "employer": "Siemens", "name": "Greta"}
TAILS = {
    "home": (
        "",
        " now",
        " with my two kids",
        " with my wife for three years now",
        " and I like it",
        ", it is cold there",
    ),
    "employer": ("", " as an engineer", " now", " and I like it"),
    "name": ("", " and I need help", ", I am new here"),
}


@pytest.mark.parametrize("slot", PLAIN)
def test_a_statement_in_a_plain_form_is_a_slot(slot):
    texts = [
        f"{opener}{plain}{tail}{end}"
        for opener in OPENERS
        for plain in PLAIN[slot]
        for tail in TAILS[slot]
        for end in (".", "!", "", ". Thanks!", ".\nWhat is the weather like?")
        if not (tail.endswith("years now") and "moved" in plain)
    ]
    wrong = [text for text in texts if slots_in(text).get(slot) != VALUES[slot]]
    assert (len(texts) >= 200, wrong) == (True, [])


#: Of each slot whose value is words: a form, and a value.
IN_WORDS = {
    "employer": ("I work at {}.", "Siemens"),
    "home": ("I live in {}.", "Graz"),
    "job_title": ("My title is {}.", "chief engineer"),
    "language": ("My native language is {}.", "Danish"),
    "name": ("My name is {}.", "Greta"),
    "partner": ("My wife's name is {}.", "Greta"),
    "timezone": ("My time zone is {}.", "Europe/Vienna"),
}
#: Slots whose value is a date, a number or an address.
IN_DIGITS = {"birthday", "deadline:", "email", "phone", "port:", "version:"}


CAPITALS = ("Night", "Misspelled", "Not Important", "NEVER", "LOL", "Zorblax", "Foo/Bar", "Bob Or Tom")


@pytest.mark.parametrize("value", CAPITALS)
@pytest.mark.parametrize("slot", sorted({slot for slot, *_ in forms.FORMS} - IN_DIGITS))
def test_capitals_alone_make_no_value(slot, value):
    form, known = IN_WORDS[slot]
    assert slots_in(form.format(known)) == {slot: known}
    assert slots_in(form.format(value)) == {}


def strange_words(dice):
    """Return one to four words that no rule knows."""
    made = ("".join(dice.choice("bdfgklmnprstvz") + dice.choice("aeiou") for _ in range(3)) for _ in range(4))
    return " ".join(list(made)[: dice.randint(1, 4)])


@pytest.mark.parametrize("number", range(60))
def test_words_that_are_not_known_around_a_statement_leave_it_in_doubt(number):
    dice = Random(number)
    strange, plain = strange_words(dice), dice.choice([text for texts in PLAIN.values() for text in texts])
    around = (
        f"{strange} {plain}.",
        f"{strange.capitalize()}, {plain}.",
        f"{plain} {strange}.",
        f"{plain}, {strange}.",
        f"{plain} ({strange}).",
        f"{plain} - {strange}!",
        f"{plain} in the {strange}.",
        f"{plain} when {strange}.",
        f"{strange.capitalize()}\n{plain}.",
        f"{strange.capitalize()}:\n{plain}.",
        f"{strange.capitalize()}:\n\n{plain}.",
        f"{strange.capitalize()} 10:42\nHi.\n{plain}.",
        f"| {strange} | {plain} |",
        f"Hi.\n\n    {plain}",
        f"# {plain}\n{strange}",
    )
    assert {text: slots_in(text) for text in around if slots_in(text)} == {}


@pytest.mark.parametrize(
    "remark",
    [
        "Not!",
        "/s",
        "Sorry, I meant Berlin.",
        "No, in Berlin.",
        "Correction: Berlin.",
        "That was a joke.",
        "Haha.",
        "Or rather Berlin.",
        "I lied.",
        "That is what she wrote.",
        "No.",
    ],
)
@pytest.mark.parametrize("plain", [text for texts in PLAIN.values() for text in texts])
def test_what_the_next_sentence_takes_back_is_no_slot(plain, remark):
    assert slots_in(f"{plain}. {remark}") == {}
    assert slots_in(f"{plain}... {remark}\n") == {}


READ = (
    "in 2025",
    "in March 2025",
    "on 3 March 2025",
    "on 2025-03-03",
    "last year",
    "two weeks ago",
    "yesterday",
    "in May",
)
UNREAD = (
    *("in '99", "at the age of 5", "in 1850", "on 3/4/2025", "before I moved to Rome"),
    *("on 31 February", "as a child", "when I was six", "long ago", "around 1999"),
    *("in the nineties", "a few years ago", "last spring", "on 31.02.2025", "in 3/2025"),
    *("by 2020", "until next week", "until Friday", "till May", "for a year"),
    *("during the war", "after school", "some time ago", "in my youth"),
)


@pytest.mark.parametrize("time", READ)
def test_a_time_that_is_read_is_the_begin(time):
    for text in (f"I moved to Oslo {time}.", f"{time.capitalize()} I moved to Oslo."):
        (fact,) = facts_in(text)
        assert (fact.value, fact.precision != "by", fact.valid_from < SAID) == ("Oslo", True, True)


@pytest.mark.parametrize("time", UNREAD)
def test_a_time_that_is_not_read_leaves_a_statement_in_doubt(time):
    texts = (
        f"I moved to Oslo {time}.",
        f"{time.capitalize()} I moved to Oslo.",
        f"I started working at Omya {time}.",
        f"I moved to Oslo, {time}.",
    )
    assert {text: slots_in(text) for text in texts if slots_in(text)} == {}


@pytest.mark.parametrize(("hours", "day"), [(14, 28), (0, 28), (-8, 28)])
def test_yesterday_is_the_day_before_where_it_was_said(hours, day):
    said = datetime(2026, 3, 1, 0, 30, tzinfo=timezone(timedelta(hours=hours)))
    (fact,) = facts_in("I moved to Oslo yesterday.", said)
    assert (fact.valid_from.month, fact.valid_from.day) == (2, day)
