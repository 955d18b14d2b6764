"""A journal that is lost, or that somebody has cut by hand: nothing is forgotten, and nothing comes back by itself."""

from __future__ import annotations

import pytest

from klaw_journals import FileJournals
from klaw_sync import Folder, MemoryKey, Sync

KEY = MemoryKey("00112233445566aa", bytes(range(32)))


@pytest.fixture
def machines(tmp_path):
    """Two machines with two documents, of which the first has lost one; and their folder."""
    folder = Folder(tmp_path / "folder")
    both = [Sync(tmp_path / name, host=name) for name in ("one", "other")]
    for each in both:
        (each.root / "sync").mkdir(parents=True)
        KEY.save(each.root / "sync" / "key")
    journal = FileJournals(both[0].root).records("documents")
    journal.append([{"id": "memory/a", "text": "a"}, {"id": "memory/b", "text": "b"}])
    for each in (*both, both[0]):
        each.run([folder])
    lines = journal.path.read_text().splitlines(keepends=True)
    journal.path.write_text(lines[0])
    return *both, folder


def ids(sync):
    return sorted(FileJournals(sync.root).records("documents").ids())


def test_what_is_missing_is_counted_and_stays_elsewhere(machines):
    one, other, folder = machines
    assert one.run([folder]).missing == 1
    assert one.run([folder]).missing == 1
    other.run([folder])
    assert (ids(one), ids(other)) == (["memory/a"], ["memory/a", "memory/b"])


@pytest.mark.promise("Y21")
def test_it_can_be_brought_back(machines):
    one, other, folder = machines
    assert one.run([folder], missing="restore").missing == 0
    assert one.run([folder]).sent == 0
    other.run([folder])
    assert ids(one) == ids(other) == ["memory/a", "memory/b"]


@pytest.mark.promise("Y22")
def test_it_can_be_forgotten_everywhere(machines):
    one, other, folder = machines
    assert one.run([folder], missing="forget").missing == 0
    other.run([folder])
    assert ids(one) == ids(other) == ["memory/a"]


@pytest.mark.promise("Y20")
def test_a_lost_journal_forgets_nothing(machines):
    one, other, folder = machines
    (one.root / "documents.jsonl").unlink()
    assert one.run([folder]).missing == 2
    other.run([folder])
    assert ids(other) == ["memory/a", "memory/b"]
    one.run([folder], missing="restore")
    assert ids(one) == ["memory/a", "memory/b"]


def test_an_empty_folder_forgets_nothing(machines, tmp_path):
    _, other, folder = machines
    for file in sorted(folder.root.rglob("*.kseg")):
        file.unlink()
    report = other.run([Folder(tmp_path / "folder")])
    assert (report.forgotten, report.missing) == (0, 0)
    assert ids(other) == ["memory/a", "memory/b"]
