"""What one person says never ends, and in a context of another chat never shows, what another person said."""

from datetime import UTC, datetime, timedelta
from random import Random

from klaw_core import Message
from klaw_facts import Facts

MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)
CITIES = ("Lyon", "Oslo", "Rome", "Bern", "Porto")


def say(memory, chat, text, minutes, **meta):
    there = {"channel": "tg", "chat_id": chat, **meta}
    memory.conversations.append(Message("user", text, MONDAY + timedelta(minutes=minutes), meta=there))


def test_nobody_ends_or_is_shown_what_another_person_said(open_memory):
    dice, memory = Random(4), open_memory(extractor="rules", max_ends=99)
    people = [("1", {}), ("2", {}), ("3", {"name": "Anna"}), ("4", {"name": "Anna"}), ("5", {"sender_id": 7})]
    homes = {}
    for minutes in range(30):
        chat, meta = dice.choice(people)
        homes[chat] = dice.choice(CITIES)
        say(memory, chat, f"I live in {homes[chat]}.", minutes, **meta)
    facts = memory.extension(Facts)
    facts.extract()
    assert sorted(fact.value for fact in facts.list()) == sorted(homes.values())
    for fact in facts.list(everything=True):
        assert fact.ended_by is None or facts.get(fact.ended_by).who == fact.who
    for chat in homes:
        items = memory.context("Where do I live?", chat=f"tg_{chat}").items
        shown = {item.source.removeprefix("facts/") for item in items if item.source.startswith("facts/")}
        assert {quote.chat for name in shown for quote in facts.get(name).quotes} <= {f"tg_{chat}"}


def test_a_sender_with_an_id_is_one_person_in_every_chat(open_memory):
    memory = open_memory(extractor="rules", max_ends=99)
    say(memory, "1", "I live in Lyon.", 1, sender_id=7, name="Anna")
    say(memory, "2", "I moved to Oslo.", 2, sender_id=7, name="Anna K.")
    facts = memory.extension(Facts)
    facts.extract()
    assert [fact.value for fact in facts.list()] == ["Oslo"]
    notices = memory.context("Where do I live, in Oslo?", chat="tg_9").notices
    assert "facts of people who are not in tg_9, left out: 1" in notices


def test_a_statement_of_a_slot_passes_with_a_greeting(open_memory):
    memory = open_memory(extractor="rules", max_ends=99)
    for number, text in enumerate(
        ["Hello, my name is Vera.", "你好，我叫李明，很高兴见到你！", "Привет, меня зовут Анна."]
    ):
        say(memory, str(number), text, number)
    facts = memory.extension(Facts)
    facts.extract()
    assert sorted(fact.value for fact in facts.list()) == ["Vera", "Анна", "李明"]


def test_the_history_of_a_fact_has_only_what_its_person_said(open_memory):
    memory = open_memory(extractor="rules")
    say(memory, "1", "I live in Lyon.", 1)
    say(memory, "2", "I live in Oslo.", 2)
    facts = memory.extension(Facts)
    facts.extract()
    assert [[item.value for item in facts.history(fact.id)] for fact in facts.list()] == [["Lyon"], ["Oslo"]]
    assert facts.history() == []
