"""Slots, dates, decay, the profile, the archive and reading again."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import ConfigError
from klaw_facts import Fact, Facts, FactsOptions
from klaw_facts.decay import freshness, score
from klaw_facts.extracting.rules import THRESHOLD, category_of
from klaw_facts.extracting.rules import score as worth
from klaw_facts.extracting.slots import slot_of
from klaw_facts.extracting.statements import is_instruction, is_plain_statement
from klaw_testing.language_model import ScriptedModel
from klaw_words.dates import resolve

MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("My name is Ada Lovelace", ("name", "Ada Lovelace")),
        ("I just moved to San Marino and love it", ("home", "San Marino")),
        ("By the way, I moved to Lyon last week.", ("home", "Lyon")),
        ("I live in New York City these days", ("home", "New York City")),
        ("I moved to Rio de Janeiro", ("home", "Rio de Janeiro")),
        ("I now work at Acme", ("employer", "Acme")),
        ("My birthday is March 5", ("birthday", "March 5")),
        ("My wife's name is Eve", ("partner", "Eve")),
        ("The gate deadline has been moved to March 19", ("deadline:gate", "March 19")),
        ("the first sprint ends on March 29", ("deadline:first sprint", "March 29")),
        ("We upgraded Flask to 2.3.1", ("version:flask", "2.3.1")),
        ("The gate listens on port 8080", ("port:gate", "8080")),
        ("Меня зовут Анна", ("name", "Анна")),
        ("Я теперь живу в Риме", ("home", "Риме")),
        ("我叫李雷", ("name", "李雷")),
        ("我现在住在北京。", ("home", "北京")),
        ("I might move to Rome", None),
        ("I do not live in Rome", None),
        ("Do I live in Rome?", None),
        ("If I moved to Rome, I would learn Italian", None),
        ("Я хочу жить в Риме", None),
        ("I used to live in Rome", None),
        ("Run it on /srv/gate, it listens on port 8080 now.", None),
        ("We moved it to March 19", None),
        ("They upgraded this to 2.3.1", None),
    ],
)
def test_a_slot_is_recognised_only_if_stated(text, slot):
    assert slot_of(text) == slot


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("I 100% agree, Mel.", False),
        ("I totally agree with you, Caroline!", False),
        ("I couldn’t agree more, Mel.", False),
        ("Я на 100% согласна с тобой, Мел.", False),
        ("我100%同意，李雷。", False),
        ("I agree with Mel that we launch on March 5.", True),
        ("I agree, we moved to Rome in 2020.", True),
    ],
)
def test_agreement_alone_is_not_a_fact(text, is_kept):
    assert (worth(text) >= THRESHOLD) == is_kept


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Answer in metric units.", "rule"),
        ("Please don't use emojis.", "rule"),
        ("Keep your answers short.", "rule"),
        ("Whenever I ask about plans, confirm the date.", "rule"),
        ("From now on, call me Em.", "rule"),
        ("Отвечай мне по-русски.", "rule"),
        ("Не используй эмодзи.", "rule"),
        ("以后请用公制单位。", "rule"),
        ("I am allergic to peanuts.", "identity"),
        ("I'm vegan.", "identity"),
        ("I don't eat pork.", "identity"),
        ("Мне нельзя орехи", "identity"),
        ("У меня аллергия на орехи.", "identity"),
        ("我对花生过敏", "identity"),
        ("我不吃肉。", "identity"),
    ],
)
def test_an_instruction_or_a_plain_statement_is_kept_however_short(text, category):
    assert (worth(text) >= THRESHOLD, category_of(text)) == (True, category)


@pytest.mark.parametrize(
    "text",
    [
        "Never give up!",
        "Don't worry about it.",
        "Don't forget the keys.",
        "Write a poem in French.",
        "Use the stairs.",
        "Am I allergic to peanuts?",
        "What if I'm vegan?",
        "Should you always answer in metric units?",
        "Не волнуйся.",
        "我吃肉吗？",
        "If I am allergic, tell me.",
    ],
)
def test_encouragement_requests_and_doubts_are_no_instruction_and_no_statement(text):
    assert (is_instruction(text), is_plain_statement(text)) == (False, False)


@pytest.mark.parametrize(
    ("text", "day", "precision"),
    [
        ("since 2020", "2020-01-01", "year"),
        ("in May 2024", "2024-05-01", "month"),
        ("last week", "2026-02-16", "week"),
        ("three days ago", "2026-02-20", "day"),
        ("on 2026-01-31", "2026-01-31", "day"),
        ("next Friday", "2026-02-27", "day"),
        ("вчера", "2026-02-22", "day"),
        ("в 2019 году", "2019-01-01", "year"),
        ("3天前", "2026-02-20", "day"),
        ("2021年", "2021-01-01", "year"),
        ("some day", None, None),
        ("several weeks ago", None, None),
        ("in 2024-13-45", None, None),
    ],
)
def test_a_date_is_computed_or_unknown(text, day, precision):
    when = resolve(text, MONDAY)
    assert (when and when.moment.date().isoformat(), when and when.precision) == (day, precision)


def test_a_fact_loses_half_its_weight_in_each_half_life_of_its_category():
    options = FactsOptions(half_life_days={"event": 10}, categories=("event",))
    fact = Fact("f-1", "x", category="event", importance=0.8, said_at=MONDAY)
    assert score(fact, options, MONDAY) == pytest.approx(0.8)
    assert score(fact, options, MONDAY + timedelta(10)) == pytest.approx(0.4)
    assert score(fact, options, MONDAY + timedelta(30)) == pytest.approx(0.1)
    assert freshness(fact, options, MONDAY - timedelta(5)) == 1
    forever = Fact("f-2", "x", category="identity", said_at=MONDAY)
    assert freshness(forever, options, MONDAY + timedelta(10_000)) == 1


def test_every_category_has_a_curve_or_the_configuration_is_wrong():
    options = FactsOptions(half_life_days={"dream": 3}, categories=("dream",))
    assert freshness(Fact("f-1", "x", category="dream", said_at=MONDAY), options, MONDAY + timedelta(3)) == 0.5
    with pytest.raises(ConfigError, match="no entry for the category 'hope'"):
        freshness(Fact("f-1", "x", category="hope"), options, MONDAY)
    with pytest.raises(ValueError, match="expected 0"):
        FactsOptions(half_life_days={"dream": -1})


def test_faded_facts_are_archived_except_those_of_a_person(open_memory):
    facts = open_memory().extension(Facts)
    for by in ("agent", "person"):
        facts.remember(f"the cache is warm, says the {by}", category="temp", by=by)
    later = datetime.now(UTC) + timedelta(30)
    facts.compression.now = lambda: later
    assert facts.compress(daily=False).archived == 1
    assert [fact.made_by for fact in facts.list()] == ["person"]
    (archived,) = [fact for fact in facts.list(everything=True) if fact.is_archived]
    assert not facts.keeper.reopen(archived.id).is_archived


def test_the_profile_changes_only_with_its_content(open_memory):
    facts = open_memory().extension(Facts)
    facts.remember("My name is Ada Lovelace")
    facts.remember("I like green tea", is_pinned=True)
    assert facts.compress().profile_changed
    before = facts.state().profile
    assert [line for _, line in before] == ["name: Ada Lovelace", "I like green tea"]
    facts.remember("The pump hums", category="event")
    assert not facts.compress().profile_changed
    assert facts.state().profile == before
    facts.remember("My name is Ada King")
    facts.compress()
    assert [line for _, line in facts.state().profile] == ["name: Ada King", "I like green tea"]


def test_retry_reads_unreadable_messages_again(open_memory, say):
    def answer(prompt):
        lines = re.findall(r"^\[(\d+)\] \S+ user: (.*)$", prompt.messages[1].content, re.MULTILINE)
        items = [{"m": int(number), "quote": text, "fact": text, "category": "event"} for number, text in lines]
        return json.dumps({"facts": items})

    memory = open_memory(ScriptedModel(["nothing of use", "nor this", answer]), extractor="model")
    say(memory, "I moved to Lyon with Eve.")
    facts = memory.extension(Facts)
    assert facts.extract().facts == 0
    assert (len(facts.state().failed()), facts.status()["facts_messages_waiting"]) == (1, 0)
    assert "fact-batches" in {finding.check for finding in facts.check()}
    assert facts.retry().facts == 1
    assert facts.state().failed() == []


def test_more_ends_than_allowed_wait_for_review(open_memory, say):
    memory = open_memory(max_ends=1)
    facts = memory.extension(Facts)
    facts.remember("I live in Paris", by="agent", valid_from=MONDAY - timedelta(9))
    facts.remember("My name is Ada Lovelace", by="agent", valid_from=MONDAY - timedelta(9))
    say(memory, "I moved to Lyon with Eve.")
    say(memory, "My name is Ada King.")
    facts.extract()
    assert len(facts.keeper.review()) == 2
    assert {fact.value for fact in facts.list()} == {"Paris", "Lyon", "Ada Lovelace", "Ada King"}


def test_a_pasted_text_is_not_a_fact(open_memory, say):
    memory = open_memory()
    say(memory, "I moved to Lyon in 2024 and my config is " + "x1y2 " * 5000)
    assert memory.extension(Facts).extract().facts == 0


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("my name is Ada and I live in Paris", {"name": "Ada", "home": "Paris"}),
        (
            "My name is Ada, I live in Paris, France and I work at Acme",
            {"name": "Ada", "home": "Paris, France", "employer": "Acme"},
        ),
        ("Меня зовут Ада, и я живу в Париже", {"name": "Ада", "home": "Париже"}),
        ("我叫王明，我住在上海", {"name": "王明", "home": "上海"}),
        ("I moved to Lyon and I like it", {"home": "Lyon"}),
        ("I moved to Lyon and I like tea", {}),
        ("My name is Ada and I used to live in Rome", {}),
        ("If my name is Ada and I live in Rome", {}),
    ],
)
def test_a_sentence_fills_every_slot_that_it_states(open_memory, say, text, slots):
    memory = open_memory(extractor="rules")
    say(memory, text)
    facts = memory.extension(Facts)
    facts.extract()
    assert {fact.slot: fact.value for fact in facts.list() if fact.slot} == slots
    for fact in facts.list():
        assert fact.text in text
