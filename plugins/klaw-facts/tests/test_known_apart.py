"""Values of a slot that became known apart, on two machines or by an import: one of them is true at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from klaw_core import Memory, Message, load_config
from klaw_facts import Facts, settling
from klaw_facts.extracting.resolve import Resolver
from klaw_sync import Folder, MemoryKey, Sync

MAY = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEY = MemoryKey("00112233445566aa", bytes(range(32)))
needs_sync = pytest.mark.needs("klaw-sync")


@pytest.fixture
def machine(tmp_path):
    """Return a function that opens the memory of a machine."""

    def opened(name, **slots):
        data = tmp_path / name
        (data / "sync").mkdir(parents=True, exist_ok=True)
        KEY.save(data / "sync" / "key")
        told = {"extractor": "rules", "slots": slots}
        overrides = {"memory": {"embedding": {"type": "none"}}, "extensions": {"facts": told}}
        return Memory.open(load_config(data_dir=data, overrides=overrides, environment={"KLAW_CONFIG": "/dev/null"}))

    return opened


@pytest.fixture
def meet(machine, tmp_path):
    """Return a function that synchronises machines until nothing is new, and checks that their facts are equal."""

    def met(*names):
        for _ in range(6):
            sent = 0
            for name in names:
                sent += Sync(tmp_path / name, host=name).run([Folder(tmp_path / "folder")]).sent
                with machine(name) as memory:
                    memory.index()
        assert sent == 0
        found = []
        for name in names:
            with machine(name) as memory:
                facts = memory.extension(Facts).list(everything=True)
                found.append(sorted((fact.value, fact.valid_from, fact.valid_to, fact.ended_by) for fact in facts))
        assert found == [found[0]] * len(names)
        return [row[0] for row in found[0] if row[2] is None]

    return met


def remember(memory, text, moment, by="person"):
    facts = memory.extension(Facts)
    facts.keeper.now = lambda: moment
    return facts.remember(text, by=by)


def say(memory, text, moment):
    memory.conversations.append(Message("user", text, moment, meta={"channel": "t", "chat_id": "1", "sender_id": "7"}))
    memory.extension(Facts).extract()


@needs_sync
@pytest.mark.parametrize("way", [remember, say])
@pytest.mark.parametrize("order", [*permutations(("one", "two", "three"))])
def test_of_values_of_several_machines_the_last_one_is_true(machine, meet, way, order):
    for day, (name, city) in enumerate(zip(order, ("Oslo", "Rome", "Bern"), strict=True)):
        with machine(name) as memory:
            way(memory, f"I live in {city}.", MAY + timedelta(days=day))
    assert meet("one", "two", "three") == ["Bern"]
    with machine("one") as memory:
        facts = memory.extension(Facts)
        homes = [[fact.value for fact in facts.list(as_of=MAY + timedelta(days=day, hours=1))] for day in range(3)]
    assert homes == [["Oslo"], ["Rome"], ["Bern"]]


@needs_sync
@pytest.mark.promise("Y39")
def test_a_value_in_between_ends_the_one_before_it(machine, meet):
    for name, city, day in (("one", "Oslo", 0), ("one", "Bern", 4), ("two", "Rome", 2)):
        with machine(name) as memory:
            remember(memory, f"I live in {city}.", MAY + timedelta(days=day))
    assert meet("one", "two") == ["Bern"]
    with machine("one") as memory:
        facts = memory.extension(Facts)
        homes = [[fact.value for fact in facts.list(as_of=MAY + timedelta(days=day))] for day in (1, 3, 5)]
    assert homes == [["Oslo"], ["Rome"], ["Bern"]]


@needs_sync
def test_a_value_in_between_that_has_ended_elsewhere_ends_the_one_before_it(machine, meet):
    for name, city, day in (("one", "Oslo", 0), ("one", "Bern", 4), ("two", "Rome", 2), ("two", "Lima", 3)):
        with machine(name) as memory:
            remember(memory, f"I live in {city}.", MAY + timedelta(days=day))
    assert meet("one", "two") == ["Bern"]
    with machine("one") as memory:
        facts = memory.extension(Facts)
        homes = [[fact.value for fact in facts.list(as_of=MAY + timedelta(days=day, hours=1))] for day in range(5)]
        assert facts.keeper.review() == []  # a person has said all of it
    assert homes == [["Oslo"], ["Oslo"], ["Rome"], ["Lima"], ["Bern"]]


@needs_sync
def test_the_value_of_a_person_waits_for_the_person_if_an_agent_says_another_one(machine, meet):
    with machine("one") as memory:
        remember(memory, "I live in Oslo.", MAY)
    with machine("two") as memory:
        remember(memory, "I live in Rome.", MAY + timedelta(days=1), by="agent")
    assert meet("one", "two") == ["Oslo", "Rome"]
    for name in ("one", "two"):
        with machine(name) as memory:
            (waiting,) = memory.extension(Facts).keeper.review()
    with machine("two") as memory:
        memory.extension(Facts).keeper.decide(waiting.id, accept=False)
    assert meet("one", "two") == ["Oslo", "Rome"]
    with machine("one") as memory:
        assert memory.extension(Facts).keeper.review() == []


def test_what_a_person_has_reopened_stays(machine):
    with machine("one") as memory:
        facts = memory.extension(Facts)
        first = remember(memory, "I live in Oslo.", MAY)
        remember(memory, "I live in Rome.", MAY + timedelta(days=1))
        facts.keeper.reopen(first.id)
        memory.index()
        assert {fact.value for fact in facts.list()} == {"Oslo", "Rome"}


def test_what_a_person_has_retracted_and_reopened_stays(machine):
    with machine("one") as memory:
        facts = memory.extension(Facts)
        first = remember(memory, "I live in Oslo.", MAY)
        facts.keeper.retract(first.id)
        remember(memory, "I live in Rome.", MAY + timedelta(days=1))
        facts.keeper.reopen(first.id)
        memory.index()
        assert {fact.value for fact in facts.list()} == {"Oslo", "Rome"}


def test_what_a_person_has_refused_to_end_is_not_asked_again(machine):
    with machine("one") as memory:
        facts = memory.extension(Facts)
        remember(memory, "I live in Oslo.", MAY)
        remember(memory, "I live in Rome.", MAY + timedelta(days=1), by="agent")
        (waiting,) = facts.keeper.review()
        facts.keeper.decide(waiting.id, accept=False)
        memory.index()
        assert facts.keeper.review() == []
        assert {fact.value for fact in facts.list()} == {"Oslo", "Rome"}


def test_an_end_that_a_person_has_undone_is_not_made_again(machine):
    """Also not once there is a third value, which ends both."""
    for day, boat in enumerate(("Heron", "Curlew", "Plover")):
        with machine("one", boat="many") as memory:
            facts = memory.extension(Facts)
            facts.keeper.now = lambda day=day: MAY + timedelta(days=day)
            last = facts.remember(f"I sail the {boat}.", slot="boat", value=boat)
        with machine("one", boat="single") as memory:
            memory.index()
            facts = memory.extension(Facts)
            if boat == "Curlew":
                (batch,) = (line["batch"] for line in facts.journal.operations() if line["op"] == "end")
                facts.undo(batch)
                memory.index()
                assert {fact.value for fact in facts.list()} == {"Heron", "Curlew"}
            found = {fact.value: fact.ended_by for fact in facts.list(everything=True)}
    assert found == {"Heron": last.id, "Curlew": last.id, "Plover": None}


@needs_sync
@pytest.mark.parametrize("agent", ["one", "two", "three"])
@pytest.mark.parametrize("answer", ["none", "refused"])
def test_what_a_person_says_ends_what_the_person_said_before_an_agent(machine, meet, agent, answer):
    """Wherever the agent said it, and whether its value waits for the person, or was refused."""
    with machine("one") as memory:
        remember(memory, "I live in Oslo.", MAY)
    with machine(agent) as memory:
        remember(memory, "I live in Rome.", MAY + timedelta(days=1), by="agent")
        keeper = memory.extension(Facts).keeper
        for waiting in keeper.review() if answer == "refused" else ():
            keeper.decide(waiting.id, accept=False)
    with machine("two") as memory:
        remember(memory, "I live in Bern.", MAY + timedelta(days=2))
    assert meet(*dict.fromkeys(("one", "two", agent))) == ["Bern"]


def test_an_import_ends_what_it_follows(machine, tmp_path):
    for name, city, day in (("one", "Oslo", 0), ("two", "Rome", 1)):
        with machine(name) as memory:
            remember(memory, f"I live in {city}.", MAY + timedelta(days=day))
            memory.export(tmp_path / f"{name}.jsonl")
    for name, other in (("one", "two"), ("two", "one")):
        with machine(name) as memory:
            memory.import_(tmp_path / f"{other}.jsonl")
            assert [fact.value for fact in memory.extension(Facts).list()] == ["Rome"]


def test_the_values_of_a_slot_end_once_it_is_declared_to_have_one_at_a_time(machine):
    """However many they are; one that was retracted ends none."""
    boats = ("Heron", "Curlew", "Plover", "Avocet", "Dunlin", "Knot", "Ruff")
    with machine("one", boat="many") as memory:
        facts = memory.extension(Facts)
        for day, boat in enumerate(boats):
            facts.keeper.now = lambda day=day: MAY + timedelta(days=day)
            last = facts.remember(f"I sail the {boat}.", slot="boat", value=boat)
        facts.keeper.retract(last.id)
        memory.index()
        assert {fact.value for fact in facts.list()} == {*boats[:-1]}
    with machine("one", boat="single") as memory:
        memory.index()
        assert [fact.value for fact in memory.extension(Facts).list()] == ["Knot"]


def test_each_fact_is_read_for_its_own_slot_only(machine, monkeypatch):
    """The work grows with the number of facts, not with that of slots as well."""
    read = []

    class Counting(Resolver):
        def __attrs_post_init__(self):
            read.extend(self.state.facts)
            super().__attrs_post_init__()

    monkeypatch.setattr(settling, "Resolver", Counting)
    with machine("one", **{"boat*": "many"}) as memory:
        facts = memory.extension(Facts)
        for day, boat in enumerate(("Heron", "Curlew", "Plover")):
            facts.keeper.now = lambda day=day: MAY + timedelta(days=day)
            for slot in ("boat1", "boat2", "boat3"):
                facts.remember(f"{slot} is the {boat}.", slot=slot, value=boat)
    with machine("one", **{"boat*": "single"}) as memory:
        memory.index()
        facts = memory.extension(Facts).list(everything=True)
        assert sum(fact.valid_to is not None for fact in facts) == 6
    assert sorted(read) == sorted(fact.id for fact in facts for _ in range(2))  # for persons, and for others
