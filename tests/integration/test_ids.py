"""No text takes the place of another because their ids, or their paths, are alike."""

import json
from datetime import UTC, datetime

import pytest

from klaw_core import (
    Document,
    Entry,
    NotFoundError,
    PluginContractError,
    RecordError,
    SkippedEntry,
    Source,
    WorkspaceError,
)
from klaw_core.plugins.isolation import IsolatedSource
from klaw_memories import saved as saved_module
from klaw_memories.saved import Saved

DAY = datetime(2026, 2, 24, 12, tzinfo=UTC)
# Found by search: with "manual" the first 12 digits of their hashes are equal.
ALIKE = ("Fact number 6864770", "Fact number 19856177")


def found(memory, query):
    return {result.content for result in memory.search(query, mode="fts")}


def test_two_texts_that_once_shared_an_id_have_different_ids(memory):
    """A regression: the second of two acknowledged saves replaced the first."""
    for text in ALIKE:
        memory.save(text, created_at=DAY)
    assert found(memory, "fact number") == set(ALIKE)


@pytest.fixture
def weak_hash(monkeypatch):
    """Only how often an id was tried for a text counts, so that all first ids are one, all second ids, and so on."""

    def weak(text):
        attempt = text.rpartition("\0")[2]
        return f"{int(attempt) if attempt.isdecimal() else 0:032x}" * 2

    monkeypatch.setattr(saved_module, "text_hash", weak)


@pytest.mark.promise("D42", "T26")
@pytest.mark.usefixtures("weak_hash")
def test_texts_whose_ids_collide_are_distinguished(memory):
    texts = [f"harbour {letter}" for letter in "acegikmo"]
    paths = [memory.save(text, created_at=DAY).path for text in texts]
    assert len(set(paths)) == len(texts)
    assert found(memory, "harbour") == set(texts)
    assert [memory.get(path).content for path in paths] == texts
    memory.reindex()
    assert found(memory, "harbour") == set(texts)


def test_an_equal_text_keeps_its_id(memory):
    first = memory.save("the harbour code is 4711", created_at=DAY)
    assert memory.save("the harbour code is 4711", created_at=DAY).path == first.path
    assert len(memory.search("harbour", mode="fts")) == 1


def record(name, text="EVIL"):
    value = {"id": name, "created_at": "2026-02-24T12:00:00Z", "source": "manual", "chat_id": None, "text": text}
    return {"kind": "saved", "value": value}


@pytest.fixture
def header(memory, tmp_path):
    """The first line of a real export."""
    memory.export(tmp_path / "real.jsonl")
    return json.loads((tmp_path / "real.jsonl").read_text().splitlines()[0])


@pytest.mark.parametrize(
    "name",
    ["notes/a.md", "notes/", "x", "../../etc/passwd", "conversations/t_c/2026-02-24.jsonl", "documents/a", "saved/x"],
)
def test_an_import_rejects_a_memory_with_a_foreign_path(home, memory, header, tmp_path, name):
    home.write("a.md", "the real note about the harbour")
    memory.index(home.notes)
    lines = [header, record(name), {"kind": "end", "records": 1}]
    (tmp_path / "evil.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(RecordError, match=r"line 2: .* is not the id of a saved memory; nothing was imported"):
        memory.import_(tmp_path / "evil.jsonl")
    memory.index()
    assert found(memory, "harbour EVIL") == {"the real note about the harbour"}


def test_a_journal_line_with_a_foreign_path_is_invalid(home, memory):
    """The journal may have been written by an older version that took any id."""
    home.write("a.md", "the real note about the harbour")
    memory.index(home.notes)
    memory.save("something")
    with (home.root / "data" / "saved.jsonl").open("a") as file:
        file.write(json.dumps(record("notes/a.md")["value"]) + "\n")
    memory.index()
    assert found(memory, "harbour EVIL") == {"the real note about the harbour"}
    assert [finding.check for finding in memory.doctor().findings if "line" in finding.check] == ["saved-lines"]
    memory.forget("notes/a.md")
    assert found(memory, "harbour EVIL") == set()


def test_old_short_ids_stay_readable_and_can_be_forgotten(memory, header, tmp_path):
    lines = [header, record("saved/2026-02-24/0123456789ab", "harbour"), {"kind": "end", "records": 1}]
    (tmp_path / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert memory.import_(tmp_path / "old.jsonl").added == {"saved": 1}
    assert memory.get("saved/2026-02-24/0123456789ab").content == "harbour"
    memory.forget("saved/2026-02-24/0123456789ab")
    assert found(memory, "harbour") == set()


def test_an_import_next_to_another_writer_replaces_nothing(memory, header, tmp_path, monkeypatch):
    """Another program saves between the look at what is known and the writing."""
    name = Saved.make("mine", "manual", None, DAY).id
    journal = memory.extension("saved").journal
    replay = type(journal).replay

    def replay_and_save(self):
        before = replay(self)
        monkeypatch.undo()
        journal.append([Saved.make("mine", "manual", None, DAY).record()])
        return before

    lines = [header, record(name, "theirs"), {"kind": "end", "records": 1}]
    (tmp_path / "other.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr(type(journal), "replay", replay_and_save)
    report = memory.import_(tmp_path / "other.jsonl")
    assert (report.added, report.kept) == ({}, (f"{name} already exists with other content",))
    assert memory.get(name).content == "mine"


class Impostor(Source):
    """A source whose documents have the paths of another one."""

    origin = "impostor"

    def scan(self):
        return [Entry("notes/a.md")]

    def read(self, entry):
        return Document(entry.path, "EVIL", "manual", self.origin, DAY)


def test_a_source_cannot_provide_documents_under_paths_of_another(memory):
    source = IsolatedSource.of(Impostor(), "impostor")
    with pytest.raises(Exception, match=r"with the path 'notes/a.md', .*below impostor/"):
        source.read(Entry("notes/a.md"))
    with pytest.raises(PluginContractError, match="does not begin with saved/"):
        memory.extensions.host.index_documents([Document("notes/a.md", "EVIL", "manual", "saved", DAY)])


@pytest.mark.parametrize(
    "item",
    [
        *(Entry(7), Entry("impostor/a", "text"), Entry("impostor/a", 1, 7)),
        *(SkippedEntry(7, "why", keep=True), SkippedEntry("impostor/a", None, keep=True)),
        *(None, "impostor/a"),
    ],
)
def test_a_scan_yields_nothing_but_sound_entries(item):
    class Source(Impostor):
        def scan(self):
            return [Entry("impostor/b", 1, "x"), SkippedEntry("impostor/c", "why", keep=True), item]

    with pytest.raises(WorkspaceError, match="expected an Entry or a SkippedEntry"):
        IsolatedSource.of(Source(), "impostor").scan()


def test_a_document_without_a_source_cannot_be_forgotten(memory):
    memory.save("one")
    with pytest.raises(NotFoundError):
        memory.forget("notes/a.md")
