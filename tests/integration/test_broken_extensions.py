"""What an extension does wrong is named as its fault, and costs the others nothing that can be kept from it."""

import ast
import threading
from datetime import UTC, datetime
from inspect import isfunction
from pathlib import Path

import pytest
from attrs import evolve

import klaw_core
import klaw_journals.interfaces
import klaw_journals.records
import klaw_tools.interfaces
from klaw_core import (
    CloseEvent,
    Condition,
    Document,
    Entry,
    Extension,
    Filters,
    ForgetEvent,
    IndexEvent,
    KlawError,
    ListeningExtension,
    LiveComponent,
    Memory,
    NewDocument,
    PluginContractError,
    PluginError,
    QueryError,
    RecordError,
    SearchEvent,
    Source,
    StoreError,
    StoreFullError,
)
from klaw_journals import Chat, Message

ABILITIES = [
    getattr(library, name)
    for library in (klaw_core, klaw_journals, klaw_tools)
    for name in library.__all__
    if name.endswith("Extension") and name not in {"Extension", "ConsentExtension"}
]


def Bad(**attributes):  # noqa: N802  # makes an object, as a class does
    """Return an extension with these attributes, and every ability that has one of them."""
    bases = [each for each in ABILITIES if set(attributes) & {name for name in vars(each) if not name.startswith("_")}]
    if "origins" in attributes and klaw_core.SourcedExtension not in bases:
        bases.append(klaw_core.SourcedExtension)
    others = {name: lambda *_: () for each in bases for name, value in vars(each).items() if isfunction(value)}
    extension = type("Bad", tuple(bases) or (klaw_core.Extension,), {**others, "name": "bad"})()
    extension.__dict__.update(attributes)
    return extension


class Listed(Source):
    """A source with one document."""

    origin = "bad"

    def scan(self):
        return [Entry("bad/one")]

    def read(self, entry):
        return Document(entry.path, "The kestrel.\n", "bad", "bad", datetime(2026, 1, 1, tzinfo=UTC))


def declaring(ability):
    """Return an object that inherits an ability, and defines nothing of it."""
    names = {"name": "bad", "origin": "bad", "origins": (), "record_kinds": (), "joins": object}
    return type("Bad", (ability,), names)()


def required(ability):
    """Return the methods of an ability that have no default."""
    return {name for name, method in vars(ability).items() if getattr(method, "__isabstractmethod__", False)}


def empty_methods(path):
    """Yield the methods of classes, other than Protocols, that have only a docstring and return something."""
    for base in ast.parse(path.read_text("utf-8")).body:
        if isinstance(base, ast.ClassDef) and not any("Protocol" in ast.unparse(each) for each in base.bases):
            for method in base.body:
                is_empty = isinstance(method, ast.FunctionDef) and [type(part) for part in method.body] == [ast.Expr]
                if is_empty and ast.unparse(method.returns) != "None":
                    yield f"{base.name}.{method.name}", [ast.unparse(mark) for mark in method.decorator_list]


def test_a_method_without_a_body_is_abstract_and_cannot_return_nothing_by_mistake():
    libraries = (
        Path(each.__file__) for each in (klaw_journals.interfaces, klaw_journals.records, klaw_tools.interfaces)
    )
    files = sorted([*(Path(klaw_core.__file__).parent / "interfaces").glob("*.py"), *libraries])
    empty = {name: marks for path in files for name, marks in empty_methods(path)}
    assert {"Source.scan", "ToolExtension.tools"} <= empty.keys()
    assert {name: marks for name, marks in empty.items() if "abstractmethod" not in marks} == {}


@pytest.mark.parametrize("ability", [each for each in ABILITIES if required(each)])
def test_an_ability_that_is_not_defined_is_named_when_the_extension_is_built(make_home, ability):
    home = make_home("memory")
    home.write("a.md", "The heron.\n")
    components = [LiveComponent("extension", "bad", declaring(ability))]
    with Memory.open(home.config(), registry=home.registry(), components=components) as memory:
        with pytest.raises(PluginContractError, match=f"inherits {ability.__name__} but does not define") as raised:
            memory.extension("bad")
        assert any(f"does not define {name}" in str(raised.value) for name in required(ability))
        assert memory.index(home.notes).added == 1  # the others work


def fail(*_):
    raise RuntimeError("a defect")


@pytest.fixture
def with_bad(home):
    def open_memory(**attributes):
        components = [LiveComponent("extension", "bad", Bad(**attributes))]
        return Memory.open(home.config(), registry=home.registry(), components=components)

    home.write("a.md", "The heron.\n")
    return open_memory


@pytest.mark.parametrize("tools", [fail, lambda: None, lambda: [{"name": "x"}]])
def test_failing_tools_do_not_affect_other_tools(with_bad, tools):
    with with_bad(tools=tools) as memory:
        assert "memory_search" in {tool["name"] for tool in memory.tools()}
        assert "error" not in memory.call_tool("memory_search", {"query": "heron"})


@pytest.mark.parametrize("offer", [fail, lambda _: ["x"], lambda _: 1])
def test_a_failing_offer_is_a_notice_of_the_context(with_bad, offer, home):
    with with_bad(offer=offer) as memory:
        memory.index(home.notes)
        context = memory.context("heron")
        assert "The heron." in context.volatile
        assert any("'bad'" in notice for notice in context.notices)


class TestSourcesThatFail:
    @pytest.fixture
    def memory(self, with_bad, home):
        with with_bad(origins=("bad",), sources=lambda: [Listed()]) as memory:
            memory.index()
            memory.index(home.notes)
        with with_bad(origins=("bad",), sources=fail) as memory:
            yield memory

    def test_the_other_sources_are_indexed_and_the_failure_is_reported(self, memory, home):
        home.write("b.md", "The ibis.\n")
        report = memory.index()
        assert report.added == 1
        assert any(item.path == "bad" and "a defect" in item.reason for item in report.skipped)

    def test_indexed_documents_of_a_failing_source_stay(self, memory):
        memory.index()
        assert memory.search("kestrel")
        assert not any("no source any more" in problem for problem in memory.status().problems)

    def test_status_and_doctor_name_the_failing_extension(self, memory):
        assert any("a defect" in problem for problem in memory.status().problems)
        assert any("a defect" in finding.what for finding in memory.doctor().findings)

    def test_a_rebuild_that_would_lose_its_chunks_is_rejected(self, memory):
        with pytest.raises(PluginError, match="'bad'"):
            memory.reindex()
        assert memory.search("kestrel")

    def test_indexing_its_origin_is_an_error(self, memory):
        with pytest.raises(PluginError, match="'bad'"):
            memory.index(origin="bad")


class TestExtensionsThatCannotBeBuilt:
    """Nobody knows which sources it has: what was indexed of them must not be dropped meanwhile."""

    @pytest.fixture
    def memory(self, with_bad, home):
        with with_bad(origins=("bad",), sources=lambda: [Listed()]) as memory:
            memory.index()
            memory.index(home.notes)
        with with_bad(origins=None) as memory:
            yield memory

    def test_a_rebuild_that_would_lose_its_chunks_is_rejected(self, memory):
        with pytest.raises(PluginError, match=r"bad/ would leave the index.*extension bad"):
            memory.reindex()
        assert memory.search("kestrel")

    def test_doctor_names_its_chunks_and_keeps_them(self, memory):
        (found,) = [finding for finding in memory.doctor(fix=True).findings if finding.check == "ghost-source"]
        assert (found.fixed, found.where) == (False, "bad")
        assert "extension bad" in found.what
        assert memory.search("kestrel")

    def test_status_names_it_as_the_possible_owner_of_chunks(self, memory):
        (problem,) = [problem for problem in memory.status().problems if problem.startswith("bad/")]
        assert "or belongs to a plugin or extension that does not work" in problem

    def test_a_rebuild_continues_if_it_has_no_chunks(self, memory):
        memory.forget("bad/")
        memory.reindex()
        assert [result.path for result in memory.search("heron kestrel", 9)] == ["notes/a.md"]


def test_a_plugin_that_does_not_load_keeps_the_chunks_of_its_sources(with_bad, home):
    with with_bad(origins=("bad",), sources=lambda: [Listed()]) as memory:
        memory.index()
    registry = home.registry()
    broken = evolve(registry.plugins[0], name="lost", problem="ImportError: no kestrels")
    with Memory.open(home.config(), registry=evolve(registry, plugins=(*registry.plugins, broken))) as memory:
        with pytest.raises(PluginError, match="plugin lost: ImportError"):
            memory.reindex()
        memory.doctor(fix=True)
        assert memory.search("kestrel")
    with Memory.open(home.config(), registry=registry) as memory:
        if home.backend == "postgres":  # another machine may have the plugin, so only a person removes them
            (finding,) = memory.doctor(fix=True).remaining
            assert (finding.check, finding.hint) == ("ghost-source", "klaw forget bad/")
            memory.forget("bad/")
        assert memory.doctor(fix=True).remaining == ()
        assert not memory.search("kestrel")


def test_documents_of_the_journal_that_are_not_indexed_are_named(home, monkeypatch):
    with home.open() as memory:
        memory.save("the pier")

        def fail_to_write(_store):
            raise StoreFullError("no space left")

        with monkeypatch.context() as full:
            full.setattr(type(memory._assembly.store), "write", fail_to_write)
            report = memory.add([NewDocument("boat", "The boat lies there.")])
        assert report.added == 0
        (notice,) = report.notices
        assert "1 documents are kept" in notice and "no space left" in notice  # noqa: PT018
        (found,) = [finding for finding in memory.doctor().findings if finding.check == "never-indexed"]
        assert found.items == ("documents/boat",)
        memory.index()
        assert memory.search("boat")


def test_doctor_names_an_extension_whose_status_fails(with_bad):
    with with_bad(status=fail) as memory:
        assert "bad" not in str(memory.status().statistics)
        assert any("a defect" in finding.what and finding.where == "bad" for finding in memory.doctor().findings)


def test_a_status_value_does_not_hide_that_of_another(home):
    with home.open() as memory:
        taken = next(iter(memory._assembly.store.statistics()))

    def telling(name):
        class Telling(klaw_core.StatusExtension):
            def status(self):
                return {"told": name, taken: name}

        Telling.name = name
        return LiveComponent("extension", name, Telling())

    components = [telling("one"), telling("two")]
    with Memory.open(home.config(), registry=home.registry(), components=components) as memory:
        told = memory.status().statistics
    assert (told["told"], told["two told"]) == ("one", "two")
    assert (told[f"one {taken}"], told[f"two {taken}"]) == ("one", "two")
    assert told[taken] not in {"one", "two"}


def test_status_names_every_collection_of_an_origin(home):
    with home.open() as memory:
        memory.add([NewDocument("a", "One.")], collection="mine")
        memory.add([NewDocument("b", "Two.")], collection="theirs")
        memory.save("the pier")
        assert set(memory.status().collections["documents"]) >= {"mine", "theirs"}
        assert memory.status().collections["saved"] == ("memory",)


@pytest.mark.parametrize("origins", [None, "bad", (1,)])
def test_an_extension_with_invalid_origins_is_left_out(with_bad, home, origins):
    with with_bad(origins=origins, sources=lambda: ()) as memory:
        memory.index(home.notes)
        assert memory.search("heron")
        with pytest.raises(PluginError, match="'bad'"):
            memory.extension("bad")


def test_failing_records_name_the_extension(with_bad, tmp_path):
    attributes = {"record_kinds": ("bad",), "records": fail, "check_record": fail, "add": fail}
    with with_bad(**attributes) as memory, pytest.raises(PluginError, match="'bad'"):
        memory.export(tmp_path / "all.jsonl")
    assert not (tmp_path / "all.jsonl").exists()


def test_a_listener_that_exits_does_not_end_a_search(with_bad, home):
    def leave(_event):
        raise SystemExit(3)

    with with_bad() as memory:
        memory.index(home.notes)
        memory.on_change(leave)
        assert memory.search("heron")


class Keeping(ListeningExtension):
    """An extension that keeps what it should forget."""

    name = "bad"

    def on(self, event):
        fail(event)


def test_an_extension_that_cannot_forget_is_an_error_after_all_others_were_told(home):
    told = []
    home.write("a.md", "The heron.\n")
    components = [LiveComponent("extension", "bad", Keeping(), listens=(ForgetEvent,))]
    with Memory.open(home.config(), registry=home.registry(), components=components) as memory:
        memory.index(home.notes)
        memory.on_change(told.append)
        with pytest.raises(StoreError, match=r"is stored, but the extension 'bad' failed: .*a defect") as raised:
            memory.forget("notes/a.md")
        assert "klaw index" in raised.value.hint
        assert told == [ForgetEvent(("notes/a.md",))]
        assert not memory.search("heron", mode="fts")


class Full(ListeningExtension):
    """An extension whose disk is full."""

    name = "bad"

    def on(self, event):
        raise StoreFullError(f"no space left at {type(event).__name__}")


def test_a_full_disk_of_an_extension_is_an_error_of_that_kind(home):
    """Whoever waits for space knows it by its kind, as REST does (507)."""
    home.write("a.md", "The heron.\n")
    components = [LiveComponent("extension", "bad", Full(), listens=(ForgetEvent,))]
    with Memory.open(home.config(), registry=home.registry(), components=components) as memory:
        memory.index(home.notes)
        with pytest.raises(StoreFullError, match="is stored, but the extension 'bad' failed: no space left"):
            memory.forget("notes/a.md")
        assert not memory.search("heron", mode="fts")


def test_an_extension_that_cannot_forget_stops_nothing_half_way(home):
    """What removes something of its own, or an index run, goes on: an error before its end would leave the text."""
    home.write("a.md", "The heron.\n")
    components = [LiveComponent("extension", "bad", Keeping(), listens=(ForgetEvent,))]
    chat, moment = Chat.parse("telegram_1"), datetime(2026, 2, 24, 12, 0, tzinfo=UTC)
    with Memory.open(home.config(), registry=home.registry(), components=components) as memory:
        memory.add([NewDocument("one", "The kestrel.")])
        with pytest.raises(StoreError, match="but the extension 'bad' failed"):
            memory.delete(["one"])
        memory.conversations.append(Message("user", "The lapwing.", moment, meta=chat.meta))
        message = memory.conversations.append(Message("user", "The plover.", moment, meta=chat.meta))
        memory.index()
        with pytest.raises(StoreError, match="but the extension 'bad' failed"):
            memory.forget(f"{chat.name}/{message.id}")
        assert memory.index(home.notes).added == 1
        assert not memory.search("kestrel", mode="fts")
        assert not memory.search("plover", mode="fts")
        with pytest.raises(StoreError, match="but the extension 'bad' failed"):
            memory.conversations.purge(chat)
        assert not memory.search("lapwing", mode="fts")
    left = b"".join(path.read_bytes() for path in (home.root / "data").rglob("*") if path.is_file())
    assert [word for word in (b"kestrel", b"plover", b"lapwing") if word in left] == []


def test_listeners_are_told_of_notes_that_another_machine_has_excluded(home):
    told = []
    home.write("a.md", "The heron.\n")
    with home.open() as memory:
        memory.index(home.notes)
        memory.on_change(told.append)
        assert list(memory.workspaces._forget_excluded({"notes": ("a.md",)})) == []
        assert told == [ForgetEvent(("notes/a.md",))]
        assert not memory.search("heron", mode="fts")


def test_a_callback_that_fails_at_forgetting_is_no_error(with_bad, home):
    with with_bad() as memory:
        memory.index(home.notes)
        memory.on_change(fail)
        assert memory.forget("notes/a.md").paths == ("notes/a.md",)


class TestDocuments:
    def test_forgetting_a_path_of_several_collections_needs_the_collection(self, with_bad):
        with with_bad() as memory:
            memory.add([NewDocument("a", "One.")], collection="mine")
            memory.add([NewDocument("a", "Two.")], collection="theirs")
            with pytest.raises(QueryError, match="mine, theirs"):
                memory.forget("documents/a")
            assert memory.get_by_ids(["a"], collection="mine")
            assert memory.get_by_ids(["a"], collection="theirs")

    def test_law_journal_and_index_agree_after_concurrent_writers(self, with_bad):
        with with_bad() as memory:
            for turn in range(5):
                texts = [f"text {turn} {number}" for number in range(4)]
                start = threading.Barrier(len(texts))

                def write(text, start=start):
                    start.wait()
                    memory.add([NewDocument("r", text)])

                threads = [threading.Thread(target=write, args=(text,)) for text in texts]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                (document,) = memory.get_by_ids(["r"])
                (result,) = memory.search("text", mode="fts", limit=5)
                assert result.content.strip() == document.text

    def test_new_documents_are_added_and_known_ones_changed(self, with_bad):
        with with_bad() as memory:
            first = memory.add([NewDocument("a", "One."), NewDocument("b", "Two.")])
            again = memory.add([NewDocument("b", "Three."), NewDocument("c", "Four.")])
        assert [(report.added, report.changed) for report in (first, again)] == [(2, 0), (1, 1)]

    def test_a_single_string_is_not_a_list_of_ids(self, with_bad):
        with with_bad() as memory:
            for call in (memory.delete, memory.get_by_ids):
                with pytest.raises(QueryError, match="list of ids"):
                    call("abc")

    @pytest.mark.parametrize("given", [[{"id": "a"}], NewDocument("a", "One."), None])
    def test_an_invalid_list_of_documents_is_rejected(self, with_bad, given):
        with with_bad() as memory, pytest.raises(RecordError):
            memory.add(given)


def test_a_mapping_as_condition_is_rejected(with_bad):
    with with_bad() as memory, pytest.raises(QueryError, match="Condition"):
        memory.search("heron", filters=Filters(metadata={"k": 1}))
    assert Condition("k", "=", 1)


def test_a_directory_an_origin_and_paths_exclude_each_other(with_bad, home):
    with with_bad() as memory:
        with pytest.raises(QueryError, match="takes one of"):
            memory.index(home.notes, origin="documents")
        with pytest.raises(KlawError):
            memory.index(paths=home.notes / "nowhere.md")


class TestDeclaredAbilities:
    """An extension does what its class inherits, whatever its methods are called."""

    @pytest.fixture
    def memory(self, home):
        def called(*_given, **_named):
            raise AssertionError("a method was called that the extension does not declare")

        class Accidental(Extension):
            name = "accidental"
            origins = record_kinds = joins = 3
            remove = forget = excluded = version = root = changed = stamp = called

        names = {name for each in ABILITIES for name in vars(each) if not name.startswith("_")}
        assert names >= {"attach", "check", "sources", "records", "tools", "offer", "status", "on"}
        for name in names - set(vars(Accidental)):
            setattr(Accidental, name, called)
        live = LiveComponent("extension", "accidental", Accidental(), listens=(SearchEvent, IndexEvent, CloseEvent))
        with Memory.open(home.config(), registry=home.registry(), components=[live]) as memory:
            yield memory

    def test_names_of_methods_promise_nothing(self, memory, home):
        home.write("a.md", "The heron.\n")
        memory.index(home.notes)
        assert memory.search("heron")
        assert "The heron." in memory.context("heron").volatile
        assert memory.tools()
        assert not [problem for problem in memory.status().problems if "accidental" in problem]
        assert not [finding for finding in memory.doctor().findings if "accidental" in str(finding)]
        memory.forget("notes/a.md")
        memory.reindex()
        assert memory.extension("accidental").name == "accidental"

    def test_an_object_that_inherits_no_extension_is_refused_with_the_line_to_write(self, home):
        class Bare:
            name = "bare"

        live = LiveComponent("extension", "bare", Bare())
        with (
            Memory.open(home.config(), registry=home.registry(), components=[live]) as memory,
            pytest.raises(PluginError, match=r"inherit klaw_core.Extension \(class NAME\(Extension\)"),
        ):
            memory.extension("bare")
