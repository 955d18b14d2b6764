"""Facts of a memory that several machines share: what is late is not forgotten, and nothing is read twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from klaw_core import Memory, Message, load_config
from klaw_facts import Facts
from klaw_journals import FileJournals, Traces
from klaw_journals.traces import digest

BASE = datetime(2026, 11, 1, 10, tzinfo=UTC)
KEY = "00112233445566ff " + "ab" * 32 + "\n"


def place(tmp_path: Path, name: str, *, shared: bool = True) -> Path:
    data = tmp_path / name
    if shared:
        (data / "sync").mkdir(parents=True)
        (data / "sync" / "key").write_text(KEY)
    return data


def open_memory(data: Path) -> Memory:
    overrides = {"memory": {"embedding": {"type": "none"}}, "extensions": {"facts": {"extractor": "rules"}}}
    return Memory.open(load_config(data_dir=data, overrides=overrides, environment={"KLAW_CONFIG": "/dev/null"}))


def say(data: Path, *said: tuple[int, str]) -> None:
    with open_memory(data) as memory:
        for minute, text in said:
            moment = BASE + timedelta(minutes=minute)
            memory.conversations.append(Message("user", text, moment, meta={"channel": "telegram", "chat_id": "42"}))


def extract(data: Path) -> None:
    with open_memory(data) as memory:
        memory.extension(Facts).extract()


def lines(data: Path, op: str) -> list[str]:
    records = FileJournals(data).records("facts").replay().records.values()
    return [str(record.get("text", record.get("key"))) for record in records if record["op"] == op]


@pytest.fixture
def told(tmp_path):
    """A machine with a fact, and another one that has the fact but not its message."""
    one, other = place(tmp_path, "one"), place(tmp_path, "other")
    say(one, (0, "I moved to Lyon last week."))
    extract(one)
    say(other, (5, "Where did we put the kiln manual?"))
    found = FileJournals(one).records("facts").replay().records.values()
    FileJournals(other).records("facts").append([dict(record) for record in found])
    return one, other


class TestLateMessages:
    def test_a_fact_whose_message_is_late_stays(self, told):
        _, other = told
        with open_memory(other) as memory:
            memory.index()
        assert lines(other, "assert") == ["I moved to Lyon last week."]
        assert lines(other, "suppress") == []

    def test_it_goes_once_its_message_is_forgotten_somewhere(self, told):
        one, other = told
        with open_memory(one) as memory:
            chat = memory.conversations.journal.chats()[0]
            name = next(iter(memory.conversations.read(chat))).message.id
            memory.conversations.forget(chat, name)
        Traces(other).add(Traces(one).read())
        with open_memory(other) as memory:
            memory.index()
        assert lines(other, "assert") == []

    def test_without_other_machines_a_missing_message_is_a_forgotten_one(self, told, tmp_path):
        one, _ = told
        alone = place(tmp_path, "alone", shared=False)
        say(alone, (5, "Where did we put the kiln manual?"))
        found = FileJournals(one).records("facts").replay().records.values()
        FileJournals(alone).records("facts").append([dict(record) for record in found])
        with open_memory(alone) as memory:
            memory.index()
        assert lines(alone, "assert") == []


class TestMessagesOfOthers:
    def test_a_machine_reads_its_own_messages_wherever_those_of_others_are(self, tmp_path):
        data, other = place(tmp_path, "one"), place(tmp_path, "other")
        say(data, (0, "I moved to Lyon last week."))
        say(other, (9, "My favourite colour is green."))
        arrived = FileJournals(other).logs("conversations").log("telegram_42", "2026-11-01")
        values = [line.value for line in arrived.read()]
        traces = Traces(data)
        traces.add_arrived(traces.scope("conversations", "telegram_42", digest(value)) for value in values)
        own = FileJournals(data).logs("conversations").log("telegram_42", "2026-11-01")
        own.settle(lambda held: [*held, *values])
        extract(data)
        assert lines(data, "assert") == ["I moved to Lyon last week."]
        say(data, (4, "I prefer tea over coffee."))
        own.settle(lambda held: sorted(held, key=lambda value: value["ts"]))
        extract(data)
        assert lines(data, "assert") == ["I moved to Lyon last week.", "I prefer tea over coffee."]


class TestForgottenClaims:
    def test_what_one_machine_forgot_no_other_one_extracts(self, tmp_path):
        one, other = place(tmp_path, "one"), place(tmp_path, "other")
        for data in (one, other):
            say(data, (0, "I moved to Lyon last week."))
        extract(one)
        with open_memory(one) as memory:
            memory.extension(Facts).forget([next(iter(memory.extension(Facts).journal.state().facts))])
        told = [
            record
            for record in FileJournals(one).records("facts").replay().records.values()
            if record["op"] == "suppress"
        ]
        assert told
        FileJournals(other).records("facts").append([dict(record) for record in told])
        extract(other)
        assert lines(other, "assert") == []

    def test_what_was_forgotten_before_the_memory_was_shared_stays_so(self, tmp_path):
        data = place(tmp_path, "one", shared=False)
        say(data, (0, "I moved to Lyon last week."))
        extract(data)
        with open_memory(data) as memory:
            memory.extension(Facts).forget([next(iter(memory.extension(Facts).journal.state().facts))])
        place(tmp_path, "one")
        say(data, (9, "I moved to Lyon last week."))
        extract(data)
        assert lines(data, "assert") == []
