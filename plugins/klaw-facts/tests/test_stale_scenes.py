"""Scenes: what was true once is in a context only with a mark, beside what is true now. English, Russian, Chinese."""

from datetime import UTC, datetime, timedelta

import pytest

from klaw_facts import Facts
from klaw_journals import Message

META = {"channel": "telegram", "chat_id": "1"}
MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)

#: Question, what was said first, what was said later: both are in the context, and the first is marked.
SAID = {
    "a count": (
        "How many sources are in my Zotero library?",
        "My Zotero library has 45 sources.",
        "My Zotero library now has 52 sources.",
    ),
    "a count without a word of change": (
        "How many sources are in my Zotero library?",
        "My Zotero library has 45 sources.",
        "There are 52 sources in my Zotero library.",
    ),
    "a number that was reached": (
        "How many commits are merged into the main branch?",
        "The main branch has 150 commits merged.",
        "The commits merged into the main branch have now reached 165.",
    ),
    "what is counted after other words": (
        "How many probability problems do I practice?",
        "I practice 8 problems in probability.",
        "I increased my practice to 12 conditional probability problems.",
    ),
    "a deadline": (
        "What is the deadline of the first sprint?",
        "The first sprint has a deadline of April 1.",
        "I updated my plan for the new sprint deadline of April 5.",
    ),
    "a date that was moved, without the new one": (
        "When is the webinar on hiring ethics?",
        "The webinar on hiring ethics is on March 20.",
        "The webinar on hiring ethics was rescheduled.",
    ),
    "a time": (
        "What time do I visit Foot Locker next Saturday?",
        "I visit Foot Locker next Saturday at 3 PM.",
        "I am free at 4 PM next Saturday for my Foot Locker visit.",
    ),
    "a budget": (
        "What is my annual budget for sneakers?",
        "My annual budget for sneakers is $600.",
        "I increased the annual budget for sneakers to $650.",
    ),
    "a budget with few words": (
        "What is my monthly budget for books?",
        "I have $35 as a monthly budget for books.",
        "My book budget was raised to $50.",
    ),
    "a share": (
        "What tax rate applies to assets of the estate?",
        "The estate pays 15% tax on assets.",
        "A 12% tax rate applies to assets of the estate.",
    ),
    "a span": (
        "How long does the probate process take?",
        "The probate process takes 6-9 months.",
        "The probate process was shortened to 5-7 months.",
    ),
    "ru: a count": (
        "Сколько книг в моей библиотеке дома?",
        "В моей библиотеке дома 45 книг.",
        "Теперь в моей библиотеке дома 52 книги.",
    ),
    "ru: a date": (
        "Когда встреча с юристом по квартире?",
        "Встреча с юристом по квартире 3 марта.",
        "Встречу с юристом по квартире перенесли на 9 марта.",
    ),
    "ru: money": (
        "Какой бюджет на ремонт кухни?",
        "Бюджет на ремонт кухни 5000 евро.",
        "Бюджет на ремонт кухни увеличили до 7000 евро.",
    ),
    "zh: a date": ("项目会议的日期是什么时候？", "项目会议在3月5日。", "项目会议改到3月9日。"),
    "zh: money": ("厨房装修的预算是多少？", "厨房装修的预算是5000元。", "厨房装修的预算增加到7000元。"),
}

#: Question, a note or message with the old value, and the fact that replaced it.
REPLACED = {
    "the same words": ("Where do I live?", "I live in Lyon.", "I live in Lyon", "I live in Berlin", "Berlin"),
    "other words of the slot": (
        "Which city is my home?",
        "My home city is old. In May I moved to Lyon.",
        "I live in Lyon",
        "I live in Berlin",
        "Berlin",
    ),
    "a note about a person": (
        "Where does Ada live?",
        "Contacts\n\nAda lives in Lyon near the station.",
        "Ada lives in Lyon",
        "Ada lives in Berlin",
        "Berlin",
    ),
    "an employer": (
        "Where do I work?",
        "I work at Siemens on turbines.",
        "I work at Siemens",
        "I work at Bosch",
        "Bosch",
    ),
    "ru": ("Где я живу?", "Я живу в Лионе, недалеко от вокзала.", "Я живу в Лионе", "Я живу в Берлине", "Берлин"),
    "zh": ("我住在哪里？", "我住在里昂。", "我住在里昂", "我住在柏林", "柏林"),
}


def lines_of(context):
    return [line for line in str(context).splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("scene", SAID.values(), ids=SAID)
def test_a_later_statement_marks_the_earlier_one(scene, open_memory, say):
    question, old, new = scene
    memory = open_memory()
    say(memory, old)
    say(memory, new, days=3)
    memory.index()
    context = memory.context(question)
    notes = {item.text.split(": ", 1)[-1].strip(): item.note for item in context.items}
    assert set(notes) == {old, new}, str(context)
    assert "outdated" in notes[old], str(context)
    assert "2026-02-26" in notes[old]
    assert notes[new] == ""


@pytest.mark.parametrize("kind", ["note", "message"])
@pytest.mark.parametrize("scene", REPLACED.values(), ids=REPLACED)
def test_a_replaced_value_is_marked_beside_the_new_one(scene, kind, open_memory, tmp_path):
    question, text, old, new, value = scene
    memory = open_memory()
    facts = memory.extension(Facts)
    slot = {} if facts.remember(old).slot else {"slot": "home", "value": old.split()[-1]}
    if slot:
        facts.forget([fact.id for fact in facts.list()])
        facts.remember(old, subject="Ada", **slot)
    facts.remember(new, **({"subject": "Ada", **slot, "value": value} if slot else {}))
    if kind == "note":
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "a.md").write_text(text, "utf-8")
        memory.index(tmp_path / "notes")
    else:
        memory.conversations.append(Message("user", text, MONDAY, meta=META))
        memory.index()
    context = memory.context(question)
    (item,) = [item for item in context.items if not item.source.startswith("facts/")]
    assert "outdated" in item.note, str(context)
    assert value in item.note
    assert any(value in line for line in lines_of(context))


@pytest.mark.parametrize(
    "text",
    [
        "I lived in Lyon until spring.",
        "I moved from Lyon to Berlin.",
        "We met in Lyon, where the food is good.",
        "The train to Lyon takes two hours.",
    ],
)
def test_what_is_no_statement_of_the_old_value_is_not_marked(text, open_memory, say):
    memory = open_memory()
    facts = memory.extension(Facts)
    facts.remember("I live in Lyon")
    facts.remember("I live in Berlin")
    say(memory, text)
    memory.index()
    items = [item for item in memory.context("Lyon train food spring").items if not item.source.startswith("facts/")]
    assert [item.note for item in items] == [""]


@pytest.mark.parametrize(
    "question",
    [
        "How many days passed between the webinar on hiring ethics and the dinner?",
        "What was the original date of the webinar on hiring ethics?",
        "Did the date of the webinar on hiring ethics ever change?",
    ],
)
def test_a_question_about_the_past_marks_nothing(question, open_memory, say):
    memory = open_memory()
    say(memory, "The webinar on hiring ethics is on March 20.")
    say(memory, "The webinar on hiring ethics moved to March 25.", days=3)
    memory.index()
    assert [item.note for item in memory.context(question).items] == ["", ""]


def test_another_person_in_another_chat_is_not_marked(open_memory):
    memory = open_memory(extractor="rules")
    for chat, texts in {
        "1": ["I live in Lyon.", "I moved to Berlin."],
        "2": ["I live in Lyon, near the lake."],
    }.items():
        for day, text in enumerate(texts):
            meta = {"channel": "telegram", "chat_id": chat}
            memory.conversations.append(Message("user", text, MONDAY + timedelta(day), meta=meta))
    memory.index()
    context = memory.context("who lives in Lyon?")
    notes = {
        item.source.split("/")[1]: item.note
        for item in context.items
        if "Lyon" in item.text and "/" in item.source and item.source.startswith("conv")
    }
    assert "Berlin" in notes["telegram_1"]
    assert notes["telegram_2"] == ""
