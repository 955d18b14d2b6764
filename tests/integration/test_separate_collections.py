"""A search that names no collection covers every collection but those that ask to be separate, at every exit."""

import asyncio
import json

import pytest
from attrs import evolve, frozen
from homes import NoOptions

from klaw_core import (
    API,
    AsyncMemory,
    AttachedExtension,
    Component,
    Entry,
    NewDocument,
    QueryError,
    RecordError,
    SearchRequest,
    Source,
    SourcedExtension,
    WorkspaceError,
)
from klaw_core.cli.entry_cache import installed
from klaw_doctor.records import end, header
from klaw_testing.values import MOMENT, make_document

#: A collection that an adapter writes, one of a person, one that an extension keeps separate, and the documentation.
COLLECTIONS = ("memory", "adk", "work", "drafts", "docs")


class Drafts(AttachedExtension):
    name = "drafts"

    def attach(self, host, /):
        self.host = host


class Pages(Source):
    """One page."""

    origin = "diary"
    forgets_missing = True

    def __init__(self, collection):
        self.collection = collection

    def scan(self):
        return [Entry("diary/1")]

    def read(self, entry, /):
        return evolve(make_document(entry.path, "a lantern of the diary"), origin="diary")


@pytest.fixture
def filled(home):
    home.extra.append(("extension", Component("drafts", NoOptions, lambda _o, _c: Drafts(), API, separate=("drafts",))))
    with home.open() as memory:
        for name in COLLECTIONS:
            text = f"the lantern of {name}"
            if name == "drafts":
                memory.extension(name).host.index_documents(
                    [evolve(make_document("drafts/a", text), origin="drafts")], name
                )
            else:
                memory.add([NewDocument(f"in-{name}", text)], collection=name)
    return home


def found(results):
    return {result.collection for result in results}


SEARCHED = {"memory", "adk", "work"}


def test_every_search_without_a_name_leaves_out_only_separate_collections(filled):
    with filled.open() as memory:
        for mode in ("hybrid", "fts", "vector"):
            results = memory.search("lantern", mode=mode)
            assert found(results) == SEARCHED, mode
            assert results.notices == ()
        assert found(memory.extension("drafts").host.search(SearchRequest("lantern"))) == SEARCHED
        texts = {result["content"] for result in memory.call_tool("memory_search", {"query": "lantern"})["results"]}
        assert texts == {f"the lantern of {name}" for name in SEARCHED}
        context = str(memory.context("where is the lantern?", trust="foreign"))  # what a program adds is foreign
        assert {name for name in COLLECTIONS if f"the lantern of {name}" in context} == SEARCHED
        assert set(memory.collections(searched=True)) == SEARCHED
        assert set(memory.collections()) == set(COLLECTIONS)


def test_an_asynchronous_search_covers_the_same(filled):
    async def ask():
        async with AsyncMemory.open(filled.config(), registry=filled.registry()) as memory:
            return await memory.search("lantern")

    assert found(asyncio.run(ask())) == SEARCHED


def test_only_its_extension_writes_to_a_separate_collection(filled):
    filled.write("a.md", "a foreign lantern")
    with filled.open() as memory:
        writes = {
            "add": lambda name: memory.add([NewDocument("foreign", "a foreign lantern")], collection=name),
            "index": lambda name: memory.index(filled.notes, collection=name),
        }
        for write in writes.values():
            with pytest.raises(QueryError, match="'drafts' belongs to the extension 'drafts'"):
                write("drafts")
        memory.index()
        assert [record.path for record in memory.documents(collection="drafts")] == ["drafts/a"]
        assert "notes" not in [source.origin for source in memory.sources()]
        for write in writes.values():
            write("docs")


def _record(kind, place, collection):
    if kind == "workspace":
        return {"kind": kind, "name": "notes", "value": {"path": str(place), "exclude": [], "collection": collection}}
    value = NewDocument("foreign", "a foreign lantern", created_at=MOMENT).record(collection)
    return {"kind": kind, "value": value}


@pytest.mark.parametrize("kind", ["document", "workspace"])
def test_an_import_adds_nothing_to_a_collection_of_an_extension(filled, kind):
    export = filled.root / "export.jsonl"
    for name in ("drafts", "others"):
        lines = [header(), _record(kind, filled.notes, name), end(1)]
        export.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with filled.open() as memory:
            if name == "drafts":
                told = "line 2: the collection 'drafts' belongs to the extension 'drafts'; nothing was imported"
                for dry_run in (True, False):
                    with pytest.raises(RecordError, match=told):
                        memory.import_(export, workspaces=True, dry_run=dry_run)
            else:
                assert memory.import_(export, workspaces=True).added == {kind: 1}


@frozen
class PagesOptions:
    collection: str = "memory"


def test_a_configured_source_does_not_write_to_a_collection_of_an_extension(filled):
    filled.extra.append(("source", Component("pages", PagesOptions, lambda given, _c: Pages(given.collection), API)))
    with filled.open(sources=[{"type": "pages", "collection": "drafts"}]) as memory:
        refused = "the source 'diary' is not indexed: the collection 'drafts' belongs to the extension 'drafts'"
        for use in (memory.index, lambda: memory.index(origin="diary"), memory.reindex, memory.sources):
            with pytest.raises(WorkspaceError, match=refused) as caught:
                use()
            assert "[[memory.sources]]" in caught.value.hint
        assert [record.path for record in memory.documents(collection="drafts")] == ["drafts/a"]
        assert found(memory.search("lantern")) == SEARCHED, "searches work as before"
    with filled.open(sources=[{"type": "pages", "collection": "docs"}]) as memory:
        assert memory.index().added == 1


def test_a_source_of_an_extension_writes_to_its_own_collection_only(filled):
    """A source may be in a collection of its own extension, not in that of another."""

    class Diary(AttachedExtension, SourcedExtension):
        origins = ("diary",)

        def __init__(self, name):
            self.name = name

        def attach(self, host, /):
            self.host = host

        def sources(self):
            return [Pages("drafts")]

    def component(name, **options):
        return ("extension", Component(name, NoOptions, lambda _o, _c: Diary(name), API, **options))

    filled.extra[:] = [component("drafts", separate=("drafts",))]
    with filled.open() as memory:
        assert memory.index().added == 1
    filled.extra.append(
        ("extension", Component("owner", NoOptions, lambda _o, _c: Drafts(), API, separate=("drafts",)))
    )
    filled.extra[0] = component("diary")
    with filled.open() as memory, pytest.raises(WorkspaceError, match=r"'diary' is not indexed: .* extension 'owner'"):
        memory.index()


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_named_collection_is_searched_alone(filled, name):
    with filled.open() as memory:
        assert found(memory.search("lantern", collection=name)) == {name}
        texts = memory.call_tool("memory_search", {"query": "lantern", "collection": name})["results"]
        assert [result["content"] for result in texts] == [f"the lantern of {name}"]
        assert found(memory.search("lantern", collection=["docs", "drafts"])) == {"docs", "drafts"}
        with pytest.raises(QueryError, match="unknown collection"):
            memory.search("lantern", collection="none")
        with pytest.raises(QueryError, match="no collection given"):
            memory.search("lantern", collection=[])


def test_a_person_keeps_collections_separate_by_the_configuration(filled):
    with filled.open(search={"separate": ["work", "memory", "none"]}) as memory:
        assert found(memory.search("lantern")) == {"memory", "adk"}, "memory is always searched"
        assert set(memory.collections(searched=True)) == {"memory", "adk"}
        assert found(memory.search("lantern", collection="work")) == {"work"}


def test_empty_collections_need_no_vectors(home):
    with home.open() as memory:
        memory.add([NewDocument("a", "the lantern")], collection="adk")
        assert found(memory.search("lantern")) == {"adk"}
        assert memory.search("lantern").notices == ()
        memory.delete(["a"], collection="adk")
        assert not list(memory.search("lantern"))


def test_new_text_of_every_searched_collection_is_indexed_before_a_search(home):
    home.write("a.md", "the lantern")
    with home.open(sync={"on_search": True}) as memory:
        memory.index(home.notes, collection="work")
        home.write("b.md", "the lighthouse")
        assert found(memory.search("lighthouse")) == {"work"}


def test_separate_collections_are_known_without_loading_an_extension(tmp_path):
    for _ in range(2):  # the second time from the cache
        registry = installed(tmp_path, [("store", "sqlite")])
        assert {"docs"} <= registry.separate_collections()
    assert registry.listing is not None
