"""Counts of what is found: never in the way of a search, erased with what is forgotten, and a reason to keep a fact."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import CloseEvent, FileLock, ForgetEvent, Memory, SearchEvent, SearchResults, load_config
from klaw_facts import recalls
from klaw_facts.facts import Facts
from klaw_facts.recalls import RecallCounts, Recalled

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)


@pytest.fixture
def counts(tmp_path):
    (tmp_path / "facts").mkdir()
    return RecallCounts(tmp_path / "facts", lambda: NOON)


@pytest.fixture
def memory(tmp_path):
    config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as opened:
        yield opened


def test_counts_of_several_processes_add_up(counts, tmp_path):
    other = RecallCounts(tmp_path / "facts", lambda: NOON + timedelta(days=2))
    for number in range(3):
        counts.count(["notes/a.md", "notes/b.md"][: 1 + number % 2])
    counts.write()
    other.count(["notes/b.md"])
    assert other.read() == {"notes/a.md": Recalled(3, "2026-02-24"), "notes/b.md": Recalled(2, "2026-02-26")}


def test_a_search_writes_nothing(counts, tmp_path):
    for _ in range(20):
        counts.on(SearchEvent("x", ("memory",), SearchResults()))
        counts.count(["notes/a.md"])
    assert not any((tmp_path / "facts").iterdir())
    counts.on(CloseEvent())
    assert counts.read() == {"notes/a.md": Recalled(20, "2026-02-24")}


def test_a_memory_without_facts_gets_no_file(tmp_path):
    counts = RecallCounts(tmp_path / "facts", lambda: NOON)
    counts.count(["notes/a.md"])
    counts.on(CloseEvent())
    assert not any(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_fails_no_search(tmp_path):
    (tmp_path / "facts").write_text("a file in the place of the directory", "utf-8")
    counts = RecallCounts(tmp_path / "facts", lambda: NOON)
    counts.count(["notes/a.md"])
    counts.on(CloseEvent())
    counts.on(ForgetEvent(("notes/a.md",)))
    assert counts.read() == {}


def test_what_is_forgotten_is_erased(counts, tmp_path):
    counts.count(["notes/walrus.md", "notes/b.md"])
    counts.write()
    counts.count(["notes/walrus.md", "notes/b.md"])
    counts.on(ForgetEvent(("notes/walrus.md",)))
    assert counts.read() == {"notes/b.md": Recalled(2, "2026-02-24")}
    assert b"walrus" not in (tmp_path / "facts" / "recalls.jsonl").read_bytes()


def test_broken_lines_are_left_out(counts, tmp_path):
    counts.count(["notes/a.md"])
    counts.write()
    with (tmp_path / "facts" / "recalls.jsonl").open("ab") as file:
        file.write(
            b'{"day":"2026-02-25","found":{"notes/b.md":"x"}}\n[]\nnull\n{"day": 1}\n\xff\n{"day":"2026-02-25","fou'
        )
    assert counts.read() == {"notes/a.md": Recalled(1, "2026-02-24")}


def test_the_file_does_not_grow_with_the_number_of_searches(counts, tmp_path, monkeypatch):
    monkeypatch.setattr(recalls, "_MAX_BYTES", 1_000)
    for number in range(200):
        counts.count([f"notes/{number % 7}.md"])
        counts.write()
    assert (tmp_path / "facts" / "recalls.jsonl").stat().st_size < 1_200
    assert sum(found.count for found in counts.read().values()) == 200


def test_the_results_of_a_memory_are_counted(memory):
    memory.extension(Facts).remember("I like boats")
    saved = memory.save("the drink is tea").path
    memory.search("tea")
    memory.context("which tea do we drink?")
    memory.search("nothing of this kind xyzzy")
    assert memory.extension(Facts).recalled()[saved].count == 2
    memory.forget(saved)
    assert saved not in memory.extension(Facts).recalled()


def test_a_fact_that_is_recalled_is_archived_later(memory, monkeypatch):
    facts = memory.extension(Facts)
    old = datetime.now(UTC) - timedelta(days=60)
    for name in ("seldom", "often"):
        fact = facts.keeper.remember(f"{name}: the build is red", category="temp", by="agent", valid_from=old)
        if name == "often":
            day = (datetime.now(UTC) - timedelta(days=25)).date().isoformat()
            file = facts.data_dir / "facts" / "recalls.jsonl"
            file.write_text(json.dumps({"day": day, "found": {f"facts/{fact.id}": 30}}) + "\n", "utf-8")
    monkeypatch.setattr(facts.compression, "now", lambda: datetime.now(UTC))
    assert facts.compress().archived == 0, "they were recorded today"
    monkeypatch.setattr(facts.compression, "now", lambda: datetime.now(UTC) + timedelta(days=30))
    assert facts.compress().archived == 1
    assert [fact.text for fact in facts.list(everything=True) if fact.is_archived] == ["seldom: the build is red"]


class TestErasing:
    """What was forgotten is in no line, whatever is written at the same time."""

    def test_a_path_that_is_forgotten_during_a_write_is_not_written(self, counts, tmp_path, monkeypatch):
        counts.count(["notes/b.md"])
        counts.write()
        counts.count(["notes/walrus.md", "notes/b.md"])
        opened = counts._opened

        def forget_first():
            monkeypatch.undo()
            counts.erase(["notes/walrus.md"])
            return opened()

        monkeypatch.setattr(RecallCounts, "_opened", lambda _self: forget_first())
        counts.write()
        assert counts.read() == {"notes/b.md": Recalled(2, "2026-02-24")}
        assert b"walrus" not in (tmp_path / "facts" / "recalls.jsonl").read_bytes()

    def test_an_erasure_that_waits_too_long_is_done_at_the_next_write(self, counts, tmp_path, monkeypatch):
        file = tmp_path / "facts" / "recalls.jsonl"
        counts.count(["notes/walrus.md", "notes/b.md"])
        counts.write()
        counts.count(["notes/c.md"])
        monkeypatch.setattr(recalls, "_LOCK_SECONDS", 0.0)
        with FileLock(file):
            counts.erase(["notes/walrus.md"])
            assert "notes/walrus.md" not in counts.read()
        assert b"walrus" in file.read_bytes()
        counts.on(CloseEvent())
        assert b"walrus" not in file.read_bytes()
        assert counts.read().keys() == {"notes/b.md", "notes/c.md"}

    def test_an_erasure_that_fails_is_done_at_the_next_write(self, counts, tmp_path, monkeypatch):
        counts.count(["notes/walrus.md"])
        counts.write()

        def fail(*_arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(RecallCounts, "_replace", fail)
        counts.erase(["notes/walrus.md"])
        monkeypatch.undo()
        counts.write()
        assert b"walrus" not in (tmp_path / "facts" / "recalls.jsonl").read_bytes()
