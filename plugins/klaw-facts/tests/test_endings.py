"""What a person says to be so no more ends that value, and nothing else; in whichever order it becomes known."""

from datetime import UTC, datetime
from itertools import permutations

import pytest

from klaw_facts import FactsOptions
from klaw_facts.extracting import forms, rule_extractor, slots
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import make_fact
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import State, fold
from klaw_facts.settling import settled

#: For each slot: what states a value of it, what says that this is so no more, and the same of another value.
OF_SLOTS = {
    "name": ("My name is Anna.", "My name is no longer Anna.", "My name is not Maria."),
    "home": ("I live in Leeds.", "I don't live in Leeds anymore.", "I no longer live in York."),
    "employer": ("I work at Bosch.", "I left Bosch.", "I don't work at Siemens any more."),
    "job_title": ("My job title is team lead.", "My job title is no longer team lead.", "I'm not a nurse."),
    "birthday": ("My birthday is 3 May.", "My birthday isn't 3 May.", "My birthday isn't 4 May."),
    "partner": ("My partner is Sam.", "Sam and I broke up.", "I broke up with Peter."),
    "timezone": ("My timezone is CET.", "My time zone is not CET any longer.", "My timezone is no longer EST."),
    "language": ("My native language is Polish.", "My native language is not Polish.", "My language is not Czech."),
    "email": ("My email is a@b.org.", "My email is no longer a@b.org.", "My email isn't c@d.org anymore."),
    "phone": ("My phone is 555-0199.", "My phone is not 555-0199 anymore.", "My phone is no longer 555-0123."),
    "deadline:": (
        "The report is due on 3 May.",
        "The report is no longer due on 3 May.",
        "The plan is no longer due on 3 May.",
    ),
    "version:": ("We use Ruby 3.2.", "We no longer use Ruby 3.2.", "We don't use Flask 3.2."),
    "port:": ("The API runs on port 8080.", "The API doesn't run on port 8080.", "The shop doesn't run on port 8080."),
}
WAYS = [
    ("I live in Leeds.", "I moved out of Leeds."),
    ("I live in Leeds.", "We have moved away from Leeds."),
    ("I live in Leeds, England.", "I do not live in Leeds."),
    ("I live in Leeds.", "I haven't lived in Leeds since March."),
    ("I work at Siemens.", "I quit my job at Siemens in March."),
    ("I work at Siemens.", "Siemens laid me off yesterday."),
    ("I work at Siemens.", "I was fired by Siemens."),
    ("I work at Siemens.", "I'm leaving Siemens tomorrow."),
    ("I work at Siemens.", "I'm out of work."),
    ("I work at Siemens.", "I lost my job."),
    ("I work at Siemens.", "I'm unemployed at the moment."),
    ("I work at Siemens.", "They let me go in April."),
    ("I work at Siemens.", "Yesterday was my last day at Siemens."),
    ("I work at Siemens.", "My last day at Siemens was yesterday."),
    ("I live in Leeds.", "I left Leeds for good."),
    ("I live in Leeds.", "I gave up my flat in Leeds."),
    ("I live in Leeds.", "I'm homeless at the moment."),
    ("My wife is Laura.", "Laura died in April."),
    ("My wife is Laura.", "My wife Laura died."),
    ("My wife is Laura.", "My wife left me."),
    ("My wife is Laura.", "I'm a widower."),
    ("I'm a nurse.", "I'm retired now."),
    ("I work at Siemens.", "I retired last month."),
    ("My wife is Laura.", "I got divorced."),
    ("My wife is Laura.", "Laura and I separated last week."),
    ("My wife is Laura.", "I'm single again."),
    ("My girlfriend's name is Anna Berg.", "I broke up with Anna."),
    ("Я живу в Омске.", "Я больше не живу в Омске."),
    ("Я живу в Омске.", "Я съехала из Омска."),
    ("Я работаю в Яндексе.", "Я уволился из Яндекса."),
    ("Я работаю в Яндексе.", "Меня уволили."),
    ("我住在北京。", "我已经不住在北京了。"),
    ("我住在北京。", "我上个月从北京搬走了。"),
    ("我在华为工作。", "我从华为离职了。"),
    ("我在华为工作。", "我不在华为工作了。"),
    ("我在腾讯上班。", "我离开了腾讯。"),
]
#: Each denies something else than the value, is about somebody else, or is not said of the present.
STILL_SO = [
    ("I work at Bosch.", "I no longer work at Bosch as a manager."),
    ("I work at Bosch.", "I don't work at Bosch full-time."),
    ("I work at Bosch.", "I don't work at Bosch in Stuttgart."),
    ("I work at Bosch.", "I don't work at Bosch on Fridays."),
    ("I live in Rome.", "I no longer live in Rome with my parents."),
    ("I live in Rome.", "I don't live in Rome alone."),
    ("I live in Rome.", "She said: I no longer live in Rome."),
    ("I live in Rome.", "If I no longer live in Rome, who gets the flat?"),
    ("I live in Rome.", "Translate: I don't live in Rome anymore."),
    ("I live in Rome.", "I don't live in Rome, do I?"),
    ("I live in Rome.", "Tom doesn't live in Rome anymore."),
    ("I live in Rome.", "I left Rome this morning."),
    ("I live in Rome.", "I left Rome for good food."),
    ("I live in Rome.", "I sold my flat in Turin."),
    ("I work at Bosch.", "They let me go early."),
    ("I work at Bosch.", "They let Tom go."),
    ("I work at Bosch.", "Yesterday was my last day at Siemens."),
    ("I work at Bosch.", "Yesterday was my last day at school."),
    ("My wife is Laura.", "Peter died in April."),
    ("My wife is Laura.", "Laura left me a note."),
    ("My wife is Laura.", "My boss left me."),
    ("My wife is Laura.", "My phone died."),
    ("My job title is team lead.", "My job title is not really team lead."),
    ("I work at Bosch.", "I almost quit my job."),
    ("I work at Bosch.", "I wish I was retired."),
    ("My name is Anna.", "My name is not Anna Berg."),
    ("My wife is Laura.", "My sister got divorced."),
    ("I work at Bosch.", "I'm not working at Bosch next week."),
    ("I work at Bosch.", "I don't work at Bosch tomorrow."),
    ("I work at Bosch.", "I don't just work at Bosch."),
    ("I work at Bosch.", "I don't work remotely at Bosch."),
    ("I work at Bosch.", "I'm out of work today."),
    ("I live in Rome.", "I haven't just moved to Rome."),
    ("I live in Rome.", "I'm not living in Rome next week."),
    ("我住在北京。", "他不住在北京了。"),
]


def at(day):
    return datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC)


def lines_of(*told, ends=True):
    """Return the lines of the journal after messages were read one at a time: (day, text)."""
    lines = []
    for number, (day, text) in enumerate(told):
        message = SourceMessage("t_1", f"m{number}", "user", "Ada", text, at(day), person="t:1")
        resolver = Resolver(
            fold(lines) if lines else State(), FactsOptions(), at(f"2027-01-{number + 1:02}"), "rules-1", f"b-{number}"
        )
        for candidate in rule_extractor.extract([message]):
            fact = make_fact(candidate, [message])
            if fact is not None:
                resolver.add(fact)
        lines += resolver.finish() if ends else resolver.operations
    return lines


def values(lines, day):
    return [fact.value for fact in fold(lines).visible(at(day)).values() if fact.slot]


def test_every_slot_has_an_example():
    assert {slot for slot, *_ in forms.FORMS} == OF_SLOTS.keys()


@pytest.mark.parametrize(("stated", "denied"), [*((so, no) for so, no, _ in OF_SLOTS.values()), *WAYS])
def test_what_is_so_no_more_has_ended(stated, denied):
    lines = lines_of(("2026-02-01", stated), ("2026-06-01", denied))
    (value,) = values(lines, "2026-02-02")
    assert values(lines, "2026-06-02") == []
    assert value in stated
    assert slots.slot_of(denied) is None


@pytest.mark.parametrize(("stated", "denied"), [*((so, no) for so, _, no in OF_SLOTS.values()), *STILL_SO])
def test_nothing_else_has_ended(stated, denied):
    lines = lines_of(("2026-02-01", stated), ("2026-06-01", denied))
    assert len(values(lines, "2026-02-02")) == 1
    assert values(lines, "2026-06-02") == values(lines, "2026-02-02")


@pytest.mark.parametrize(
    "told",
    [
        [("2026-02-01", "I live in Ghent."), ("2026-05-01", "I no longer live in Ghent.")],
        [
            ("2026-02-01", "I live in Ghent."),
            ("2026-04-01", "I live in Bruges."),
            ("2026-05-01", "I don't live in Ghent anymore."),
        ],
        [
            ("2026-02-01", "I live in Bern."),
            ("2026-05-01", "I moved out of Bern."),
            ("2026-07-01", "I moved to Bern yesterday."),
        ],
        [
            ("2026-02-01", "I work at Bosch."),
            ("2026-05-01", "I left Bosch in April."),
            ("2026-07-01", "I work at Audi."),
        ],
    ],
)
def test_an_end_is_the_same_in_whichever_order_it_becomes_known(told):
    days = [f"2026-{month:02}-15" for month in range(1, 13)]
    histories = [[values(lines_of(*order), day) for day in days] for order in permutations(told)]
    assert len({str(history) for history in histories}) == 1
    assert max(map(len, histories[0])) <= 1


def test_the_end_is_as_old_as_it_is_said_to_be():
    lines = lines_of(("2026-01-10", "I work at Bosch."), ("2026-05-20", "I no longer work at Bosch since March."))
    assert [values(lines, day) for day in ("2026-01-11", "2026-02-20", "2026-04-15")] == [["Bosch"], ["Bosch"], []]
    lines = lines_of(("2026-01-10", "I work at Bosch."), ("2026-05-20", "I'm leaving Bosch on 1 July."))
    assert [values(lines, day) for day in ("2026-06-20", "2026-07-02")] == [["Bosch"], []]


def test_a_message_may_say_what_has_ended_and_what_follows():
    told = ("2026-02-01", "I work at Nokia.")
    lines = lines_of(told, ("2026-06-01", "I left Nokia in March and started at Ericsson on 1 May."))
    assert [values(lines, day) for day in ("2026-02-02", "2026-04-15", "2026-06-02")] == [["Nokia"], [], ["Ericsson"]]
    lines = lines_of(told, ("2026-06-01", "I no longer work at Nokia, I work at Ericsson."))
    assert values(lines, "2026-06-02") == ["Ericsson"]


def test_another_machine_ends_what_this_one_says_to_be_so_no_more():
    lines = lines_of(("2026-02-01", "I live in Leeds."), ("2026-06-01", "I no longer live in Leeds."), ends=False)
    assert values(lines, "2026-06-02") == ["Leeds"]
    more = settled(fold(lines), lines, FactsOptions())
    assert values(lines + more, "2026-06-02") == []
    assert settled(fold(lines + more), lines + more, FactsOptions()) == []


def test_a_person_may_say_it_by_hand(open_memory):
    facts = open_memory().extension("facts")
    facts.remember("I live in Leeds")
    facts.remember("I no longer live in Leeds")
    assert [fact.text for fact in facts.list()] == ["I no longer live in Leeds"]
    facts.remember("I live in York")
    assert [fact.value for fact in facts.list() if fact.slot == "home"] == ["York"]


def test_a_text_that_a_person_has_changed_ends_nothing_more(open_memory):
    facts = open_memory().extension("facts")
    said = facts.remember("I no longer live in Leeds")
    facts.keeper.edit(said.id, text="I no longer live alone")
    facts.remember("I live in Leeds")
    assert [fact.value for fact in facts.list() if fact.slot == "home"] == ["Leeds"]


@pytest.mark.parametrize(
    ("question", "stated", "denied"),
    [
        ("where do I live?", "I live in Leeds.", "I don't live in Leeds anymore."),
        ("where do I work?", "I work at Bosch.", "I left Bosch."),
        ("我住在哪里？", "我住在北京。", "我已经不住在北京了。"),
    ],
)
def test_a_context_marks_what_is_so_no_more_until_it_is_so_again(open_memory, say, question, stated, denied):
    memory = open_memory(extractor="rules")
    facts = memory.extension("facts")

    def notes():
        facts.extract()
        memory.index()
        return [item.note for item in memory.context(question).items if stated in item.text]

    say(memory, stated)
    assert not any("outdated" in note for note in notes())
    say(memory, denied, days=9)
    marks = notes()
    assert marks
    assert all("is this no more" in note for note in marks)
    say(memory, stated, days=20)
    assert not any("outdated" in note for note in notes())
