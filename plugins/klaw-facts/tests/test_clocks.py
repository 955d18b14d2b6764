"""Laws of clocks that are put back or forward: what was acknowledged last is the value that is true.

A statement without a time was said when it was stored, after everything that was known by then. The messages of a chat
and a day are in the order of their lines. Another message was said when it says.
"""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import Memory, load_config
from klaw_facts import Fact, Facts, FactsOptions, Quote
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import fold
from klaw_facts.importing import add_facts
from klaw_facts.journal import FactsJournal
from klaw_facts.keeper import FactKeeper
from klaw_facts.records import check_operation
from klaw_journals import Chat, FileJournals, Message
from klaw_testing.laws import scaled

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
CITIES = ("Lyon", "Oslo", "Rome")
SHIFTS = (0, 1, 60, -1, -600, -86_400, 40_000_000, -40_000_000)
WAYS = ("stated", "imported")


def config_in(place):
    """Return a configuration without an embedder."""
    memory = {"embedding": {"type": "none"}}
    return load_config(data_dir=Path(place), overrides={"memory": memory}, environment={"KLAW_CONFIG": "/dev/null"})


class Home:
    """A memory whose clock is put forward and back."""

    def __init__(self, directory):
        self.clock, self.number = NOON, 0
        file = FileJournals(Path(directory)).records("facts", check_operation)
        self.journal = FactsJournal(file, Path(directory) / "facts")
        self.options = FactsOptions()
        self.keeper = FactKeeper(
            self.journal, self.options, Path(directory) / "facts", lambda _ids: (), now=lambda: self.clock
        )

    def read(self, city, said, chat="tg_1"):
        """Take a fact from a message."""
        quote, self.number = Quote(chat, f"m{self.number:04}", 0, 9), self.number + 1
        times = {"valid_from": said, "precision": "by", "said_at": said}
        of = {"person": "owner", "slot": "home", "value": city, "quotes": (quote,)}
        resolver = Resolver(self.journal.state(), self.options, self.clock, "rules", f"b-{self.number}")
        resolver.add(
            Fact(f"f-{self.number:016}", f"I live in {city}.", made_by="rules", verified="quote", **of, **times)
        )
        self.journal.append(resolver.finish())

    def say(self, way, city):
        """Tell a value now, in one of two ways."""
        if way == "stated":
            self.keeper.remember(f"I live in {city}.")
        else:
            self.number += 1
            fact = Fact(f"f-i{self.number}", f"I live in {city}.", slot="home", value=city, made_by="import")
            add_facts(self.journal, self.options, [fact], lambda _fact: False, now=self.clock)

    def homes(self, moment):
        """Return the homes at a moment."""
        return [fact.value for fact in fold(self.journal.operations()).visible(moment).values()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shift", [-600, -1, 600])
def test_a_value_that_is_told_after_the_clock_was_put_back_is_the_later_one(tmp_path, way, shift):
    home = Home(tmp_path)
    home.say(way, "Rome")
    home.clock += timedelta(seconds=shift)
    home.say(way, "Oslo")
    assert home.homes(max(NOON, home.clock) + timedelta(hours=1)) == ["Oslo"]
    assert home.homes(home.clock) == ["Oslo"]


@settings(max_examples=scaled(150), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SHIFTS), st.sampled_from(CITIES)), min_size=1, max_size=9))
def test_the_value_that_was_acknowledged_last_is_true_whatever_the_clock_said(told):
    with tempfile.TemporaryDirectory() as place:
        home, last, before = Home(place), NOON, ""
        for shift, city in told:
            home.clock += timedelta(seconds=shift)
            home.say("stated", city)
            last = max(last, home.clock)
            assert set(home.homes(last + timedelta(hours=1))) == {city}
            if city != before:
                assert set(home.homes(home.clock)) == {city}
            before = city
        ended = [fact for fact in home.journal.state().facts.values() if fact.valid_to is not None]
        assert [fact for fact in ended if fact.valid_from > fact.valid_to] == []


@settings(max_examples=scaled(25), deadline=None)
@given(st.lists(st.tuples(st.sampled_from((0, 5, -5, 90, -90)), st.sampled_from(CITIES)), min_size=1, max_size=7))
def test_the_messages_of_a_day_are_in_the_order_of_their_lines(told):
    with tempfile.TemporaryDirectory() as place, Memory.open(config_in(place)) as memory:
        clock = NOON
        for shift, city in told:
            clock += timedelta(minutes=shift, seconds=1)
            memory.conversations.append(Message("user", f"I live in {city}.", clock, meta=Chat("tg", "1").meta))
        facts = memory.extension(Facts)
        facts.extract()
        assert {fact.value for fact in facts.state().visible(NOON + timedelta(days=1)).values()} == {told[-1][1]}


def test_a_message_of_an_old_chat_keeps_its_time(tmp_path):
    home = Home(tmp_path)
    home.say("stated", "Rome")
    home.read("Lyon", NOON - timedelta(days=400), "old_1")
    home.read("Oslo", NOON - timedelta(days=300), "old_1")
    assert home.homes(NOON) == ["Rome"]
    assert home.homes(NOON - timedelta(days=350)) == ["Lyon"]


def test_a_statement_is_later_than_a_message_from_a_clock_that_was_ahead(tmp_path):
    home = Home(tmp_path)
    home.read("Lyon", NOON + timedelta(hours=8))
    home.say("stated", "Rome")
    assert home.homes(NOON) == ["Rome"]
    assert home.homes(NOON + timedelta(days=1)) == ["Rome"]


def test_a_planned_value_still_follows_what_is_stated_now(tmp_path):
    home = Home(tmp_path)
    home.keeper.remember("I live in Oslo.", valid_from=NOON + timedelta(days=30))
    home.say("stated", "Rome")
    assert home.homes(NOON) == ["Rome"]
    assert home.homes(NOON + timedelta(days=31)) == ["Oslo"]


@pytest.mark.parametrize("years", [-6, 9])
def test_a_wrong_clock_leaves_one_value_and_nothing_to_decide(tmp_path, years):
    """Once, after four values: more than ``max_ends`` have ended before, and none of them ends again for a decision."""
    home = Home(tmp_path)
    for city in ("Oslo", "Rome", "Lima", "Bern"):
        home.clock += timedelta(minutes=1)
        home.say("stated", city)
    right, home.clock = home.clock, home.clock.replace(year=home.clock.year + years)
    home.say("stated", "Kiel")
    assert home.homes(max(right, home.clock) + timedelta(hours=1)) == ["Kiel"]
    home.clock = right
    for city in ("Lyon", "Wien"):
        home.clock += timedelta(minutes=1)
        before = len([*home.journal.operations()])
        home.say("stated", city)
        said = [line["op"] for line in [*home.journal.operations()][before:]]
        assert home.homes(home.clock) == [city]
    assert said == ["assert", "end"], "only the value before"
    assert home.keeper.review() == []


@pytest.mark.parametrize("change", ["end", "retract", "archive"])
def test_an_end_that_came_otherwise_needs_no_decision(tmp_path, change):
    home = Home(tmp_path)
    home.options = home.keeper.options = FactsOptions(max_ends=0)
    for city in ("Oslo", "Rome"):
        home.clock += timedelta(minutes=1)
        home.say("stated", city)
    (waiting,) = home.keeper.review()
    assert home.journal.state().facts[waiting.fact].value == "Oslo"
    getattr(home.keeper, change)(waiting.fact)
    assert home.keeper.review() == []
