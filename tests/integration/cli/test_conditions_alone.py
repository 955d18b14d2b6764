"""Conditions without a question list what satisfies them, through every exit that takes conditions."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from asking import asking_modules

from klaw_core import AsyncMemory, Condition, Filters
from klaw_core.config.load import load_config
from klaw_core.memory import Memory

EMPTY = ("", " \n")
NOTES = {
    "kiln": "---\ntags: [Pottery]\nyear: 2024\ndate: 2024-05-01\n---\nThe kiln fires the glaze.\n",
    "boat": "---\ntags: [water]\nyear: 2025\ndate: 2025-05-01\n---\nThe boat leaves at noon.\n",
}
#: A condition of each kind that a search can have, under the name that the tool or REST has for it; only the note about
#: the kiln passes it.
CONDITIONS = {
    "path": "notes/kiln",
    "source": "kiln.md",
    "since": None,  # with `until`
    "until": "2024-05-02",
    "tags": ["pottery"],
    "where": ["year=2024"],
    "chat_id": None,  # of messages
}


@pytest.fixture(autouse=True)
def indexed(klaw, user_home):
    notes = user_home / "work" / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / f"{name}.md").write_text(text, "utf-8")
    assert klaw("index", "notes").exit_code == 0
    return klaw


@pytest.fixture
def memory():
    with Memory.open(load_config()) as memory:
        yield memory


def paths(answer: Any) -> list[str]:
    """Return the paths of results, objects of results, or documents, in order, without lines."""
    items = answer["results"] if isinstance(answer, dict) else answer
    return [(item["path"] if isinstance(item, dict) else item.path).partition(":")[0] for item in items]


@pytest.mark.parametrize("query", [(), ("",), (" ",)])
@pytest.mark.parametrize(
    "given",
    [
        *(("--where", "year=2024"), ("--path", "notes/k"), ("--source", "kiln.md"), ("--until", "2024-12-01")),
        ("--since", "2024-01-01", "--until", "2024-12-01"),
    ],
    ids=" ".join,
)
def test_the_command_lists(indexed, query, given):
    done = indexed("--json", "search", *given, *query)
    assert done.exit_code == 0
    assert paths(json.loads(done.stdout)) == ["notes/kiln.md"]
    assert indexed("search", *query).exit_code == (1 if query else 2)


@pytest.mark.parametrize("query", EMPTY)
def test_python_lists_for_every_field_of_filters(memory, query):
    until = datetime(2024, 6, 1, tzinfo=UTC)
    passing = {
        "source": Filters(source="kiln.md"),
        "path": Filters(path="notes/kiln"),
        "until": Filters(until=until),
        "since": Filters(since=until),
        "metadata": Filters(metadata=(Condition("year", "=", 2024),)),
    }
    assert {field.name for field in attrs.fields(Filters)} == {*passing, "chat_id"}
    for name, filters in passing.items():
        expected = ["notes/boat.md" if name == "since" else "notes/kiln.md"]
        assert paths(memory.search(query, filters=filters)) == expected, name

    async def ask() -> Any:
        async with AsyncMemory.open(load_config()) as other:
            return await other.search(query, filters=passing["metadata"])

    assert paths(asyncio.run(ask())) == ["notes/kiln.md"]


@pytest.mark.parametrize("query", EMPTY)
def test_every_tool_that_takes_conditions_lists(memory, query):
    tools = {tool["name"]: tool["input_schema"] for tool in memory.tools()}
    filtering = {name: schema for name, schema in tools.items() if "where" in schema["properties"]}
    assert filtering.keys() == {"memory_search"}
    for name, schema in filtering.items():
        assert "query" in schema["required"]  # a program that makes calls of the schema gives one
        assert not schema["properties"]["query"].keys() & {"pattern"}
        known = {key: value for key, value in CONDITIONS.items() if key in schema["properties"]}
        assert len(known) == 6
        for key, value in known.items():
            given = {key: value} if value is not None else {key: "2025-01-01"}
            expected = ["notes/kiln.md"] if value is not None else ["notes/boat.md"]
            assert paths(memory.call_tool(name, {"query": query, **given})) == expected, key
        refused = memory.call_tool(name, {"query": query})
        assert refused["error"].endswith("query is empty")
        assert "tags, where" in refused["hint"]


def from_rest(memory: Memory, query: str) -> Iterator[Any]:
    """Yield the answer of the operation with each condition."""
    events = pytest.importorskip("klaw_serve.events")
    from klaw_serve.table import OPERATIONS
    from klaw_serve.tenants import Tenant

    search = OPERATIONS["memory.search"]
    tenant = Tenant("", memory, events.EventHub(None))
    for key, value in CONDITIONS.items():
        if value is not None and key in search.properties:
            yield search.call(tenant, {"query": query, key: value})
    yield search.call(tenant, {"where": ["year=2024"]})


def from_tool(memory: Memory, query: str) -> Iterator[Any]:
    """Yield the answer of the tool for models."""
    yield memory.call_tool("memory_search", {"query": query, "where": ["year=2024"]})


def from_retriever(memory: Memory, query: str) -> Iterator[Any]:
    """Yield what the retriever of LangChain finds."""
    pytest.importorskip("langchain_core")
    from langchain_klaw import KlawRetriever

    found = KlawRetriever(memory=memory, filter={"year": 2024}).invoke(query)
    yield [{"path": document.metadata["path"]} for document in found]


def from_vector_store(memory: Memory, query: str) -> Iterator[Any]:
    """Yield what the vector store of LangChain finds, of the same notes."""
    pytest.importorskip("langchain_core")
    from langchain_klaw import KlawVectorStore

    store = KlawVectorStore(memory=memory)
    store.add_texts(list(NOTES.values()), [{"year": 2024}, {"year": 2025}], ids=["notes/kiln.md", "notes/boat.md"])
    yield [{"path": document.id} for document in store.similarity_search(query, filter={"year": 2024})]
    assert store.similarity_search(query) == []


def from_haystack(memory: Memory, query: str) -> Iterator[Any]:
    """Yield what the document store of Haystack finds, of the same notes."""
    haystack = pytest.importorskip("haystack")
    from klaw_haystack import KlawDocumentStore

    with Memory.open(memory.config.data_dir.parent / "haystack") as own:
        store = KlawDocumentStore(own)
        for name, year in (("kiln", 2024), ("boat", 2025)):
            store.write_documents([haystack.Document(id=f"notes/{name}.md", content=name, meta={"year": year})])
        wanted = {"field": "meta.year", "operator": "==", "value": 2024}
        yield [{"path": document.id} for document in store.search(query, filters=wanted)]
        assert store.search(query) == []


#: The modules that turn conditions of a caller into filters of a search, and what they find without a question. A
#: string says why a module is tested elsewhere.
EXITS: dict[str, Callable[[Memory, str], Iterator[Any]] | str] = {
    "klaw_core.cli.search": "above",
    "klaw_facts.commands.reading": "lists facts: plugins/klaw-facts/tests",
    "klaw_facts.facts": "takes what the command has read",
    "klaw_facts.index": "takes what the command has read",
    "klaw_haystack.document_store": from_haystack,
    "klaw_serve.searching": from_rest,
    "klaw_sessions.recall": "has a question",
    "klaw_tools.memory_tools": from_tool,
    "langchain_klaw.retrievers": from_retriever,
    "langchain_klaw.stores": "lists by itself: plugins/langchain-klaw/tests/test_store.py",
    "langchain_klaw.vectorstores": from_vector_store,
}
PROBES = {name: probe for name, probe in EXITS.items() if not isinstance(probe, str)}
READERS = {"parse_condition", "conditions_of", "pushed_down", "Condition"}


def filtering_modules() -> set[str]:
    """Return the modules that search a memory with conditions of a caller."""
    root = Path(__file__).parents[3]
    found = set()
    for name in asking_modules():
        inside = f"{name.replace('.', '/')}.py"
        (file,) = [*root.glob(inside), *root.glob(f"plugins/*/src/{inside}")]
        nodes = ast.walk(ast.parse(file.read_text("utf-8")))
        if any(isinstance(node, ast.Name) and node.id in READERS for node in nodes):
            found.add(name)
    return found


def test_every_module_that_filters_is_tried_or_says_why_not():
    assert filtering_modules() == EXITS.keys()


@pytest.mark.parametrize("query", EMPTY)
@pytest.mark.parametrize("name", PROBES)
def test_every_exit_lists(memory, name, query):
    probe: Any = PROBES[name]
    found = list(probe(memory, query))
    assert found
    for answer in found:
        assert paths(answer) == ["notes/kiln.md"]
