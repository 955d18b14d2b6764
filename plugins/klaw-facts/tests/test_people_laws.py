"""Laws of merging and splitting people.

A merge and its split change nothing. A merge is symmetric and transitive, and changes no fact of anybody else. What was
said between a merge and its split holds afterwards for those who said it, as if they had never been merged.
"""

import shutil
import tempfile
import weakref
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import NotFoundError, RecordError
from klaw_facts import Fact, FactsOptions, Quote
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import fold
from klaw_facts.journal import FactsJournal
from klaw_facts.keeper import FactKeeper
from klaw_facts.people import People
from klaw_facts.records import check_operation
from klaw_facts.values import make_id
from klaw_journals import FileJournals
from klaw_testing.laws import scaled

START = datetime(2026, 1, 1, tzinfo=UTC)
PEOPLE = ("tg:7", "tg_1/user", "tg_2/Anna", "tg_3/user")
CITIES = ("Lyon", "Oslo", "Rome")
DAYS = 60
MOMENTS = [START + timedelta(day, hours=1) for day in range(-5, DAYS + 20)]
SILENT = SimpleNamespace(journal=SimpleNamespace(chats=tuple))

sayings = st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from(CITIES), st.booleans()), max_size=8)


class Home:
    """A memory without chats: statements are read one by one, a day apart."""

    def __init__(self, directory):
        self.clock = START
        file = FileJournals(Path(directory)).records("facts", check_operation)
        self.journal = FactsJournal(file, Path(directory) / "facts")
        self.keeper = FactKeeper(
            self.journal, FactsOptions(max_ends=99), Path(directory) / "facts", lambda _ids: (), now=lambda: self.clock
        )
        self.people = People(
            *(self.journal, self.keeper, self.keeper.options, lambda: SILENT, lambda _ids: ()), now=lambda: self.clock
        )

    def say(self, person, city, *, is_news=False, slot="home"):
        self.clock += timedelta(1)
        number = len(self.journal.operations())
        resolver = Resolver(self.journal.state(), self.keeper.options, self.clock, "rules", f"b-{number}")
        text = f"I live in {city}."
        fact = Fact(
            make_id("f", person, text, number),
            text,
            person=person,
            slot=slot,
            value=city,
            quotes=(Quote("tg_1", f"m{number}", 0, 9),),
            valid_from=self.clock - timedelta(hours=6) if is_news else self.clock,
            precision="moment" if is_news else "by",
            said_at=self.clock,
            verified="quote",
            made_by="rules",
        )
        resolver.add(fact)
        self.journal.append(resolver.finish())

    def say_all(self, told):
        for person, city, is_news in told:
            self.say(person, city, is_news=is_news)

    @property
    def facts(self):
        return self.journal.state().facts

    def shown(self, *, of=None):
        """Return whose values are shown at each moment."""
        state = self.journal.state()
        return [
            sorted((fact.identity, fact.value) for fact in state.visible(moment).values() if of is None or of(fact))
            for moment in MOMENTS
        ]

    def shown_once(self):
        return [sorted(set(here)) for here in self.shown()]


def at_home(told=()):
    place = tempfile.mkdtemp()
    home = Home(place)
    weakref.finalize(home, shutil.rmtree, place, ignore_errors=True)
    home.say_all(told)
    return home


pairs = st.permutations(PEOPLE).map(lambda names: names[:2])


@settings(max_examples=scaled(40), deadline=None)
@given(sayings, pairs)
def test_a_merge_and_its_split_change_nothing(told, pair):
    home = at_home(told)
    _known_to(home, *pair)
    before, shown = home.facts.copy(), home.shown()
    home.people.merge(*pair)
    home.people.split(pair[1])
    assert (home.facts, home.shown()) == (before, shown)
    assert home.journal.state() == fold(home.journal.operations())


@settings(max_examples=scaled(40), deadline=None)
@given(sayings, pairs)
def test_a_merge_changes_no_fact_of_anybody_else_and_leaves_one_current_value(told, pair):
    home = at_home(told)
    _known_to(home, *pair)
    before = {name: fact for name, fact in home.facts.items() if fact.identity not in pair}
    home.people.merge(*pair)
    assert {name: fact for name, fact in home.facts.items() if fact.identity not in pair} == before
    mine = home.shown(of=lambda fact: fact.identity in pair and fact.slot == "home")
    said = [(person, city) for person, city, _ in told if person in pair]
    assert {value for _, value in mine[-1]} == {city for _, city in said[-1:]}
    changed = [place for place in range(1, len(said)) if said[place] != said[place - 1]]
    if len({person for person, _ in said}) == 1 + len(
        [place for place in changed if said[place][0] != said[place - 1][0]]
    ):
        assert all(len({value for _, value in here}) <= 1 for here in mine)  # they did not speak in turn


@settings(max_examples=scaled(40), deadline=None)
@given(sayings, st.permutations(PEOPLE).map(lambda names: names[:3]))
def test_a_merge_is_symmetric_and_transitive(told, three):
    results = []
    for first, second, third in permutations(three):
        home = at_home(told)
        _known_to(home, *three)
        home.people.merge(first, second)
        home.people.merge(third, second)
        (person,) = [person for person in home.people.list() if first in person.identities]
        assert set(person.identities) == set(three)
        results.append((person, home.shown_once()))
    at_once = at_home(told)
    _known_to(at_once, *three)
    results.append((at_once.people.merge(*three), at_once.shown_once()))
    assert all(result == results[0] for result in results)


@settings(max_examples=scaled(40), deadline=None)
@given(sayings, sayings, pairs)
def test_what_was_said_while_two_counted_as_one_holds_for_each_after_the_split(told, later, pair):
    home, apart = at_home(told), at_home(told)
    for one in (home, apart):
        _known_to(one, *pair)
    home.people.merge(*pair)
    for one in (home, apart):
        one.say_all(later)
    home.people.split(pair[0])
    assert home.shown_once() == apart.shown_once()
    assert home.journal.state() == fold(home.journal.operations())


def _known_to(home, *names):
    """Let people be known who stated no home."""
    for name in names:
        home.say(name, "tea", slot="drink")


def test_a_merge_proposes_the_end_of_what_a_person_wrote_and_ends_nothing_of_it():
    home = at_home()
    mine = home.keeper.remember("I live in Lyon.")
    home.clock += timedelta(1)
    home.say("tg:7", "Oslo")
    home.people.merge("owner", "tg:7")
    assert home.keeper.get(mine.id).valid_to is None
    (proposal,) = home.keeper.review()
    assert proposal.fact == mine.id
    home.people.split("owner")
    assert home.keeper.review() == []


def test_the_split_takes_back_the_last_merge_that_named_the_person():
    home = at_home((name, "Lyon", False) for name in PEOPLE)
    a, b, c, _ = PEOPLE
    home.people.merge(a, b)
    home.people.merge(b, c)
    home.people.split(b)
    assert {frozenset(person.identities) for person in home.people.list()} == {
        *(frozenset({a, b}), frozenset({c}), frozenset({PEOPLE[3]}))
    }
    home.people.split(a)
    assert all(len(person.identities) == 1 for person in home.people.list())


def test_wrong_people_are_refused_with_what_helps():
    home = at_home([("tg_1/Anna", "Lyon", False), ("tg_2/Anna", "Oslo", False)])
    for name in ("tg_1/Anna", "tg_2/Anna"):
        home.say(name, "tea", slot="drink")
    before = home.journal.operations()
    with pytest.raises(NotFoundError, match=r"no person 'Bert'.*klaw people list"):
        home.people.merge("tg_1/Anna", "Bert")
    with pytest.raises(RecordError, match="one person already"):
        home.people.merge("tg_1/Anna", "tg_1/Anna")
    for alone in ((), ("tg_1/Anna",)):
        with pytest.raises(RecordError, match="two people or more"):
            home.people.merge(*alone)
    with pytest.raises(RecordError, match="was not merged"):
        home.people.split("tg_1/Anna")
    home.people.merge("tg_1/Anna", "tg_2/Anna")
    with pytest.raises(RecordError, match="one person already"):
        home.people.merge("tg_2/Anna", "tg_1/Anna")
    assert len(home.journal.operations()) > len(before)


def test_a_person_of_whom_nothing_is_left_can_be_split():
    home = at_home([("tg:7", "Lyon", False), ("tg_2/Anna", "Oslo", False)])
    home.people.merge("tg:7", "tg_2/Anna")
    home.keeper.forget(list(home.facts), lambda _fact: ())
    assert [person.id for person in home.people.split("tg:7")] == ["tg:7", "tg_2/Anna"]
    assert home.people.list() == []


def test_a_merge_of_a_person_ends_any_number_of_facts():
    home = at_home()
    home.people.options = home.keeper.options = FactsOptions(max_ends=1)
    for number in range(3):
        home.say("tg:7", "Lyon", slot=f"port:{number}")
        home.say("tg_2/Anna", "Oslo", slot=f"port:{number}")
    home.people.merge("tg:7", "tg_2/Anna")
    assert home.keeper.review() == []
    assert home.shown()[-1] == [("tg_2/Anna", "Oslo")] * 3
    home.people.split("tg:7")
    assert len(home.shown()[-1]) == 6
