"""Laws of a whole memory: one answer about a moment, the budget, rebuild, forgetting."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import Memory, load_config
from klaw_facts import Facts
from klaw_journals import Message

START = datetime(2026, 1, 1, tzinfo=UTC)
META = {"channel": "telegram", "chat_id": "1"}
PARTS = ("stable", "volatile")
EVERY_WORD = "harbour gate live moved name day sister port decided version tea master Ada since"
SAID = (
    "I live in Paris since 2020.",
    "I moved to Lyon in 2024.",
    "My name is Ada Lovelace.",
    "We decided to ship version 3 of the harbour gate in May.",
    "Our gate listens on port 8080 since Monday.",
    "My sister Eve moved to Rome last year.",
)


def open_at(directory):
    """Open a memory whose rules take facts from conversations."""
    tables = {"memory": {"embedding": {"type": "none"}}, "extensions": {"facts": {"extractor": "rules"}}}
    return Memory.open(load_config(data_dir=directory, overrides=tables, environment={"KLAW_CONFIG": "/dev/null"}))


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """Return a directory with three weeks of a chat, facts of rules, of a person and of an agent."""
    directory = tmp_path_factory.mktemp("laws") / "data"
    with open_at(directory) as memory:
        for number in range(24):
            text = f"{SAID[number % len(SAID)]} It was day {number}."
            memory.conversations.append(Message("user", text, START + timedelta(days=number), meta=META))
        memory.index()
        facts = memory.extension(Facts)
        facts.remember("I like green tea from the harbour", is_pinned=True)
        facts.remember("The harbour master is Bo", by="agent")
        facts.keeper.retract(facts.list()[0].id)
        facts.compress()
        memory.index()
    return directory


@pytest.fixture
def memory(lived):
    with open_at(lived) as opened:
        yield opened


@given(as_of=st.integers(-1, 30), known=st.none() | st.integers(0, 1))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_lists_searches_and_contexts_agree_about_every_moment(memory, as_of, known):
    facts = memory.extension(Facts)
    moment = START + timedelta(days=as_of)
    known_at = None if known is None else START if known == 0 else datetime.now(UTC)
    listed = {fact.id for fact in facts.list(as_of=moment, known_at=known_at)}
    found = {fact.id for fact in facts.search(EVERY_WORD, 100, as_of=moment, known_at=known_at)}
    assert found == listed
    context = memory.context(EVERY_WORD, budget=4000, as_of=moment, known_at=known_at)
    told = {item.source.removeprefix("facts/") for item in context.items if item.heading == "Facts"}
    assert told <= listed
    chunks = [item for item in context.items if item.source.startswith("conversations/")]
    assert [item for item in chunks if item.created_at >= moment + timedelta(seconds=1)] == []
    assert (
        chunks or told or not listed or as_of < 0
    )  # before the first message only what began at an unknown time holds


@given(
    first=st.integers(0, 900),
    more=st.integers(0, 900),
    question=st.sampled_from([EVERY_WORD, "where do I live?", "what did we decide last month", "thanks!"]),
)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_context_is_deterministic_within_its_budget_and_only_grows_with_it(memory, first, more, question):
    small, large = (memory.context(question, budget=budget) for budget in (first, first + more))
    assert small == memory.context(question, budget=first)
    assert small.tokens <= first
    assert large.tokens <= first + more
    assert large.tokens >= small.tokens
    taken = {part: [[item for item in one.items if item.part == part] for one in (small, large)] for part in PARTS}
    less, all_stable = taken["stable"]
    assert all_stable[: len(less)] == less
    if len(less) == len(all_stable):
        less, all_volatile = taken["volatile"]
        assert all_volatile[: len(less)] == less


def rows(memory):
    """Return everything that the collection holds, without keys."""
    found = memory.search(EVERY_WORD, 100, collection="facts")
    return sorted((item.path, item.content, sorted(item.metadata.items())) for item in found)


def test_a_rebuild_equals_the_incremental_state(lived, tmp_path):
    shutil.copytree(lived, tmp_path / "data")
    with open_at(tmp_path / "data") as memory:
        grown, state = rows(memory), memory.extension(Facts).state()
    assert len(grown) > 5
    for file in (tmp_path / "data").glob("klaw.db*"):
        file.unlink()
    with open_at(tmp_path / "data") as memory:
        memory.index()
        assert rows(memory) == grown
        assert memory.extension(Facts).state() == state
        memory.reindex()
        assert rows(memory) == grown


def bytes_of(directory):
    return b"".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def test_a_forgotten_fact_leaves_no_bytes_and_does_not_return(tmp_path):
    with open_at(tmp_path / "data") as memory:
        facts = memory.extension(Facts)
        first = facts.remember("I live in Xanaduville")
        facts.keeper.edit(first.id, text="I live in Xanaduville, upstairs")
        memory.conversations.append(Message("user", "I moved to Lyon in 2024.", START, meta=META))
        memory.index()
        facts.compress()
        facts.forget([first.id])
        memory.index()
    assert b"Xanaduville" not in bytes_of(tmp_path / "data")


def test_forgetting_a_message_removes_its_facts_digests_and_profile(tmp_path):
    with open_at(tmp_path / "data") as memory:
        facts = memory.extension(Facts)
        message = memory.conversations.append(Message("user", "My name is Ada Xanaduson.", START, meta=META))
        memory.index()
        facts.compress()
        assert "Xanaduson" in memory.context("who am I?").stable
        memory.forget(f"telegram_1/{message.id}")
        memory.index()
        assert facts.list(everything=True) == []
        assert "Xanaduson" not in str(memory.context("who am I?"))
    assert b"Xanaduson" not in bytes_of(tmp_path / "data")
    with open_at(tmp_path / "data") as memory:
        memory.conversations.append(Message("user", "My name is Ada Xanaduson.", START + timedelta(1), meta=META))
        memory.index()
        assert memory.extension(Facts).list(everything=True) == []


def test_a_fact_of_a_person_survives_the_message_that_repeats_it(tmp_path):
    with open_at(tmp_path / "data") as memory:
        facts = memory.extension(Facts)
        mine = facts.remember("I live in Paris since 2020.")
        message = memory.conversations.append(Message("user", "I live in Paris since 2020.", START, meta=META))
        memory.index()
        (said,) = [fact for fact in facts.list() if fact.id != mine.id]
        assert (said.value, said.who) == ("Paris", "owner")
        memory.forget(f"telegram_1/{message.id}")
        assert [fact.id for fact in facts.list(everything=True)] == [mine.id]
