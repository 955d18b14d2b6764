"""A question without an answer is recognisable as such, through every exit of a search."""

from __future__ import annotations

import asyncio
import csv
import importlib
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest
from asking import asking_modules

from klaw_core.cli.program import cli
from klaw_core.config.load import load_config
from klaw_core.memory import Memory
from klaw_core.values.search import NO_GOOD_MATCH

ANSWERED, UNANSWERED = "which kiln fires the glaze", "the best pizza in Naples"
TOPICS = {
    "kiln": "The kiln fires the glaze at twelve hundred degrees.",
    "boat": "The boat leaves the harbour at noon, the best time of the day.",
    "bread": "Rye bread bakes for ninety minutes.",
    "roof": "The roof was tiled in the spring.",
    "tax": "The tax return is due in July.",
    "garden": "Tomatoes grow along the southern wall.",
    "bicycle": "The bicycle needs a new chain.",
    "piano": "The piano is tuned twice a year.",
}


@pytest.fixture
def indexed(klaw, user_home):
    notes = user_home / "work" / "notes"
    notes.mkdir()
    for name, text in TOPICS.items():
        (notes / f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")
    assert klaw("index", "notes").exit_code == 0
    return klaw


def formats() -> tuple[str, ...]:
    search = cli.get_command(click.Context(cli), "search")
    assert search is not None
    (option,) = (option for option in search.params if option.name == "form")
    assert isinstance(option.type, click.Choice)
    return tuple(option.type.choices)


def is_marked(form: str, output: str) -> bool:
    """Return whether the output of a search marks what it shows, or says that nothing answers."""
    if form == "json":
        return all(result["is_weak"] for result in json.loads(output))
    if form == "csv":
        return all(row["is_weak"] == "True" for row in csv.DictReader(io.StringIO(output)))
    if form == "md":
        return all("weak match" in line for line in output.splitlines() if line.startswith("###"))
    return form == "text" and output.startswith("no good match")


@pytest.mark.parametrize("form", formats())
def test_every_format_tells_a_question_without_an_answer(indexed, form):
    found = indexed("search", "--format", form, UNANSWERED)
    assert found.exit_code == 0
    assert "boat" in found.stdout
    assert is_marked(form, found.stdout) or form == "files"
    assert (NO_GOOD_MATCH in found.stderr) == (form != "text")  # as text it is the first line
    found = indexed("search", "--format", form, ANSWERED)
    assert "kiln" in found.stdout
    assert not is_marked(form, found.stdout)
    assert "no good match" not in found.stdout + found.stderr


def asking_tools(memory: Memory) -> dict[str, str]:
    """Return the tools that answer a question, each with the name of its argument."""
    schemas = {tool["name"]: tool["input_schema"] for tool in memory.tools()}
    asked = {name: [*{"query", "message"} & schema["properties"].keys()] for name, schema in schemas.items()}
    return {name: arguments[0] for name, arguments in asked.items() if arguments}


@pytest.mark.usefixtures("indexed")
def test_every_tool_tells_a_question_without_an_answer():
    with Memory.open(load_config()) as memory:
        tools = asking_tools(memory)
        assert tools.keys() >= {"memory_search", "memory_context"}
        for name, argument in tools.items():
            if name == "memory_facts":  # there is none
                continue
            missed, found = (memory.call_tool(name, {argument: question}) for question in (UNANSWERED, ANSWERED))
            assert NO_GOOD_MATCH in missed["notices"], name
            assert "notices" not in found, name
            assert "twelve hundred" in str(found)


@pytest.mark.usefixtures("indexed")
def test_the_results_say_so():
    with Memory.open(load_config()) as memory:
        (missed, found) = map(memory.search, (UNANSWERED, ANSWERED))
    assert NO_GOOD_MATCH in missed.hints
    assert NO_GOOD_MATCH in missed.notices
    assert not found.notices


@pytest.mark.usefixtures("indexed")
def test_a_search_for_a_relevance_that_nothing_has_names_the_best_one():
    with Memory.open(load_config()) as memory:
        best = max(result.relevance for result in memory.search(ANSWERED))
        assert 0 < best < 1
        none = memory.search(ANSWERED, min_relevance=1.0)
        (some, unknown) = (memory.search(ANSWERED, min_relevance=least) for least in (best, None))
        nothing = memory.search("zyzzyva", min_relevance=0.5, mode="fts")
    assert list(none) == []
    assert f"no result has a relevance of 1 or more; the best has {best:.2f}" in none.notices
    assert some
    assert not [hint for hint in (*some.hints, *unknown.hints, *nothing.hints) if "relevance" in hint]


@pytest.mark.usefixtures("indexed")
def test_a_context_names_weak_matches_as_such():
    with Memory.open(load_config()) as memory:
        missed, found = (str(memory.context(question)) for question in (UNANSWERED, ANSWERED))
    assert ("## Weak matches" in missed, "## Chunks" in missed) == (True, False)
    assert ("## Weak matches" in found, "## Chunks" in found) == (False, True)
    assert missed.count("\n- [") <= 3


@pytest.mark.usefixtures("indexed")
def test_a_question_without_an_answer_costs_a_model_three_notes_at_most():
    with Memory.open(load_config()) as memory:
        question = "noon July chain spring ninety degrees zebra xylophone quartz jungle pizza Naples Vesuvius gondola"
        assert len(memory.search(question)) > 3
        missed = memory.call_tool("memory_search", {"query": question})
    assert len(missed["results"]) == 3
    assert [result for result in missed["results"] if not result["is_weak"]] == []


def from_rest(memory: Memory, question: str) -> Iterator[str]:
    """Yield what each operation of the server that takes a question says."""
    events = pytest.importorskip("klaw_serve.events")
    from klaw_serve.table import OPERATIONS
    from klaw_serve.tenants import Tenant

    asking = [(item, name) for item in OPERATIONS.values() for name in ("query", "message") if name in item.properties]
    asking = [(item, name) for item, name in asking if item.name not in {"memory.nearest", "memory.facts"}]
    assert {item.name for item, _ in asking} == {"memory.search", "memory.context"}
    for item, name in asking:
        yield json.dumps(item.call(Tenant("", memory, events.EventHub(None)), {name: question}), default=str)


def from_langchain(memory: Memory, question: str) -> Iterator[str]:
    """Yield what the retriever and the vector store return; both are asked for notes."""
    pytest.importorskip("langchain_core")
    from langchain_klaw import KlawRetriever

    found = KlawRetriever(memory=memory).invoke(question)
    yield "weak" if all(document.metadata["is_weak"] for document in found) else ""


def from_haystack(memory: Memory, question: str) -> Iterator[str]:
    """Yield what a document store returns, of the same texts."""
    haystack = pytest.importorskip("haystack")
    from klaw_haystack import KlawDocumentStore

    with Memory.open(memory.config.data_dir.parent / "haystack") as own:
        store = KlawDocumentStore(own)
        store.write_documents([haystack.Document(id=name, content=text) for name, text in TOPICS.items()])
        found = store.search(question)
        assert [item.meta for item in store.filter_documents()] == [{}] * len(TOPICS)
    yield "weak" if all(document.meta["is_weak"] for document in found) else ""


def from_strands(memory: Memory, question: str) -> Iterator[str]:
    """Yield what the memory store of Strands returns."""
    pytest.importorskip("strands")
    from klaw_agents.strands import KlawMemoryStore

    found = asyncio.run(KlawMemoryStore(memory).search(question))
    yield "weak" if all(entry.metadata["is_weak"] for entry in found) else ""


def from_hook(memory: Memory, question: str) -> Iterator[str]:
    """Yield "no" if the hook for prompts recalls nothing."""
    recall = importlib.import_module("klaw_sessions.recall")
    asked = recall.RecallRequest(question, 1_000, "volatile", min_relevance=0.3)
    yield recall.recall_from(memory, asked).text or "weak"


#: The modules of Klaw that ask a memory, and how a question without an answer is recognised at what they answer with.
#: A string says why a module is no exit of its own.
EXITS: dict[str, Callable[[Memory, str], Iterator[str]] | str] = {
    "klaw_agents.agent_framework": "a context, as below",
    "klaw_agents.claude_agent_sdk": "a context, as below",
    "klaw_agents.dspy": "plugins/klaw-agents/tests/test_dspy.py",
    "klaw_agents.google": "plugins/klaw-agents/tests/test_google.py",
    "klaw_agents.hermes": "a context, as below",
    "klaw_agents.llama_index": "plugins/klaw-agents/tests/test_llama_index.py",
    "klaw_agents.llm": "a context, as below",
    "klaw_agents.open_webui": "a context, as below",
    "klaw_agents.strands": from_strands,
    "klaw_core.cli.demo": "its questions have answers",
    "klaw_core.cli.search": "every format, above",
    "klaw_eval.building": "measures",
    "klaw_eval.contexts": "measures",
    "klaw_eval.poisoning": "measures",
    "klaw_eval.relevance": "measures",
    "klaw_eval.running": "measures",
    "klaw_eval.trials": "measures",
    "klaw_facts.commands.reading": "plugins/klaw-facts/tests",
    "klaw_facts.facts": "the notice of FoundFacts",
    "klaw_facts.index": "passes notices on",
    "klaw_facts.recall": "offers no weak facts",
    "klaw_facts.store": "returns what klaw_facts.facts does",
    "klaw_haystack.document_store": from_haystack,
    "klaw_mcp.server": "a context, as below",
    "klaw_serve.app": "warms up",
    "klaw_serve.searching": from_rest,
    "klaw_sessions.recall": from_hook,
    "klaw_testing.extension": "tests",
    "klaw_testing.index": "tests",
    "klaw_tools.asking": "refuses if all are weak: plugins/klaw-tools/tests/test_ask.py",
    "klaw_tools.context_command": "a context, as below",
    "klaw_tools.memory_tools": "every tool, above",
    "langchain_klaw.retrievers": from_langchain,
    "langchain_klaw.stores": "its score is the relevance",
    "langchain_klaw.vectorstores": "the same documents as the retriever",
}
PROBES = {name: probe for name, probe in EXITS.items() if not isinstance(probe, str)}


def test_every_module_that_asks_a_memory_is_tried_or_says_why_not():
    assert asking_modules() == EXITS.keys()


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("name", PROBES)
def test_every_exit_tells_a_question_without_an_answer(name):
    probe: Any = PROBES[name]
    with Memory.open(load_config()) as memory:
        missed, found = (list(probe(memory, question)) for question in (UNANSWERED, ANSWERED))
    assert missed
    assert [said for said in missed if "weak" not in said and NO_GOOD_MATCH not in said] == []
    assert [said for said in found if said == "weak" or NO_GOOD_MATCH in said] == []
