"""Without the distribution of a feature, the methods that pass on to it name the extra that installs it."""

import sys
from io import BytesIO

import pytest
from attrs import evolve
from features import absent

import klaw_core
from klaw_core import NewDocument, PluginNotFoundError
from klaw_core.plugins.installing import install_extras

#: The calls that a memory passes on, by the extra and the extension.
CALLS = {
    ("conversations", "conversations"): [
        lambda memory: memory.conversations,
        lambda memory: memory.extensions.host.extension("conversations"),
    ],
    ("doctor", "doctor"): [
        lambda memory: memory.doctor(),
        lambda memory: memory.export(BytesIO()),
        lambda memory: memory.import_("export.jsonl"),
    ],
    ("memories", "core_memory"): [lambda memory: memory.core],
    ("memories", "saved"): [lambda memory: memory.save("a lantern")],
    ("memories", "documents"): [
        lambda memory: memory.add([NewDocument("a", "a lantern")]),
        lambda memory: memory.delete(["a"]),
        lambda memory: memory.get_by_ids(["a"]),
    ],
    ("notes", "workspaces"): [
        lambda memory: memory.index("."),
        lambda memory: memory.workspaces,
        lambda memory: memory.restore("notes/a.md"),
    ],
    ("tools", "tools"): [
        lambda memory: memory.tools(),
        lambda memory: memory.toolbox(),
        lambda memory: memory.call_tool("memory_status", {}),
        lambda memory: memory.context("a harbour"),
    ],
}


@pytest.mark.parametrize(
    ("feature", "call"), [(feature, number) for feature, calls in CALLS.items() for number in range(len(calls))]
)
def test_a_method_names_the_extra_of_its_missing_feature(home, monkeypatch, feature, call):
    extra, name = feature
    without(home, monkeypatch, extra)
    with (
        home.open(chunking={"type": "plain"}) as memory,
        pytest.raises(PluginNotFoundError, match=f"'{name}' is not installed") as caught,
    ):
        CALLS[feature][call](memory)
    assert caught.value.hint == install_extras([extra])


@pytest.mark.parametrize("extra", sorted({extra for extra, _ in CALLS} - {"notes"}))
def test_a_memory_without_a_feature_indexes_and_finds_notes(home, monkeypatch, extra):
    without(home, monkeypatch, extra)
    home.write("a.md", "a lantern at the pier")
    with home.open() as memory:
        memory.index(home.notes)
        assert [result.path for result in memory.search("lantern", mode="fts")] == ["notes/a.md"]
        assert memory.status()
        assert extra == "tools" or (memory.context("lantern").volatile and memory.tools())


def test_a_memory_without_notes_keeps_and_finds_what_programs_add(home, monkeypatch):
    home.write("a.md", "a lantern at the pier")
    with home.open(chunking={"type": "plain"}) as memory:
        memory.index(home.notes)
    without(home, monkeypatch, "notes")
    with home.open(chunking={"type": "plain"}) as memory:
        memory.add([NewDocument("b", "a lantern in the window")])
        assert memory.index().removed == 0
        assert {result.path for result in memory.search("lantern", mode="fts")} == {"notes/a.md", "documents/b"}
        assert memory.collections(searched=True) == ("memory",)


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ({}, "markdown"),
        ({"chunking": {"type": "plain"}, "sources": [{"type": "workspace", "path": "/notes"}]}, "workspace"),
    ],
)
def test_a_configuration_names_the_extra_of_missing_notes(home, monkeypatch, config, missing):
    without(home, monkeypatch, "notes")
    with pytest.raises(PluginNotFoundError, match=f"'{missing}' is not installed") as caught:
        home.open(**config)
    assert caught.value.hint == install_extras(["notes"])


def without(home, monkeypatch, extra):
    """Let the distribution of an extra be missing."""
    registry = home.registry()
    offers = {key: found for key, found in registry.offers.items() if found[0].distribution != f"klaw-{extra}"}
    assert len(offers) < len(registry.offers) or f"klaw-{extra}" in absent()
    monkeypatch.setattr(type(home), "registry", lambda _self: evolve(registry, offers=offers))


def test_a_name_that_a_missing_library_defines_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "klaw_journals"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "klaw_journals", None)
    monkeypatch.delitem(vars(klaw_core), "Message", raising=False)
    with pytest.raises(ImportError, match="Message is of klaw_journals, which is not installed") as caught:
        _ = klaw_core.Message
    assert install_extras(["default"]) in str(caught.value)
