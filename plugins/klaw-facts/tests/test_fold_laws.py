"""Every moment equals a naive fold of the lines, and nothing but a person changes what a person wrote."""

import shutil
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from klaw_core import RecordError
from klaw_facts import Fact, FactsOptions, Quote
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import fold
from klaw_facts.journal import FactsJournal
from klaw_facts.keeper import FactKeeper
from klaw_facts.people import People
from klaw_facts.records import batch_record, check_operation, fact_record
from klaw_facts.values import Batch, make_id
from klaw_journals import FileJournals, format_ts, parse_ts
from klaw_testing.laws import scaled

START = datetime(2026, 1, 1, tzinfo=UTC)
META = {"channel": "telegram", "chat_id": "1"}
CITIES = ("Paris", "Lyon", "Rome")
TEXTS = (*(f"I live in {city}" for city in CITIES), "I like tea", "The gate port is 80")
HOURS = st.integers(0, 40)


def at(hours):
    return START + timedelta(hours=hours)


def is_before(end, begin):
    """Return whether a fact with this period would end before the day of its begin."""
    return None not in (end, begin) and end + timedelta(days=1) <= begin


def refused_if(condition):
    return pytest.raises(RecordError, match="before the begin") if condition else nullcontext()


def is_of_person(lines, name):
    """Return whether a person stated a fact or changed its text, in these lines."""
    own = [line for line in lines if name in (line["id"], line.get("fact"))]
    return any(line["by"] == "person" and (line["op"] == "assert" or "text" in line.get("changes", ())) for line in own)


def naive_period(lines, name):  # noqa: C901  # one case an operation
    """Return from when to when a fact is true, told by reading every line for it; None if it is hidden.

    If only the day is known on which it began, and another fact is true on that day and followed by it, it began then.
    """
    begin = end = precision = None
    is_gone = is_hidden = False
    for place, line in enumerate(lines):
        before = lines[:place]
        by_person = line["by"] == "person"
        if is_void(before, line):
            continue
        is_followed = line["op"] == "end" and line.get("by_fact") == name and any(item["id"] == name for item in before)
        if is_followed and precision == "day" and (by_person or not is_of_person(before, name)):
            until, midnight = parse_ts(line["valid_to"]), begin.replace(hour=0, minute=0, second=0, microsecond=0)
            begin = max(begin, until) if until <= midnight + timedelta(days=1) else begin
        if name not in (line["id"], line.get("fact")):
            continue
        told = line.get("changes", {}) if line["op"] == "edit" else line
        match line["op"]:
            case "assert" | "edit":
                begin = parse_ts(told["valid_from"]) if told.get("valid_from") else begin
                end = parse_ts(told["valid_to"]) if told.get("valid_to") else end
                if told.get("valid_from"):
                    known = precision if precision not in {None, "by", "unknown"} else None
                    precision = told.get("precision") or known or ("day" if line["op"] == "edit" else None)
            case "end":
                end = parse_ts(line.get("valid_to") or line["ts"])
            case "reopen":
                end, is_gone = None, False
            case "retract":
                is_gone = True
            case "archive" | "restore":
                is_hidden = line["op"] == "archive"
    return None if is_gone or is_hidden else (begin, end)


def is_void(before, line):
    """Return whether a line changes nothing: of a person's fact, or between the owner and the chat, who are two."""
    is_guarded = line["op"] in {"end", "archive", "edit", "retract"} and line["by"] != "person"
    if is_guarded and is_of_person(before, line["fact"]):
        return True
    is_there = any(item["id"] == line.get("by_fact") for item in before)
    return "merged" in line and is_there and not any(item["op"] == "merge" for item in before)


def naive_visible(lines, as_of, known_at):
    """Return the ids of the facts that are shown, told by reading every line for every fact."""
    known = [line for line in lines if parse_ts(line["ts"]) <= known_at]
    undone = {line["batch"] for line in known if line["op"] == "undo"}
    counted = [line for line in known if line["op"] == "batch" or line.get("batch") not in undone]
    shown = set()
    for name in [line["id"] for line in counted if line["op"] == "assert"]:
        period = naive_period(counted, name)
        if period is not None:
            begin, end = period
            if (begin is None or begin <= as_of) and (end is None or end > as_of):
                shown.add(name)
    return shown


class FactsMachine(RuleBasedStateMachine):
    """People, agents and rules write in any order; every moment can be asked for at any time."""

    @initialize()
    def begin(self):
        self.directory = Path(tempfile.mkdtemp())
        made = count()  # in order: facts are drawn by their ids
        self.ids = patch("klaw_facts.keeper.secrets.token_hex", lambda _bytes: f"{next(made):064x}")
        self.ids.start()
        self.clock = START
        self.open()

    def open(self):
        self.journal = FactsJournal(
            FileJournals(self.directory).records("facts", check_operation), self.directory / "facts"
        )
        self.keeper = FactKeeper(
            self.journal, FactsOptions(max_ends=2), self.directory / "facts", lambda _ids: (), now=lambda: self.clock
        )

    @property
    def people(self):
        silent = SimpleNamespace(journal=SimpleNamespace(chats=tuple))
        return People(
            *(self.journal, self.keeper, self.keeper.options, lambda: silent, lambda _ids: ()), now=lambda: self.clock
        )

    def teardown(self):
        if hasattr(self, "directory"):
            self.ids.stop()
            shutil.rmtree(self.directory)

    @rule(hours=st.integers(0, 5))
    def wait(self, hours):
        self.clock += timedelta(hours=hours)

    @rule(text=st.sampled_from(TEXTS), by=st.sampled_from(["person", "agent"]), begin=st.none() | HOURS)
    def remember(self, text, by, begin):
        mine = self.of_persons()
        fact = self.keeper.remember(text, by=by, valid_from=None if begin is None else at(begin))
        assert self.keeper.get(fact.id) == fact
        if by != "person":
            assert self.of_persons() == mine

    @rule(said=st.lists(st.tuples(st.sampled_from(TEXTS), HOURS, st.integers(0, 30)), min_size=1, max_size=4))
    def extract(self, said):
        """What rules do with what was said; it ends, merges and rewrites nothing of a person's."""
        mine = self.of_persons()
        state = self.journal.state()
        name = make_id("b", len(self.journal.operations()))
        resolver = Resolver(state, self.keeper.options, self.clock, "rules", name)
        for text, hours, message in said:
            slot, value = ("home", text.rpartition(" ")[2]) if "live" in text else (None, None)
            moment = at(hours)
            resolver.add(
                Fact(
                    make_id("f", text, message),
                    text,
                    slot=slot,
                    value=value,
                    quotes=(Quote("telegram_1", f"m{message}", 0, len(text)),),
                    valid_from=moment if slot else None,
                    said_at=moment,
                    verified="quote",
                    made_by="rules",
                )
            )
        batch = Batch(name, "telegram_1", "", f"m{len(self.journal.operations())}", "rules", "done")
        self.journal.append([*resolver.finish(), batch_record(batch, self.clock)])
        assert self.of_persons() == mine

    @precondition(lambda self: self.journal.state().facts)
    @rule(data=st.data(), hours=HOURS)
    def change(self, data, hours):
        name = data.draw(st.sampled_from(sorted(self.journal.state().facts)))
        keeper, fact = self.keeper, self.keeper.get(name)
        op = data.draw(st.sampled_from(["end", "reopen", "retract", "archive", "edit", "pin", "begin"]))
        match op:
            case "end":
                with refused_if(is_before(at(hours), fact.valid_from)):
                    keeper.end(name, at(hours))
            case "edit":
                keeper.edit(name, text="I like coffee")
            case "begin":
                with refused_if(is_before(fact.valid_to, at(hours))):
                    keeper.edit(name, valid_from=at(hours))
            case "archive" | "pin":
                getattr(keeper, op)(name, on=data.draw(st.booleans()))
            case _:
                getattr(keeper, op)(name)

    @precondition(lambda self: self.journal.state().batches)
    @rule(data=st.data())
    def undo(self, data):
        """A person takes back what a batch did; what persons wrote is not of a batch of rules."""
        mine, batch = self.of_persons(), data.draw(st.sampled_from(sorted(self.journal.state().batches)))
        lines = [line for line in self.journal.operations() if line.get("batch") == batch]
        # A fact that the batch made or changed before a person did is of both.
        touched = {name for line in lines for name in (line["id"], line.get("fact"))}
        self.keeper.undo(batch)
        left = self.of_persons()
        kept = mine.keys() - touched
        assert {name: left[name] for name in kept} == {name: mine[name] for name in kept}

    @precondition(
        lambda self: {"owner", "telegram_1/user"} <= {fact.who for fact in self.journal.state().facts.values()}
    )
    @rule()
    def merge(self):
        mine = self.of_persons()
        assert self.people.merge("owner", "telegram_1/user").identities == ("owner", "telegram_1/user")
        assert self.of_persons() == mine

    @precondition(lambda self: self.journal.state().people)
    @rule()
    def split(self):
        """It takes back ends between the two, also those that a person's statement brought; nothing else."""
        mine = self.of_persons()
        across = {line["fact"] for line in self.journal.operations() if line.get("merged")}
        assert len(self.people.split("owner")) == 2
        left = self.of_persons()
        assert left.keys() == mine.keys()
        assert {name: left[name] for name in mine.keys() - across} == {
            name: mine[name] for name in mine.keys() - across
        }
        assert all(left[name][:3] == mine[name][:3] for name in sorted(across & mine.keys()))

    @precondition(lambda self: self.keeper.review())
    @rule(data=st.data(), accept=st.booleans())
    def decide(self, data, accept):
        proposal = data.draw(st.sampled_from(self.keeper.review()))
        assert (self.keeper.decide(proposal.id, accept=accept).valid_to is not None) or not accept
        assert proposal.id not in {item.id for item in self.keeper.review()}

    @precondition(lambda self: self.journal.state().facts)
    @rule(data=st.data())
    def forget(self, data):
        name = data.draw(st.sampled_from(sorted(self.journal.state().facts)))
        self.keeper.forget([name], lambda fact: [f"key-of-{fact.id}"])
        assert name not in self.journal.state().facts
        assert not any(name in (line["id"], line.get("fact")) for line in self.journal.operations())

    @rule()
    def reopen(self):
        self.open()

    def of_persons(self):
        """What persons wrote: everything of it that a rule must not touch."""
        return {
            fact.id: (fact.text, fact.slot, fact.value, fact.valid_from, fact.valid_to, fact.retracted_at)
            for fact in self.journal.state().facts.values()
            if fact.is_by_person
        }

    @invariant()
    def what_is_kept_equals_the_fold_of_the_lines(self):
        if hasattr(self, "journal"):
            assert self.journal.state() == fold(self.journal.operations())

    @invariant()
    def every_moment_equals_the_naive_fold(self):
        if not hasattr(self, "journal"):
            return
        lines = self.journal.operations()
        moments = sorted({*(parse_ts(line["ts"]) for line in lines), self.clock})
        for known_at in moments[-3:]:
            state = self.journal.state(known_at)
            for as_of in (START, at(7), at(20), self.clock, at(41)):
                assert set(state.visible(as_of)) == naive_visible(lines, as_of, known_at)


TestFactsMachine = FactsMachine.TestCase
TestFactsMachine.settings = settings(
    max_examples=scaled(60),
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
)


def test_a_fact_that_is_added_to_an_undone_batch_does_not_count():
    begin = datetime(2026, 5, 1, tzinfo=UTC)
    undo = {"id": "u1", "op": "undo", "ts": format_ts(begin), "batch": "b1"}
    added = [fact_record(Fact(f"f{number}", f"The pier {number} is long."), begin) for number in range(2)]
    records = [undo, {**added[0], "batch": "b1"}, {**added[1], "batch": "b2"}]
    for state in (fold(records), fold([records[1], records[0], records[2]])):
        assert list(state.facts) == ["f1"]
