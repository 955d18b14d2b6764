"""A model that compresses may shorten what was said, and nothing else; when it fails, nothing is lost."""

import json
import re

import pytest

from klaw_core import LanguageModelError
from klaw_facts import Facts
from klaw_testing.language_model import ScriptedModel

TRUTHS = (
    "I moved to Lyon in March with two cats.",
    "The gate listens on port 8080 since Monday.",
    "We decided not to use Docker.",
)
LIES = (
    "Moved to Rome.",
    "Moved to Lyon with three cats.",
    "Decided to use Docker.",
    "The gate always listens on port 8080.",
    "Berlin is nice.",
)


def answer(name, items):
    """Return what a model says: a list of objects under a name."""
    return json.dumps({name: items})


def digests(bullets):
    """Return an answer with bullets: pairs of the numbers of messages and a text."""
    return answer("bullets", [{"m": numbers, "text": text} for numbers, text in bullets])


@pytest.fixture
def chat(open_memory, say):
    """Return a function that opens a memory with a scripted compressor and three messages of one day in it."""

    def make(*answers, **options):
        model = ScriptedModel(list(answers))
        memory = open_memory(model, compressor="model", **options)
        for text in TRUTHS:
            say(memory, text)
        return memory, memory.extension(Facts), model

    return make


def the_digest(facts):
    """Return the only digest, and what it says."""
    (digest,) = facts.journal.state().digests.values()
    return digest, facts.compression.lines(digest)


def test_a_digest_of_a_model_names_its_messages(chat):
    _, facts, _ = chat(digests([([2], "The gate listens on port 8080."), ([1], "Moved to Lyon in March.")]))
    report = facts.compress(weekly=False)
    assert (report.days, report.calls, report.problem) == (1, 1, "")
    digest, lines = the_digest(facts)
    assert lines == ["Moved to Lyon in March.", "The gate listens on port 8080."]
    assert digest.made_by == "model:scripted"
    messages = facts.pointers.messages(digest.chat)
    assert [messages[quote.message].content for quote in digest.quotes] == list(TRUTHS[:2])
    assert facts.stats().calls_today == 1
    assert facts.compress(weekly=False).calls == 0


@pytest.mark.parametrize("false", LIES)
def test_an_unsupported_line_of_a_digest_is_replaced_by_the_message(chat, false):
    _, facts, _ = chat(digests([([1, 2, 3], false), ([99], "Nobody said this."), ([3], "")]))
    assert facts.compress(weekly=False).refused >= 3
    _, lines = the_digest(facts)
    assert lines == [f"user: {said}" for said in TRUTHS]


def test_rules_write_the_digest_if_the_model_gives_no_valid_line(chat):
    _, facts, _ = chat("I am", "no JSON")
    report = facts.compress(weekly=False)
    assert (report.days, report.problem) == (1, "")
    digest, lines = the_digest(facts)
    assert digest.made_by == "rules"
    assert lines
    assert set(lines) <= {f"user: {said}" for said in TRUTHS}


def test_days_without_an_answer_of_the_model_wait(chat, say):
    memory, facts, model = chat(
        digests([([1], "Moved to Lyon in March.")]), LanguageModelError("down"), LanguageModelError("down")
    )
    say(memory, "I adopted a dog.", days=1)
    report = facts.compress()
    assert (report.days, report.problem) == (1, "down")
    assert [day for _, day in facts.journal.state().digests] == ["2026-02-23"]
    model.answers += [digests([([1], "Adopted a dog.")])]
    assert facts.compress(weekly=False).days == 1
    assert [day for _, day in facts.journal.state().digests] == ["2026-02-23", "2026-02-24"]


def test_a_dry_run_calls_no_model(chat):
    _, facts, model = chat()
    assert facts.compress(dry_run=True).days == 1
    assert model.prompts == []
    assert facts.journal.operations() == []


PETS = [f"Ada likes animal number {number} of the farm." for number in range(14)]


def pets(prompt):
    """Answer the prompts of merging: the first two belong together, the next two do not, others are not there."""
    text = prompt.messages[-1].content
    if "animal" not in text:
        return answer("lines", [])
    number = re.findall(r"number (\d+)", text)
    merged = f"Ada likes animal number {number[0]} and number {number[1]} of the farm."
    items = [
        {"f": [1, 2], "text": merged},
        {"f": [3, 4], "text": "Ada likes animals of the farm."},  # their numbers are missing
        {"f": [5, 2], "text": merged},  # one is merged already
        {"f": [77, 78], "text": "Ada likes animals of the farm."},
    ]
    return answer("merges", items)


@pytest.fixture
def farm(open_memory):
    """Return the facts of a farm, of which there are too many."""
    memory = open_memory(ScriptedModel([pets] * 9), compressor="model")
    facts = memory.extension(Facts)
    for text in PETS:
        facts.remember(text, by="agent", category="decision")
    return facts


def shown(facts):
    """Return the texts that lists show."""
    return {fact.text for fact in facts.list()}


MERGED = "Ada likes animal number {} and number {} of the farm."


def merged_fact(facts):
    """Return the merge, and the texts of its facts."""
    (fact,) = [fact for fact in facts.list() if fact.supersedes]
    return fact, [facts.get(name).text for name in fact.supersedes]


def test_a_merge_keeps_every_number_and_is_undone_as_a_whole(farm):
    assert farm.compress(daily=False).merged == 2
    fact, parts = merged_fact(farm)
    assert len(shown(farm)) == len(PETS) - 1
    assert not shown(farm) & set(parts)
    assert [farm.get(name).is_archived for name in fact.supersedes] == [True, True]
    assert fact.made_by == "model:scripted"
    farm.keeper.undo(fact.batch)
    assert shown(farm) == set(PETS)
    farm.compress(daily=False)
    assert set(parts) <= shown(farm)  # what was taken apart by hand stays apart


def test_facts_of_a_person_are_never_merged(open_memory):
    facts = open_memory(ScriptedModel([pets] * 9), compressor="model").extension(Facts)
    for text in PETS:
        facts.remember(text, category="decision")
    assert facts.compress(daily=False).merged == 0
    assert shown(facts) == set(PETS)


def test_forgetting_a_fact_removes_its_merge_and_restores_the_others(farm, tmp_path):
    farm.compress(daily=False)
    fact, parts = merged_fact(farm)
    assert not [item for item in farm.search(parts[1], 20) if item.text == parts[1]]
    farm.forget([fact.supersedes[0]])
    assert shown(farm) == set(PETS) - {parts[0]}
    assert [item for item in farm.search(parts[1], 20) if item.text == parts[1]]
    assert not [item for item in farm.search(parts[1], 20) if item.id == fact.id]
    assert parts[0].encode() not in (tmp_path / "data" / "facts.jsonl").read_bytes()
    assert fact.text.encode() not in (tmp_path / "data" / "facts.jsonl").read_bytes()


def test_forgetting_a_merge_forgets_its_facts(farm, tmp_path):
    farm.compress(daily=False)
    fact, parts = merged_fact(farm)
    farm.forget([fact.id])
    assert shown(farm) == set(PETS) - set(parts)
    journal = (tmp_path / "data" / "facts.jsonl").read_text("utf-8")
    assert not [text for text in (fact.text, *parts) if text in journal]


def test_the_profile_of_a_model_changes_only_with_its_facts(open_memory):
    def choose(prompt):
        lines = prompt.messages[-1].content.splitlines()
        number = next(index for index, line in enumerate(lines, start=1) if "green tea" in line)
        items = [{"f": number, "text": "Likes green tea."}, {"f": 3 - number, "text": "Hates 7 dogs."}]
        return answer("lines", items)

    model = ScriptedModel([choose, choose])
    facts = open_memory(model, compressor="model").extension(Facts)
    facts.remember("I live in Lyon")
    facts.remember("Ada likes green tea a lot", by="agent", category="preference")
    facts.remember("Ada has two dogs", by="agent", category="relationship")
    assert facts.compress(daily=False).profile_changed
    profile = [line for _, line in facts.journal.state().profile]
    assert sorted(profile) == ["Ada has two dogs", "Likes green tea.", "home: Lyon"]
    assert not facts.compress(daily=False).profile_changed
    assert len(model.prompts) == 1
    facts.forget([next(fact.id for fact in facts.list() if "dogs" in fact.text)])
    assert facts.journal.state().profile == ()


def test_an_empty_answer_is_requested_again_if_rules_find_a_statement(open_memory, say):
    said = "I moved to Lyon in March."
    found = answer("facts", [{"m": 1, "quote": said, "fact": said, "category": "identity", "when": None}])
    model = ScriptedModel([answer("facts", []), found])
    memory = open_memory(model, extractor="model")
    say(memory, said)
    facts = memory.extension(Facts)
    facts.extract()
    assert [fact.text for fact in facts.list()] == [said]
    assert len(model.prompts) == 2


def test_an_empty_answer_to_small_talk_is_accepted(open_memory, say):
    model = ScriptedModel([answer("facts", [])])
    memory = open_memory(model, extractor="model")
    say(memory, "ok thanks")
    memory.extension(Facts).extract()
    assert len(model.prompts) == 1


def test_forgetting_a_message_removes_the_digest_of_a_model(chat, tmp_path):
    memory, facts, _ = chat(digests([([1, 2], "Moved to Lyon in March, and the gate listens on port 8080.")]))
    facts.compress(weekly=False)
    digest, _ = the_digest(facts)
    chat_name, message = digest.quotes[0].chat, digest.quotes[0].message
    memory.forget(f"{chat_name}/{message}")
    assert not facts.journal.state().digests
    assert b"Moved to Lyon" not in (tmp_path / "data" / "facts.jsonl").read_bytes()


def test_a_run_counts_the_lines_of_the_profile_that_there_is(open_memory, say):
    memory = open_memory(extractor="rules")
    facts = memory.extension(Facts)
    say(memory, "Always answer in metric units.")
    facts.extract()
    assert (facts.compress().profile, facts.compress().profile) == (1, 1)
    facts.undo("last")
    again = facts.compress()
    assert (again.profile, again.profile_changed, facts.state().profile) == (0, False, ())
