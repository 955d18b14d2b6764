"""Core memory on several machines: what its owner deletes is in no file of any of them, the history included."""

from __future__ import annotations

import pytest

from klaw_journals import FileJournals, Traces
from klaw_memories import CoreMemory
from klaw_sync import Folder, MemoryKey, Sync

KEY = MemoryKey("00112233445566aa", bytes(range(32)))


@pytest.fixture
def world(tmp_path):
    """Two machines and their folder."""
    both = [Sync(tmp_path / name, host=name) for name in ("one", "other")]
    for each in both:
        (each.root / "sync").mkdir(parents=True)
        KEY.save(each.root / "sync" / "key")
    return *both, Folder(tmp_path / "folder")


def core(sync):
    return CoreMemory(FileJournals(sync.root).text("core_memory"))


def meet(one, other, folder):
    for each in (one, other, one, other):
        each.run([folder])


def holding(root, text):
    return [path for path in sorted(root.rglob("*")) if path.is_file() and text.encode() in path.read_bytes()]


@pytest.mark.parametrize("deleted", ["drink", "Drink"])
def test_a_deletion_erases_the_history_of_every_machine(world, tmp_path, deleted):
    one, other, _ = world
    core(one).update("user", "drink", "oolong")
    core(one).update("user", "food", "noodles")
    meet(*world)
    for key in ("drink", "food"):
        core(other).update("user", key, "anything", trust="agent")
    meet(*world)
    assert [fact.value for fact in core(other).history()] == ["oolong", "noodles"]
    core(one).delete("user", deleted)
    meet(*world)
    assert core(one).get().user == core(other).get().user == {"food": "anything"}
    assert [fact.value for fact in core(other).history()] == ["noodles"]
    assert holding(tmp_path, "oolong") == []


def test_a_deletion_forgets_what_lost_a_conflict(world, tmp_path):
    one, other, _ = world
    core(one).update("user", "drink", "oolong")
    core(other).update("user", "drink", "sencha")
    meet(*world)
    assert len(other.conflicts()) == 1
    core(one).delete("user", "drink")
    meet(*world)
    assert other.conflicts() == one.conflicts() == []
    assert holding(tmp_path, "oolong") == holding(tmp_path, "sencha") == []


def test_what_is_written_after_a_deletion_stays(world):
    one, other, folder = world
    core(one).update("user", "drink", "oolong")
    meet(*world)
    core(one).delete("user", "drink")
    core(one).update("user", "drink", "sencha")
    meet(*world)
    core(other).update("user", "drink", "water", trust="agent")
    meet(*world)
    assert core(one).get().user == core(other).get().user == {"drink": "water"}
    assert [fact.value for fact in core(other).history()] == ["sencha"]
    assert one.run([folder]).sent == 0


def test_an_agent_that_deletes_forgets_nothing(world):
    one, other, _ = world
    core(one).update("user", "drink", "oolong")
    meet(*world)
    core(other).delete("user", "drink", trust="agent")
    core(one).update("user", "drink", "sencha")
    meet(*world)
    assert len(one.conflicts()) == 1
    assert [fact.value for fact in core(other).history()] == ["oolong"]
    assert Traces(one.root).read() == Traces(other.root).read() == []


def test_a_history_that_could_not_be_read_is_erased_later(world, tmp_path):
    one, other, folder = world
    core(one).update("user", "drink", "oolong")
    meet(*world)
    core(other).update("user", "drink", "anything", trust="agent")
    meet(*world)
    path = other.root / "core_memory.json"
    whole = path.read_text()
    path.write_text(whole.replace('"user": {', '"user": [], "was": {'))
    core(one).delete("user", "drink")
    one.run([folder])
    for _ in range(2):
        assert "not an object" in other.run([folder]).problems[0]
    path.write_text(whole)
    for _ in range(2):
        other.run([folder])
    assert core(other).history() == []
    assert holding(tmp_path, "oolong") == []


def test_an_owner_who_shares_no_memory_leaves_no_trace(tmp_path):
    facts = CoreMemory(FileJournals(tmp_path).text("core_memory"))
    facts.update("user", "drink", "oolong")
    facts.delete("user", "drink")
    assert not (tmp_path / "sync").exists()
