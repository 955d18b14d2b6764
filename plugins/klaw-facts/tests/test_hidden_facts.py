"""Retracted, archived and ended facts in the collection `facts`, which everything can search; filters of a context."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from attrs import evolve

from klaw_core import (
    Condition,
    EmbedderUnavailableError,
    Filters,
    LiveComponent,
    Memory,
    NotFoundError,
    VectorSpace,
    load_config,
)
from klaw_facts import Facts, FactsOptions
from klaw_facts.index import FactIndex, as_document, path_of
from klaw_facts.plugin import FactChunker
from klaw_tools import ArrangingExtension, ContextExtension, ContextItem


def contents(memory, query):
    """Return the texts that a search of the collection returns, and those that an agent's tool returns."""
    found = [result.content for result in memory.search(query, collection="facts")]
    answer = memory.call_tool("memory_search", {"query": query, "collection": "facts"})
    assert [result["content"] for result in answer["results"]] == found
    return found


@pytest.mark.parametrize("hide", ["retract", "archive"])
def test_a_hidden_fact_leaves_the_collection_at_once_and_comes_back(open_memory, hide):
    memory = open_memory()
    facts = memory.extension(Facts)
    boat = facts.remember("I own a red boat")
    facts.remember("I own a green bicycle")
    assert contents(memory, "red boat") == ["I own a red boat"]
    getattr(facts.keeper, hide)(boat.id)
    assert contents(memory, "red boat") == []
    assert [record.path for record in memory.documents(collection="facts")] != [path_of(boat.id)]
    assert memory.index().removed == 0
    assert contents(memory, "boat") == []
    assert memory.doctor().findings == ()
    facts.keeper.reopen(boat.id)
    assert contents(memory, "red boat") == ["I own a red boat"]


@pytest.mark.parametrize(("hide", "mark"), [("retract", "retracted: it was never true"), ("archive", "archived")])
def test_a_hidden_fact_can_be_read_by_its_path_with_a_mark_and_be_forgotten(open_memory, tmp_path, hide, mark):
    memory = open_memory()
    facts = memory.extension(Facts)
    boat = facts.remember("I own a red boat")
    getattr(facts.keeper, hide)(boat.id)
    assert memory.get(path_of(boat.id)).content == f"I own a red boat [{mark}]"
    assert memory.forget(path_of(boat.id)).paths == (path_of(boat.id),)
    with pytest.raises(NotFoundError):
        memory.get(path_of(boat.id))
    assert b"boat" not in (tmp_path / "data" / "facts.jsonl").read_bytes()


def test_a_fact_that_is_not_always_true_says_so_in_its_text(open_memory):
    memory = open_memory()
    facts = memory.extension(Facts)
    rome = facts.remember("I live in Rome")
    facts.remember("I live in Turin")
    today = facts.get(rome.id).valid_to.date().isoformat()
    assert sorted(contents(memory, "live in Rome or Turin")) == [
        f"I live in Rome [until {today} or earlier]",
        "I live in Turin",
    ]
    facts.remember("The ferry to Corsica sails", valid_from=datetime(2999, 1, 15, tzinfo=UTC))
    assert contents(memory, "ferry") == ["The ferry to Corsica sails [from 2999-01-15]"]
    assert [fact.text for fact in facts.search("ferry")] == []
    facts.keeper.reopen(rome.id)
    assert "I live in Rome" in contents(memory, "live in Rome")


def test_what_was_known_before_a_retraction_is_still_found_for_that_moment(open_memory):
    facts = open_memory().extension(Facts)
    boat, bicycle = facts.remember("I own a red boat"), facts.remember("I own a green bicycle", tags=["wheels"])
    then = facts.get(bicycle.id).recorded_at
    facts.keeper.retract(boat.id)
    facts.keeper.archive(bicycle.id)
    assert list(facts.search("boat or bicycle")) == []
    assert [fact.id for fact in facts.search("red boat that I own", known_at=then)] == [boat.id, bicycle.id]
    assert [fact.id for fact in facts.search("own", 1, known_at=then)] in [[boat.id], [bicycle.id]]
    wheels = (Condition("tags", "=", "wheels"),)
    assert [fact.id for fact in facts.search("own", known_at=then, conditions=wheels)] == [bicycle.id]
    assert list(facts.search("own", known_at=then - timedelta(days=1))) == []


def as_before(fact):
    """Return the document of a fact as versions before 2026-12 indexed it."""
    hidden = {"show": "never"} if fact.is_hidden else {}
    text = fact.text if fact.subject in {"user", ""} else f"{fact.subject}: {fact.text}"
    document = as_document(fact)
    return evolve(document, text=text, metadata={**document.metadata, **hidden})


def test_the_next_index_run_corrects_a_collection_of_an_older_version(open_memory):
    memory = open_memory()
    facts = memory.extension(Facts)
    boat, cart = facts.remember("I own a red boat"), facts.remember("I own a blue cart")
    rome = facts.remember("I live in Rome")
    facts.remember("I live in Turin")
    facts.keeper.retract(boat.id)
    facts.keeper.archive(cart.id)
    known = facts.state().facts
    facts.host.index_documents([as_before(fact) for fact in known.values()], "facts")
    indexed = {record.path for record in memory.documents(collection="facts")}
    assert path_of(boat.id) in indexed, "as it was"
    assert contents(memory, "red boat") == []
    report = memory.index()
    assert (report.removed, report.changed) == (2, 1)
    assert contents(memory, "boat cart") == []
    assert contents(memory, "Rome") == [
        f"I live in Rome [until {known[rome.id].valid_to.date().isoformat()} or earlier]"
    ]
    assert memory.index().removed == 0


def test_a_hidden_fact_leaves_the_collection_although_the_journal_has_a_broken_line(open_memory, tmp_path):
    memory = open_memory()
    facts = memory.extension(Facts)
    boat, rome = facts.remember("I own a red boat"), facts.remember("I live in Rome")
    facts.keeper.retract(boat.id)
    facts.host.index_documents([as_before(facts.get(boat.id))], "facts")
    with (tmp_path / "data" / "facts.jsonl").open("ab") as file:
        file.write(b"{broken\n")
    memory.index()
    assert contents(memory, "red boat") == []
    assert contents(memory, "Rome") == [facts.get(rome.id).text]


def test_a_fact_that_is_retracted_while_it_is_being_indexed_does_not_stay_in_the_collection(open_memory, monkeypatch):
    memory = open_memory()
    facts = memory.extension(Facts)
    boat = facts.remember("I own a red boat")
    write, waiting = facts.host.index_documents, [True]

    def slowly(documents, collection):
        if waiting:
            waiting.clear()
            facts.keeper.retract(boat.id)
        return write(documents, collection)

    monkeypatch.setattr(type(facts.host), "index_documents", lambda _host, *given: slowly(*given))
    facts.keeper.edit(boat.id, text="I own a crimson boat")
    assert contents(memory, "boat") == []


def test_a_profile_does_not_show_facts_that_have_ended_or_were_hidden_since(open_memory):
    memory = open_memory()
    facts = memory.extension(Facts)
    name = facts.remember("My name is Ada Byron")
    birthday, home = facts.remember("My birthday is 24 December"), facts.remember("I live in Rome")
    facts.compress()
    stable = memory.context("hello", budget=2000).stable
    assert all(said in stable for said in ("Ada Byron", "24 December", "Rome"))
    facts.keeper.retract(birthday.id)
    facts.keeper.archive(home.id)
    stable = memory.context("hello", budget=2000).stable
    assert "Ada Byron" in stable
    assert "December" not in stable
    assert "Rome" not in stable
    facts.keeper.end(name.id)
    assert "Ada" not in memory.context("hello", budget=2000).stable


def test_an_archived_fact_is_not_named_as_an_earlier_value_or_as_no_longer_true(open_memory):
    memory = open_memory()
    facts = memory.extension(Facts)
    rome, hobby = facts.remember("I live in Rome"), facts.remember("I collect stamps of Peru")
    facts.remember("I live in Turin")
    assert "was Rome" in memory.context("Where do I live?").volatile
    facts.keeper.archive(rome.id)
    facts.keeper.archive(hobby.id)
    context = memory.context("Where do I live?", seen=[path_of(hobby.id)])
    assert "Turin" in context.volatile
    assert "Rome" not in context.volatile
    assert "stamps" not in context.volatile
    facts.keeper.retract(hobby.id)
    assert "no longer true: I collect stamps" in memory.context("Where do I live?", seen=[path_of(hobby.id)]).volatile


WRITING = Condition("scope", "=", "writing")
MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)


@pytest.fixture
def scoped(open_memory, say):
    """Return a memory with facts of two scopes in every place that a context takes facts from."""
    memory = open_memory(extractor="rules", slots={"mercury": "many"})
    say(memory, "We discussed Mercury and decided to use version 3 of it on Monday.")
    memory.index()
    facts = memory.extension(Facts)
    for scope, text in (("code", "Mercury is the message broker"), ("writing", "Mercury is the dog in the novel")):
        facts.remember(text, metadata={"scope": scope}, tags=[scope])
        facts.remember(f"{text}, pinned", metadata={"scope": scope}, is_pinned=True, source=f"{scope}.md")
        facts.remember(f"{text}, slot", slot=f"{scope}:mercury", value=scope, metadata={"scope": scope})
        facts.remember(f"My name for Mercury is {scope}", category="rule", metadata={"scope": scope})
    facts.compress()
    return memory


@pytest.mark.parametrize(
    "filters",
    [
        Filters(metadata=(WRITING,)),
        Filters(metadata=(Condition("tags", "=", "writing"),)),
        Filters(source="writing.md"),
        Filters(path="notes/"),
        Filters(chat_id="telegram_2"),
        Filters(since=datetime(2999, 1, 1, tzinfo=UTC)),
        Filters(until=datetime(1999, 1, 1, tzinfo=UTC)),
        Filters(path="facts/", metadata=(WRITING,)),
    ],
)
@pytest.mark.parametrize("message", ["What is Mercury?", "What did we discuss on Monday?"])
def test_every_fact_of_a_context_passes_its_filters(scoped, filters, message):
    found = {result.path for result in scoped.search("Mercury", 50, collection="facts", filters=filters)}
    facts = scoped.extension(Facts)
    seen = [path_of(fact.id) for fact in facts.list()]
    for fact in facts.list():
        if "slot" in fact.text:
            facts.keeper.end(fact.id)
    for context in (
        scoped.context(message, budget=5000, filters=filters),
        scoped.context(message, budget=5000, filters=filters, seen=seen),
    ):
        sources = {item.source for item in context.items}
        assert {source for source in sources if source.startswith("facts/")} <= found
        assert "broker" not in str(context)
        assert "code" not in str(context)
        if not found:
            assert "Mercury" not in str(context)


def test_a_context_finds_facts_of_the_scope_that_other_facts_outrank(open_memory):
    memory = open_memory()
    facts = memory.extension(Facts)
    for number in range(30):
        facts.remember(f"Mercury is message broker number {number}", metadata={"scope": "code"})
    facts.remember("The dog in the novel by a friend is called Mercury", metadata={"scope": "writing"})
    context = memory.context("Which dog in the novel is called Mercury?", filters=Filters(metadata=(WRITING,)))
    assert [item.text.partition("] ")[2].partition(" ·")[0] for item in context.items] == [
        "The dog in the novel by a friend is called Mercury"
    ]


def test_filters_by_chat_and_time_keep_the_facts_that_were_said_there_and_then(open_memory, say):
    memory = open_memory(extractor="rules")
    say(memory, "My name is Ada Byron and I moved to Lyon on Monday.")
    memory.index()
    facts = memory.extension(Facts)
    facts.keeper.pin(facts.list()[0].id)
    for filters, is_there in (
        (Filters(chat_id="telegram_1"), True),
        (Filters(since=MONDAY, until=MONDAY + timedelta(days=1)), True),
        (Filters(since=MONDAY + timedelta(days=1)), False),
        (Filters(chat_id=""), False),
    ):
        assert ("Ada" in str(memory.context("What is my name?", filters=filters))) is is_there, filters
        assert bool(facts.index.search("name Ada", filters=filters)) is is_there


def test_a_digest_passes_filters_by_chat_and_time_only(open_memory, say):
    memory = open_memory(extractor="rules")
    say(memory, "We decided to use Mercury for our messages on Monday.")
    memory.index()
    memory.extension(Facts).compress()
    for filters, is_there in (
        (Filters(chat_id="telegram_1"), True),
        (Filters(path="digests/telegram_1/"), True),
        (Filters(until=MONDAY), True),
        (Filters(since=MONDAY + timedelta(days=1)), False),
        (Filters(metadata=(WRITING,)), False),
        (Filters(source="x"), False),
        (Filters(chat_id="telegram_2"), False),
    ):
        context = memory.context("What did we talk about on 23 February 2026?", filters=filters)
        assert any(item.source.startswith("digests/") for item in context.items) is is_there, filters


class Offering(ContextExtension, ArrangingExtension):
    """An extension that knows nothing about filters."""

    name = "offering"

    def offer(self, _question, /):
        return [ContextItem("an item of another program", "volatile"), ContextItem("a stable item", "stable")]

    def arrange(self, _question, items, /):
        return [*items, ContextItem("an added item")]


def test_items_of_an_extension_that_does_not_apply_filters_are_left_out_with_a_notice(tmp_path):
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={"memory": {"embedding": {"type": "none"}}},
        environment={"KLAW_CONFIG": "/dev/null"},
    )
    with Memory.open(config, components=[LiveComponent("extension", "offering", Offering())]) as memory:
        memory.core.update("user", "name", "Ada")
        context = memory.context("item")
        assert all(said in str(context) for said in ("another program", "a stable item", "an added item", "Ada"))
        context = memory.context("item", filters=Filters(source="x"))
        assert "item" not in str(context)
        assert "Ada" in str(context), "core memory belongs to every context"
        assert "results of offering left out: it does not apply the filters" in context.notices


class Embedder:
    """A model whose server may go down."""

    space = VectorSpace("switched", "1", 8)
    max_tokens = 512
    is_down = False

    def embed_documents(self, texts):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text):
        if self.is_down:
            raise EmbedderUnavailableError("the server is down")
        vector = np.ones(8, np.float32)
        vector[len(text) % 8] += 1
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts):
        return [len(text) for text in texts]


@pytest.fixture
def without_embedder(tmp_path):
    """Return a memory with only facts, whose embedder no longer answers."""
    config = load_config(
        data_dir=tmp_path / "data",
        overrides={"memory": {"embedding": {"type": "given"}}},
        environment={"KLAW_CONFIG": "/dev/null"},
    )
    embedder = Embedder()
    live = [
        LiveComponent("extension", "facts", Facts(FactsOptions(), tmp_path / "data"), separate=("facts",)),
        LiveComponent("chunker", "fact", FactChunker()),
        LiveComponent("embedder", "given", embedder),
    ]
    with Memory.open(config, components=live) as memory:
        memory.extension(Facts).remember("We have a cat")
        assert memory.extension(Facts).search("cat").notices == ()
        assert memory.context("which pet do we have").notices == ()
        embedder.is_down = True
        yield memory


def test_a_search_of_facts_without_the_embedder_says_so_at_every_exit(without_embedder):
    memory = without_embedder
    says = "searched without vectors"
    assert any(says in notice for notice in memory.extension(Facts).search("a cat").notices)
    assert any(says in notice for notice in memory.call_tool("memory_facts", {"query": "the cat"})["notices"])
    context = memory.context("which pet do we own")
    assert any(says in notice for notice in context.notices)
    assert any(says in notice for notice in memory.call_tool("memory_context", {"message": "which pet"})["notices"])


def test_a_search_that_fails_as_a_whole_is_made_by_words_and_says_so(open_memory, monkeypatch):
    memory = open_memory()
    memory.extension(Facts).remember("We have a cat")
    search = FactIndex.search

    def failing(index, *given, words_only=False, **more):
        if not words_only:
            raise NotFoundError("nothing is here")
        return search(index, *given, words_only=True, **more)

    monkeypatch.setattr(FactIndex, "search", failing)
    context = memory.context("Which cat do we have?")
    assert "We have a cat" in context.volatile
    assert "facts were searched by words only: nothing is here" in context.notices
