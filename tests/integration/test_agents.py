"""Agents have memories of their own: opened when asked for, the same one again, closed together."""

import threading

import pytest

from klaw_core import NotFoundError, StoreError
from klaw_core.agents import Agents


@pytest.fixture
def agents(make_home):
    home = make_home("sqlite")
    with Agents(home.config(), registry=home.registry(), disabled=["mute"]) as opened:
        yield home, opened


def test_a_memory_is_opened_when_it_is_first_asked_for_and_then_kept(agents):
    home, opened = agents
    assert not (home.root / "data" / "agents").exists()
    memory = opened.memory("researcher")
    assert opened.memory("researcher") is memory
    assert [path.name for path in (home.root / "data" / "agents").iterdir()] == ["researcher"]
    assert (home.root / "data" / "agents" / "researcher" / "klaw.db").exists()


def test_agents_do_not_see_each_other(agents):
    _, opened = agents
    opened.memory("a").save("the kiln is hot")
    assert opened.memory("a").search("kiln")
    assert not opened.memory("b").search("kiln")


def test_a_disabled_agent_has_no_memory_and_no_file(agents):
    home, opened = agents
    assert opened.memory("mute") is None
    assert not (home.root / "data" / "agents" / "mute").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\0", "-x", "é", "x" * 101, "a\n"])
def test_names_that_could_lead_elsewhere_are_refused(agents, name):
    _, opened = agents
    with pytest.raises(NotFoundError, match="is not a valid agent name"):
        opened.memory(name)


def test_threads_that_ask_at_once_get_one_memory(agents):
    _, opened = agents
    found = []
    threads = [threading.Thread(target=lambda: found.append(opened.memory("a"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(memory) for memory in found}) == 1


def test_all_are_closed_together(agents):
    _, opened = agents
    memories = [opened.memory(name) for name in ("a", "b")]
    opened.close()
    opened.close()
    for memory in memories:
        with pytest.raises(StoreError, match="closed"):
            memory.status()
    with pytest.raises(NotFoundError, match="closed"):
        opened.memory("a")
