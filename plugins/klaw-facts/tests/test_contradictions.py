"""Stories in which people contradict each other, and themselves within a day.

The oracle knows only who said what and when. Whatever is said: nothing ends before it begins, one value of a slot is
true for each person, it is the one that the person said last, and nobody's statement concerns anybody else.
"""

from datetime import UTC, datetime, timedelta
from random import Random

from attrs import evolve, frozen

from klaw_facts import FactsOptions
from klaw_facts.extracting import rule_extractor
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import make_fact
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import State, fold

START = datetime(2026, 1, 5, tzinfo=UTC)
DAYS = 40
SAYS = {
    "home": (
        "I live in {}.",
        "I now live in {}.",
        "I moved to {} yesterday.",
        "I moved to {} last week.",
        "Я живу в {}.",
    ),
    "employer": ("我在{}工作。",),
    "name": ("My name is {}.", "Hello, my name is {}!", "Меня зовут {}."),
}
#: What also says what is so now.
PRESENT = {**SAYS, "home": (*SAYS["home"], "I have lived in {} since 2019.")}
VALUES = {
    "I": ("Lyon", "Oslo", "Rome", "Bern"),
    "M": ("Amy", "Ada", "Eve"),
    "H": ("Amy", "Ada", "Eve"),
    "Я": ("Риме", "Берне", "Осло", "Твери"),
    "М": ("Анна", "Вера", "Ольга", "Нина"),
    "我": ("腾讯", "华为", "联想", "京东", "Acme"),
}
PEOPLE = ("tg:1", "tg:2", "tg_3/Anna")
MOMENTS = [START + timedelta(hours=6 * number) for number in range(-60, 4 * DAYS + 8)]


@frozen
class Told:
    """A statement about the present or the near past."""

    person: str
    slot: str
    value: str
    text: str
    said: datetime
    id: str

    @property
    def is_undated(self):
        return not {"yesterday.", "week.", "month."} & set(self.text.split())


def story(dice, *, repeats=True, undated=False, says=SAYS):
    """Return what is said, in order: often several statements of one person within a day."""
    told, moment, used = [], START, set()
    for _ in range(dice.randint(2, 14)):
        moment += timedelta(minutes=dice.choice([1, 7, 90, 60 * 20, 60 * 50]) + dice.random())
        person, slot = dice.choice(PEOPLE), dice.choice(sorted(SAYS))
        pattern = dice.choice(says[slot])
        value = dice.choice(VALUES[pattern[0]])
        one = Told(person, slot, value, pattern.format(value), moment, f"m{len(told):02}")
        if (repeats or (person, slot, value) not in used) and (one.is_undated or not undated):
            told.append(one)
            used.add((person, slot, value))
    return told


def read(told, lines=(), *, size=1):
    """Return the lines of the journal after messages were read, some at a time."""
    lines = list(lines)
    for first in range(0, len(told), size):
        window = [
            SourceMessage("tg_9", item.id, "user", "user", item.text, item.said, item.person)
            for item in told[first : first + size]
        ]
        now = max(message.said_at for message in window) + timedelta(minutes=1)
        resolver = Resolver(
            *(fold(lines) if lines else State(), FactsOptions(max_ends=99), now, "rules", f"b-{len(lines)}-{first}")
        )
        for candidate in rule_extractor.extract(window):
            if (fact := make_fact(candidate, window)) is not None and fact.slot:
                resolver.add(fact)
        known = {line["id"] for line in lines}
        lines += [line for line in resolver.finish() if line["id"] not in known]
    return lines


def shown(lines):
    """Return the values at each moment, with their persons and slots."""
    state = fold(lines)
    return [sorted((fact.who, fact.slot, fact.value) for fact in state.visible(moment).values()) for moment in MOMENTS]


def faults_of(told, lines):
    """Yield what is wrong whatever was said."""
    facts = fold(lines).facts
    for fact in facts.values():
        if fact.valid_to is not None and fact.valid_from > fact.valid_to:
            yield "ends before it begins", fact
        by = facts.get(fact.ended_by, fact)
        if (by.who, by.slot) != (fact.who, fact.slot):
            yield "ended by what somebody else said, or said of something else", fact
    for here in shown(lines):
        owners = [(who, slot) for who, slot, _ in here]
        if len(owners) > len(set(owners)):
            yield "several values", here, told


def test_whoever_contradicts_whom_each_has_one_value_and_none_ends_before_it_begins(cases):
    wrong = []
    for number in range(cases.number(150, 5_000)):
        dice = Random(f"quarrel {number}")
        told = story(dice)
        wrong += faults_of(told, read(told, size=dice.choice([1, 3, 50])))
    assert wrong == []


def test_the_last_that_a_person_says_of_the_present_is_true_for_this_person(cases):
    wrong = []
    for number in range(cases.number(150, 5_000)):
        dice = Random(f"last {number}")
        told = story(dice, undated=True, says=dice.choice([SAYS, PRESENT]))
        lines = read(told, size=dice.choice([1, 3, 50]))
        last = {(item.person, item.slot): item.value for item in told}
        if shown(lines)[-1] != sorted((*owner, value) for owner, value in last.items()):
            wrong.append((number, told))
    assert wrong == []


def test_people_who_contradict_each_other_are_as_if_they_were_alone(cases):
    wrong = []
    for number in range(cases.number(60, 2_000)):
        told = story(Random(f"alone {number}"))
        together = shown(read(told))
        for person in PEOPLE:
            alone = shown(read([item for item in told if item.person == person]))
            if [[item for item in here if item[0] == person] for here in together] != alone:
                wrong.append((number, person, told))
    assert wrong == []


def test_what_is_read_twice_changes_nothing(cases):
    wrong = []
    for number in range(cases.number(60, 2_000)):
        dice = Random(f"twice {number}")
        told = story(dice)
        lines = read(told)
        again = read(told, lines, size=dice.choice([1, 50]))
        wrong += [(number, told)] if shown(again) != shown(lines) else []
    assert wrong == []


def test_the_order_of_reading_does_not_matter_if_nobody_repeats_a_value(cases):
    wrong = []
    for number in range(cases.number(60, 2_000)):
        dice = Random(f"order {number}")
        told = story(dice, repeats=False, undated=True)
        shuffled = read(dice.sample(told, len(told)), size=dice.choice([1, 3]))
        wrong += [(number, told)] if shown(shuffled) != shown(read(told)) else []
    assert wrong == []


def test_of_two_statements_at_one_moment_the_later_one_in_the_chat_is_true_in_any_order(cases):
    wrong = []
    for number in range(cases.number(30, 500)):
        told = story(Random(f"tie {number}"), repeats=False, undated=True)
        tied = [evolve(item, said=START + timedelta(place // 2)) for place, item in enumerate(told)]
        wrong += [(number, tied)] if shown(read(tied, size=1)) != shown(read(tied, size=50)) else []
    assert wrong == []


def test_what_is_said_later_to_be_so_since_earlier_is_so_now_in_either_order_of_reading():
    for text in ("I've lived in Berlin since 2015.", "I have lived in Berlin since May."):
        told = [
            Told(PEOPLE[0], "home", "Oslo", "I live in Oslo.", START, "m0"),
            Told(PEOPLE[0], "home", "Berlin", text, START + timedelta(3), "m1"),
        ]
        for order in (told, told[::-1]):
            assert shown(read(order))[-1] == [(PEOPLE[0], "home", "Berlin")], text
            assert list(faults_of(told, read(order))) == []


def test_a_value_that_was_corrected_is_read_twice_without_a_change_and_ends_on_no_exact_day():
    told = [
        Told(PEOPLE[0], "home", "Bern", "I moved to Bern yesterday.", START, "m0"),
        Told(PEOPLE[0], "home", "Bern", "I now live in Bern.", START + timedelta(minutes=1), "m1"),
        Told(PEOPLE[0], "home", "Rome", "I have lived in Rome since 2019.", START + timedelta(1), "m2"),
    ]
    lines = read(told)
    assert shown(read(told, lines, size=1)) == shown(lines)
    assert len(fold(read(told, lines, size=1)).facts) == len(fold(lines).facts)
    bern = next(fact for fact in fold(lines).facts.values() if fact.value == "Bern")
    assert bern.end_precision == "by"
