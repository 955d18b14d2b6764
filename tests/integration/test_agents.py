"""Agents have memories of their own: opened when asked for, the same one again, closed together."""

import threading

import pytest
from attrs import evolve

from klaw_core import API, Agents, Component, Extension, NoOptions, NotFoundError, Source, StoreError
from klaw_testing.memory_store import MemoryStore


@pytest.fixture
def agents(make_home):
    home = make_home("sqlite")
    with Agents(home.config(), registry=home.registry(), disabled=["mute"]) as opened:
        yield home, opened


def test_a_memory_is_opened_at_its_first_use_and_reused(agents):
    home, opened = agents
    assert not (home.root / "data" / "agents").exists()
    memory = opened.memory("researcher")
    assert opened.memory("researcher") is memory
    assert [path.name for path in (home.root / "data" / "agents").iterdir()] == ["researcher"]
    assert (home.root / "data" / "agents" / "researcher" / "klaw.db").exists()


@pytest.mark.promise("A3")
def test_agents_do_not_see_each_other(agents):
    _, opened = agents
    opened.memory("a").save("the kiln is hot")
    assert opened.memory("a").search("kiln")
    assert not opened.memory("b").search("kiln")


def test_a_disabled_agent_has_no_memory_and_no_file(agents):
    home, opened = agents
    assert opened.memory("mute") is None
    assert not (home.root / "data" / "agents" / "mute").exists()


def test_components_of_an_agent_get_its_name(make_home):
    home = make_home("memory")
    told = {}

    def tell(kind, value):
        def build(_options, context):
            told[kind] = context.agent
            return value

        return kind, Component("told", NoOptions, build, API)

    class Quiet(Source, Extension):
        name = "told"
        origin = "told"

        def scan(self):
            return ()

        def read(self, entry, /):
            raise NotImplementedError

    embedder = home.component("told").factory(None, None)
    kinds = {"embedder": embedder, "source": Quiet(), "extension": Quiet(), "store": MemoryStore()}
    home.extra.extend(tell(kind, value) for kind, value in kinds.items())
    config = home.config(embedding={"type": "told"}, store={"type": "told"})
    config = evolve(config, agents={"a": {"memory": {"sources": [{"type": "told"}]}}})
    with Agents(config, registry=home.registry()) as opened:
        opened.memory("a").index()
        opened.memory("a").save("the kiln is hot")
    assert told == dict.fromkeys(kinds, "a")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\0", "-x", "é", "x" * 101, "a\n"])
def test_names_that_are_not_safe_file_names_are_rejected(agents, name):
    _, opened = agents
    with pytest.raises(NotFoundError, match="is not a valid agent name"):
        opened.memory(name)


def test_concurrent_threads_get_the_same_memory(agents):
    _, opened = agents
    found = []
    threads = [threading.Thread(target=lambda: found.append(opened.memory("a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(memory) for memory in found}) == 1


def test_closing_closes_all_memories(agents):
    _, opened = agents
    memories = [opened.memory(name) for name in ("a", "b")]
    opened.close()
    opened.close()
    for memory in memories:
        with pytest.raises(StoreError, match="closed"):
            memory.status()
    with pytest.raises(NotFoundError, match="closed"):
        opened.memory("a")
