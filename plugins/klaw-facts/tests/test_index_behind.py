"""Another process holds the store while facts change: no exit shows what the journal hides, and the caller is told."""

import inspect
import json

import pytest

from klaw_core import KlawError, NotFoundError, StoreLockedError
from klaw_facts import Facts
from klaw_facts.index import FactIndex, path_of
from klaw_facts.journal import FactsJournal
from klaw_facts.keeper import FactKeeper

#: Every public method of a keeper that changes a fact, and what is shown of "I own a red boat" afterwards.
CHANGES = {
    "retract": (lambda keeper, fact: keeper.retract(fact.id), None),
    "archive": (lambda keeper, fact: keeper.archive(fact.id), None),
    "undo": (lambda keeper, fact: keeper.undo(fact.batch), None),
    "forget": (lambda keeper, fact: keeper.forget([fact.id], lambda _fact: ()), None),
    "edit": (lambda keeper, fact: keeper.edit(fact.id, text="I own a crimson boat"), "I own a crimson boat"),
    "end": (lambda keeper, fact: keeper.end(fact.id), "I own a red boat [until"),
    "pin": (lambda keeper, fact: keeper.pin(fact.id), "I own a red boat"),
    "remember": (lambda keeper, _fact: keeper.remember("I own a red boat", tags=["sea"]), "I own a red boat"),
}
#: Methods that change nothing, or only what another of them has hidden or proposed.
OTHERS = {"get", "review", "key", "reopen", "decide"}


def tool(name, **fixed):
    def call(memory, fact):
        told = {key: value(fact) if callable(value) else value for key, value in fixed.items()}
        return json.dumps(memory.call_tool(name, told))

    return call


#: Every exit of a memory that can show a fact: each returns what a person or a model reads.
EXITS = {
    "search": lambda memory, _fact: [each.content for each in memory.search("boat I own", collection="facts")],
    "search by words": lambda memory, _fact: [
        each.content for each in memory.search("boat", collection=["facts", "memory"], mode="fts")
    ],
    "the newest": lambda memory, fact: [
        each.content for each in memory.search("", collection="facts", filters=only(fact))
    ],
    "get": lambda memory, fact: memory.get(path_of(fact.id)).content,
    "facts": lambda memory, _fact: [each.text for each in memory.extension(Facts).search("boat I own")],
    "fact store": lambda memory, _fact: [each.text for each in memory.extension(Facts).store.search("boat")],
    "context": lambda memory, _fact: str(memory.context("Which boat do I own?")),
    "memory_search": tool("memory_search", query="boat", collection="facts"),
    "memory_facts": tool("memory_facts", query="boat I own"),
    "memory_get": tool("memory_get", path=lambda fact: path_of(fact.id)),
    "memory_context": tool("memory_context", message="Which boat do I own?"),
}


def only(fact):
    from klaw_core import Filters

    return Filters(path=path_of(fact.id))


def shown(memory, exit_, fact):
    try:
        return str(EXITS[exit_](memory, fact))
    except NotFoundError:
        return ""


@pytest.fixture
def locked(monkeypatch):
    """Return a function that lets the collection refuse changes, as if another process held the store."""

    def lock():
        def refused(_self, _ids):
            raise StoreLockedError("another process is writing")

        monkeypatch.setattr(FactIndex, "put", refused)
        monkeypatch.setattr(FactIndex, "remove", refused)

    return lock


def test_every_method_of_a_keeper_that_changes_facts_is_among_these():
    public = {name for name, _ in inspect.getmembers(FactKeeper, inspect.isfunction) if not name.startswith("_")}
    assert public == CHANGES.keys() | OTHERS


@pytest.fixture
def boat(open_memory):
    """Return a memory, and a fact of a batch in it."""
    memory = open_memory()
    facts = memory.extension(Facts)
    facts.remember("I own a green bicycle")
    return memory, facts.remember("I own a red boat")


@pytest.mark.parametrize("exit_", EXITS)
def test_every_exit_shows_the_fact_before(boat, exit_):
    memory, fact = boat
    assert "red boat" in shown(memory, exit_, fact)


@pytest.mark.parametrize("change", CHANGES)
def test_no_exit_shows_what_the_journal_hides(boat, locked, change):
    memory, fact = boat
    locked()
    act, left = CHANGES[change]
    act(memory.extension(Facts).keeper, fact)
    wrong = {}
    for name in EXITS:
        told = shown(memory, name, fact)
        marked = any(mark in told for mark in ("[retracted", "[archived", "[undone", "no longer true"))
        if left is None and "red boat" in told and not marked:
            wrong[name] = told
        if left is not None and "boat" in told and left not in told and not marked:
            wrong[name] = told
    assert wrong == {}


def test_the_answer_says_that_the_index_is_older(boat, locked):
    memory, fact = boat
    locked()
    memory.extension(Facts).keeper.retract(fact.id)
    found = memory.search("boat", collection="facts")
    assert (list(found), found.notices) == (
        [],
        ("the index is older than 1 of the found facts: run `klaw index`",),
    )
    assert memory.search("bicycle", collection="facts").notices == ()


def test_an_answer_has_no_facts_while_their_journal_cannot_be_read(boat, monkeypatch):
    memory, _ = boat

    def unreadable(*_):
        raise KlawError("the journal cannot be read")

    monkeypatch.setattr(FactsJournal, "state", unreadable)
    found = memory.search("boat", collection="facts")
    assert list(found) == []
    assert "it is not known which of them are current: the journal cannot be read" in str(found.notices)


def test_the_next_change_brings_the_index_up_to_date(boat, monkeypatch):
    memory, fact = boat
    facts = memory.extension(Facts)
    with monkeypatch.context() as patch:
        patch.setattr(FactIndex, "put", lambda _self, _ids: (_ for _ in ()).throw(StoreLockedError("busy")))
        facts.keeper.retract(fact.id)
        assert facts.notices == ("stored, but not indexed yet; `klaw index` does that: busy",)
    facts.remember("I own a blue kayak")
    assert facts.notices == ()
    assert path_of(fact.id) not in [each.path for each in memory.documents(collection="facts")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("facts", "retract", "ID"),
        ("facts", "end", "ID"),
        ("facts", "edit", "ID", "I own a crimson boat"),
        ("facts", "pin", "ID"),
        ("remember", "I own a blue kayak"),
    ],
)
def test_a_command_reports_that_the_index_could_not_follow(klaw, locked, arguments):
    name = klaw("remember", "I own a red boat").stdout.strip()
    locked()
    done = klaw(*(name if each == "ID" else each for each in arguments))
    assert done.exit_code == 0
    assert "stored, but not indexed yet" in done.stderr


def test_the_tool_reports_that_the_index_could_not_follow(boat, locked):
    memory, _ = boat
    assert "notices" not in memory.call_tool("memory_remember", {"fact": "I own a raft"})
    locked()
    answer = memory.call_tool("memory_remember", {"fact": "I own a blue kayak"})
    assert answer["remembered"]
    assert "not indexed yet" in str(answer["notices"])
