"""What a model may do: nothing that was not said becomes a fact, and nothing is lost or taken twice when it fails."""

import json
import random
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from klaw_core import LanguageModelError, StoreError
from klaw_facts import Facts
from klaw_facts.extracting.verify import contradiction
from klaw_journals import Message
from klaw_testing.language_model import ScriptedModel

META = {"channel": "telegram", "chat_id": "1"}
MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)
TRUTHS = (
    "I moved to Lyon in March with two cats.",
    "The gate listens on port 8080 since Monday.",
    "Mel and I don't eat meat.",
    "My brother Tom might join Acme next year.",
    "We always deploy from the main branch.",
    "Я переехала в Лион в марте с двумя кошками.",
    "Мы решили не использовать Docker.",
    "我搬到了里昂，养了两只猫。",
    "我们决定不用Docker。",
)
#: Words that no truth holds, by the kind of lie.
NUMBERS = ("7,777", "1999", "three", "seventeen", "пять", "五")
NAMES = ("Zorblatt", "Qux", "Ольга", "iPhone", "李")
DATES = ("June", "Friday", "yesterday", "вчера", "октября", "2031-05-06")
LIES = {"number": NUMBERS, "name": NAMES, "date": DATES}


def lie(chance, said):
    """Return a false claim about a sentence, and what in it is false."""
    kind = chance.choice(["number", "name", "date", "negation", "quote", "certainty"])
    if kind == "certainty" and " might" not in said:
        kind = "number"
    words = said.rstrip(".。").split()
    if kind in LIES:
        word = chance.choice(LIES[kind])
        where = chance.randrange(len(words) + 1)
        return " ".join([*words[:where], word, *words[where:]]), said, word
    if kind == "negation":
        without = re.sub(r"\b(?:don't|не) |不", "", said)
        return without if without != said else f"It is not so that {said}", said, None
    if kind == "certainty":
        return said.replace(" might", " will"), said.partition(" might")[0], "will"
    return (
        f"{chance.choice(NAMES)} won {chance.choice(NUMBERS)} prizes",
        "Nobody ever said this sentence here",
        "prizes",
    )


def lying(chance, told):
    """Return a function that answers a prompt with thirty lies about its messages."""

    def answer(prompt):
        lines = re.findall(r"^\[(\d+)\] \S+ user: (.*)$", prompt.messages[-1].content, re.MULTILINE)
        if not lines:  # it is asked how facts relate: each ends the other
            pairs = re.findall(r"^\[(\d+)\] older", prompt.messages[-1].content, re.MULTILINE)
            return json.dumps({"pairs": [{"pair": int(number), "relation": 2} for number in pairs]})
        items = []
        for _ in range(30):
            number, said = chance.choice(lines)
            claim, quote, word = lie(chance, said)
            if chance.random() < 0.3:  # the quote is cut, so that what denies it is left out
                quote = quote[len(quote) // 2 :]
            told.append((claim, word))
            items.append({"m": int(number), "quote": quote, "fact": claim, "category": "event", "when": None})
        return json.dumps({"facts": items})

    return answer


def test_a_thousand_invented_facts_add_nothing_that_was_not_said(open_memory):
    chance, told = random.Random(18), []
    memory = open_memory(ScriptedModel([lying(chance, told)] * 200), extractor="model", window_tokens=100)
    said = [f"{TRUTHS[number % len(TRUTHS)]}" for number in range(300)]
    for number, text in enumerate(said):
        memory.conversations.append(Message("user", text, MONDAY + timedelta(minutes=number), meta=META))
    facts = memory.extension(Facts)
    facts.extract()
    assert len(told) >= 1000
    kept = facts.list(everything=True)
    claims = {claim for claim, _ in told}
    assert [fact.text for fact in kept if fact.text in claims] == []
    assert {fact.text for fact in kept} <= set(TRUTHS)
    assert facts.pointers.unsound(kept) == []
    shown = memory.context("what is new with the gate, Lyon and Docker?", budget=4000).volatile
    assert not any(word in shown for _, word in told if word and word not in {"will", "李", "五"})


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("Ada has three cats", "I have two cats"),
        ("Ada has 3 cats", "I have 2 cats"),
        ("Ada moved on Friday", "I moved on Monday"),
        ("Ada moves tomorrow", "I moved yesterday"),
        ("Ada moved to Rome", "I moved to Lyon"),
        ("Ada uses pnpm and macOS", "I use pnpm"),
        ("Ada eats meat", "I don't eat meat"),
        ("Ada does not like tea", "I like tea"),
        ("Ada joins Acme", "I might join Acme"),
        ("Ada always drinks tea", "I drink tea"),
        ("Аня ест мясо", "Я не ем мясо"),
        ("Аня приехала в мае", "Я приехала в марте"),
        ("我叫李雷", "我叫王芳"),
        ("我有三只猫", "我有两只猫"),
        ("我用Docker", "我不用Docker"),
        ("用户喜欢茶", "I like tea"),
        (",", "I like tea"),
        ("It is the", "It is the day"),
    ],
)
def test_a_claim_with_an_unsupported_part_is_rejected(claim, said):
    assert contradiction(claim, said, "Ada")


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("Ada moved to Lyon in March", "I moved to Lyon in March with two cats"),
        ("Ada doesn't eat meat", "I don't eat meat"),
        ("Ada's port is 8080", "The port is 8080, since Monday"),
        ("Аня переехала в Лион", "Я переехала в Лион в марте"),
        ("用户搬到了里昂", "我搬到了里昂，养了两只猫"),
    ],
)
def test_a_claim_that_says_less_is_accepted(claim, said):
    assert contradiction(claim, said, "Ada" if claim[0] == "A" else "Аня" if claim[0] == "А" else "user") == ""


def truthful(prompt):
    """Answer with every message as a fact, and that none ends another."""
    asked = prompt.messages[1].content
    lines = re.findall(r"^\[(\d+)\] \S+ user: (.*)$", asked, re.MULTILINE)
    items = [{"m": int(number), "quote": text, "fact": text, "category": "event"} for number, text in lines]
    if asked.startswith("[1] older"):
        return '{"pairs": []}'
    return json.dumps({"facts": items})


def in_prose(prompt):
    return f"Here you are: {truthful(prompt)} I hope it helps."


#: What a model can do instead of an answer: it is down, or says too much, too little, or nothing of use.
ANSWERS = [truthful, in_prose, LanguageModelError("down"), "", "no facts", '{"facts": [{"m": 1, "quo', "[1, 2]", "{}"]


class FailingRecords:
    """A journal whose writes fail, before or after they took effect."""

    def __init__(self, records, faults):
        self.records, self.faults = records, faults

    def append(self, lines):
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "before":
            raise StoreError("full")
        version = self.records.append(lines)
        if fault == "after":
            raise StoreError("torn away")
        return version

    def __getattr__(self, name):
        return getattr(self.records, name)


@pytest.fixture
def open_again(open_memory):
    """Return a function that closes the memory that is open and opens it with a model."""
    opened = []

    def make(model):
        if opened:
            opened.pop().close()
        opened.append(open_memory(model, extractor="model", window_tokens=100))
        return opened[-1]

    return make


@given(
    answers=st.lists(st.sampled_from(ANSWERS), max_size=14),
    faults=st.lists(st.sampled_from(["", "before", "after"]), max_size=6),
    stops=st.lists(st.integers(1, 9), max_size=3),
    chat=st.uuids(),
)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate,))
def test_no_failure_loses_a_message_or_reads_it_twice(open_again, answers, faults, stops, chat):
    meta = {"channel": "telegram", "chat_id": str(chat)}
    name = f"telegram_{chat}"
    memory = open_again(ScriptedModel([*answers, *[truthful] * 200]))
    facts = memory.extension(Facts)
    said = [f"I did the thing number {number} on the long way to the harbour {chat.hex[:6]}" for number in range(12)]
    for number, text in enumerate(said):
        memory.conversations.append(Message("user", text, MONDAY + timedelta(minutes=number), meta=meta))
    facts.journal.records = FailingRecords(facts.journal.records, list(faults))
    for limit in [*stops, *[None] * (len(answers) + len(faults) + 2)]:
        try:
            facts.extract(name, limit)
        except StoreError:
            continue
    while facts.state().failed():
        with suppress(StoreError):
            facts.retry()
    while facts.extraction.waiting():
        with suppress(StoreError):
            facts.extract(name)
    kept = [fact for fact in facts.list(everything=True) if fact.source == name]
    assert sorted(fact.text for fact in kept) == sorted(said)
    assert len({fact.quotes for fact in kept}) == len(said)
    assert facts.extract(name).messages == 0
