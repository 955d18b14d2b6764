"""Consolidation: everything that a run does is listed, undone by one call, and not done again."""

from datetime import UTC, datetime, timedelta

import pytest

from klaw_conversations import HistoryStore
from klaw_core import NotFoundError
from klaw_facts import Facts

KEY = "telegram:1"


@pytest.fixture
def facts(open_memory, say):
    """Facts of a person and of an agent, an old chat, and a clock that shows a day a year later."""
    memory = open_memory(None, compact_above=6)
    for number in range(9):
        say(memory, f"We decided on plan {number} for the bakery.")
    found = memory.extension(Facts)
    found.remember("I live in Lyon")
    found.remember("The person's build is red", category="temp")
    found.remember("The build is red", category="temp", by="agent")
    found.compression.now = lambda: datetime.now(UTC) + timedelta(days=400)
    return found


def state(facts):
    """Return what a person or a search can see of the facts, digests, the profile and the summaries."""
    whole = facts.state()
    summaries = [item.content for item in facts._conversations.summaries(the_chat(facts))]
    return {fact.text for fact in facts.list()}, set(whole.digests), whole.profile, summaries


def the_chat(facts):
    from klaw_journals import Chat

    return Chat.parse(facts._conversations.chats()[0].name)


def test_a_run_is_listed_and_undone_as_a_whole(facts):
    before = state(facts)
    said = facts.condense()
    assert "1 new digests" in said
    after = state(facts)
    assert "The build is red" not in after[0]
    assert (len(after[1]), len(after[2]), len(after[3])) == (1, 1, 1)
    (run,) = facts.runs()
    assert (len(run.days), len(run.archived), len(run.profile), len(run.chats)) == (1, 1, 1, 1)
    undone = facts.undo("last")
    assert (undone.facts, undone.digests, undone.summaries, undone.profile) == (1, 1, 1, True)
    assert state(facts) == before
    assert facts.runs()[0].is_undone


def test_what_was_undone_is_not_done_again(facts):
    before = state(facts)
    facts.condense()
    facts.undo("last")
    assert facts.condense() == "nothing new"
    assert state(facts) == before
    with pytest.raises(NotFoundError):
        facts.undo("last")


def test_a_second_run_adds_nothing(facts):
    facts.condense()
    before = facts.journal.operations()
    assert facts.condense() == "nothing new"
    assert facts.journal.operations() == before


def test_nothing_that_a_person_wrote_changes(facts):
    own = {fact.text for fact in facts.list() if fact.is_by_person}
    facts._conversations.add_summary(the_chat(facts), "my own summary")
    facts.condense()
    assert own <= {fact.text for fact in facts.list()}
    assert [item.content for item in facts._conversations.summaries(the_chat(facts))] == ["my own summary"]
    assert HistoryStore(facts._conversations).length(KEY) == 9


def test_a_run_stops_between_two_steps(facts):
    facts.condense(lambda: True)
    assert facts._conversations.summaries(the_chat(facts)) == ()
    facts.condense()
    assert len(facts._conversations.summaries(the_chat(facts))) == 1
