"""What one person says never ends, and in a context of another chat never shows, what another person said."""

import json
from datetime import UTC, datetime, timedelta
from itertools import permutations
from random import Random

import pytest

from klaw_facts import Facts, FactsOptions
from klaw_journals import Message, Record

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


OWNERS = {"person": "Paris", "agent": "Bern"}


@pytest.mark.parametrize("by", sorted(OWNERS))
@pytest.mark.parametrize("order", list(permutations(["owner", "named", "unnamed"])), ids=" ".join)
def test_no_stranger_ends_or_changes_what_was_stated_for_the_owner(open_memory, by, order):
    """Two strangers and the owner, whose chat is known; in any order of chats and of reading."""
    memory = open_memory(extractor="rules", max_ends=99)
    facts = memory.extension(Facts)
    said = {
        "owner": ("1", "I moved to Rome.", {"sender_id": 1}),
        "named": ("2", "I live in Oslo.", {"name": "Anna", "sender_id": 2}),
        "unnamed": ("3", f"I live in {OWNERS[by]}.", {}),
    }
    facts.keeper.now = lambda: MONDAY - timedelta(1)
    stated = facts.remember(f"I live in {OWNERS[by]}.", by=by)
    tea = facts.remember("I like tea", by=by)
    say(memory, "4", "I like tea", 0)
    say(memory, "1", "Hello, it's me.", 0, sender_id=1)
    facts.people.merge("owner", "tg:1")
    for minutes, who in enumerate(order, 1):
        chat, text, meta = said[who]
        say(memory, chat, text, minutes, **meta)
        facts.extract()
        if who != "owner":
            ended_by = facts.get(stated.id).ended_by
            assert ended_by is None or facts.get(ended_by).value == "Rome"
    after = facts.get(stated.id)
    assert (after.text, after.quotes, after.confirmations) == (stated.text, (), 1)
    assert facts.get(tea.id) == tea
    if by == "agent":
        assert facts.get(after.ended_by).value == "Rome"
    else:
        assert [proposal.fact for proposal in facts.keeper.review()] == [stated.id]
    assert sorted(fact.value for fact in facts.list() if fact.slot and fact.who != "owner") == sorted(
        [OWNERS[by], "Oslo"]
    )


def test_what_is_remembered_ends_nothing_that_a_stranger_said(open_memory):
    memory = open_memory(extractor="rules")
    facts = memory.extension(Facts)
    for chat, meta in (("1", {}), ("2", {}), ("3", {"name": "Anna"}), ("4", {"sender_id": 4})):
        say(memory, chat, "I live in Oslo.", int(chat), **meta)
    facts.extract()
    facts.remember("I live in Paris")
    facts.remember("I live in Rome", subject="Anna")
    assert sorted(fact.value for fact in facts.list()) == ["Oslo"] * 4 + ["Paris", "Rome"]
    facts.people.merge("owner/Anna", "tg_3/Anna")
    assert sorted(fact.value for fact in facts.list()) == ["Oslo"] * 3 + ["Paris", "Rome"]


def test_the_only_person_without_a_name_and_an_id_is_the_owner(open_memory):
    memory = open_memory(extractor="rules")
    facts = memory.extension(Facts)
    facts.keeper.now = lambda: MONDAY - timedelta(1)
    facts.remember("I live in Paris", by="agent")
    say(memory, "2", "I live in Oslo.", 1, name="Anna")
    say(memory, "1", "I moved to Rome.", 2)
    facts.extract()
    assert sorted(fact.value for fact in facts.list()) == ["Oslo", "Rome"]
    (owner, _) = facts.people.list()
    assert (owner.id, owner.identities, owner.chats) == ("owner", ("owner", "tg_1/user"), ("tg_1",))
    facts.people.split("tg_1/user")
    assert sorted(fact.value for fact in facts.list()) == ["Oslo", "Paris", "Rome"]
    say(memory, "1", "I moved to Bern.", 3)
    facts.extract()
    assert sorted(fact.value for fact in facts.list()) == ["Bern", "Oslo", "Paris"], "a person has parted them"


def test_a_context_shows_what_a_merged_person_said_in_another_chat(open_memory):
    memory = open_memory(extractor="rules")
    facts = memory.extension(Facts)
    say(memory, "1", "I live in Lyon.", 1, name="Anna")
    say(memory, "2", "Hi!", 2, name="Anna K.")
    facts.extract()
    assert "left out: 1" in " ".join(memory.context("Where do I live, in Lyon?", chat="tg_2").notices)
    facts.people.merge("Anna", "Anna K.")
    assert "left out" not in " ".join(memory.context("Where do I live, in Lyon?", chat="tg_2").notices)
    assert "left out: 1" in " ".join(memory.context("Where do I live, in Lyon?", chat="tg_3").notices)


def test_people_are_kept_by_an_export_and_by_forgetting_and_merged_by_no_foreign_export(open_memory, tmp_path):
    memory = open_memory(extractor="rules")
    facts = memory.extension(Facts)
    say(memory, "1", "I live in Lyon.", 1, name="Anna")
    say(memory, "2", "I live in Oslo.", 2, sender_id=7)
    facts.extract()
    facts.people.merge("Anna", "tg:7")
    lines = [Record("fact", {"value": dict(line)}) for line in facts.journal.operations()]
    other = Facts(FactsOptions(), tmp_path / "other")
    assert other.add(iter(lines)).added == len(lines)
    assert other.journal.state() == facts.state()
    facts.forget([facts.list(everything=True)[0].id])
    assert facts.people.list()[0].identities == ("tg:7", "tg_1/Anna")
    facts.people.split("tg:7")
    (merge,) = [line for line in lines if line.value["value"]["op"] == "merge"]
    foreign = {**merge.value["value"], "id": "o-foreign", "batch": "b-foreign"}
    counts = facts.add(iter([Record("fact", {"value": foreign})]))
    assert (counts.added, len(counts.kept)) == (0, 1)
    assert len(facts.people.list()) == 2


def test_people_are_listed_merged_and_split_by_commands(open_memory, klaw):
    memory = open_memory(extractor="rules")
    assert "nobody has said anything" in klaw("people").output
    say(memory, "1", "I live in Lyon.", 1, name="Anna", sender_id=7)
    say(memory, "2", "I live in Oslo.", 2, name="Bert")
    say(memory, "3", "I live in Rome.", 3, name="Bert")
    memory.extension(Facts).extract()
    rows = json.loads(klaw("people", "list", "--json").stdout)
    assert {row["id"]: (row["names"], row["chats"], row["sender_ids"], row["facts"]) for row in rows} == {
        "tg:7": (["Anna"], ["tg_1"], ["7"], 1),
        "tg_2/Bert": (["Bert"], ["tg_2"], [], 1),
        "tg_3/Bert": (["Bert"], ["tg_3"], [], 1),
    }
    assert "may be tg_2/Bert, tg_3/Bert: name one of them" in klaw("people", "merge", "Anna", "Bert").stderr
    assert "no person 'Cy'" in klaw("people", "merge", "Anna", "Cy").stderr
    alone = klaw("people", "merge", "Anna")
    assert (alone.exit_code, "missing argument 'PERSON...'" in alone.stderr) == (2, True)
    assert "merged tg:7 (tg:7, tg_2/Bert): 2 facts" in klaw("people", "merge", "anna", "tg_2/Bert").stdout
    assert sorted(fact.value for fact in memory.extension(Facts).list()) == ["Oslo", "Rome"]
    assert "also tg_2/Bert" in klaw("people").stdout
    assert len(json.loads(klaw("people", "split", "tg:7", "--json").stdout)) == 2
    assert "was not merged" in klaw("people", "split", "Anna").stderr
    assert sorted(fact.value for fact in memory.extension(Facts).list()) == ["Lyon", "Oslo", "Rome"]


def test_the_owner_is_the_owner_whatever_the_channel_is_called(open_memory):
    memory = open_memory(extractor="rules")
    facts = memory.extension(Facts)
    facts.remember("I like tea")
    there = {"channel": "discord", "chat_id": "1", "sender_id": 7}
    memory.conversations.append(Message("user", "I live in Lyon.", MONDAY, meta=there))
    facts.extract()
    assert facts.people.merge("discord:7", "owner").id == "owner"
    assert {fact.who for fact in facts.list()} == {"owner"}
