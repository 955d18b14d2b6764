"""An extension that is a journal of records: it gets its source, export, import and checks from `JournalExtension`."""

import json

import pytest

from klaw_core import (
    API,
    Component,
    Document,
    FileJournals,
    JournalExtension,
    NoOptions,
    RecordError,
)
from klaw_testing.values import MOMENT


class Diary(JournalExtension):
    """Entries by id, as small as such an extension can be."""

    name = "diary"
    kind = "entry"
    plural = "entries"
    label = "the entry "

    def parse(self, record, /):
        if not isinstance(record.get("text"), str):
            raise RecordError("text is not a string")
        return record

    def document_of(self, record, /):
        return Document(record["id"], record["text"], "diary", "diary", MOMENT)


def diary(number, text):
    return {"id": f"diary/{number}", "text": text}


@pytest.fixture
def opened(home):
    """A memory with a diary of two entries."""
    home.extra.append(
        ("extension", Component("diary", NoOptions, lambda _, place: Diary(FileJournals.at(place.data_dir)), API))
    )
    with home.open() as memory:
        memory.extension("diary").journal.append([diary(1, "the harbour was frozen"), diary(2, "skated with Ada")])
        memory.index()
        yield memory


def found(memory, words):
    return [result.path for result in memory.search(words, mode="fts")]


def test_its_records_are_found_and_forgotten_with_their_bytes(home, opened, check):
    assert found(opened, "frozen") == ["diary/1"]
    opened.forget("diary/1")
    assert found(opened, "frozen") == []
    assert b"frozen" not in (home.root / "data" / "diary.jsonl").read_bytes()
    check(opened)


def test_a_record_that_is_indexed_at_once_is_found(opened):
    added = diary(3, "the ice melted")
    version = opened.extension("diary").journal.append([added])
    assert opened.extension("diary").index([added], "memory", version).added == 1
    assert found(opened, "melted") == ["diary/3"]


def test_what_another_writer_changed_meanwhile_is_indexed(opened, check):
    extension, before, after = opened.extension("diary"), diary(3, "the ice melted"), diary(3, "the ice broke")
    version = extension.journal.append([before])
    extension.journal.append([after])
    extension.index([before], "memory", version)
    assert (found(opened, "melted"), found(opened, "broke")) == ([], ["diary/3"])
    version = extension.journal.version
    extension.journal.forget(["diary/3"])
    extension.index([after], "memory", version)
    assert found(opened, "broke") == []
    check(opened)


def test_an_export_carries_its_records_and_an_import_adds_each_once(opened, tmp_path):
    report = opened.export(tmp_path / "export.jsonl")
    assert report.counts == {"entry": 2}
    journal = opened.extension("diary").journal
    journal.forget(["diary/1"])
    journal.append([diary(2, "skated alone")])
    imported = opened.import_(tmp_path / "export.jsonl")
    assert (imported.added, imported.kept) == ({"entry": 1}, ("the entry diary/2 already exists with other content",))
    assert dict(opened.import_(tmp_path / "export.jsonl").present) == {"entry": 1}
    assert set(journal.ids()) == {"diary/1", "diary/2"}


def test_a_record_that_another_program_adds_during_an_import_stays(opened, tmp_path, monkeypatch):
    opened.export(tmp_path / "export.jsonl")
    journal = opened.extension("diary").journal
    journal.forget(["diary/1"])
    replay = type(journal).replay

    def replay_and_write(self):
        before = replay(self)
        monkeypatch.undo()
        journal.append([diary(1, "theirs")])
        return before

    monkeypatch.setattr(type(journal), "replay", replay_and_write)
    assert opened.import_(tmp_path / "export.jsonl").kept == ("the entry diary/1 already exists with other content",)
    assert journal.get(["diary/1"])["diary/1"]["text"] == "theirs"


@pytest.mark.parametrize("value", [{"id": "diary/3"}, "text", None, 3])
def test_an_import_refuses_what_is_not_its_record(opened, tmp_path, value):
    opened.export(tmp_path / "export.jsonl")
    header = (tmp_path / "export.jsonl").read_text().splitlines()[0]
    lines = [header, json.dumps({"kind": "entry", "value": value}), '{"kind": "end", "records": 1}']
    (tmp_path / "other.jsonl").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(RecordError, match="nothing was imported"):
        opened.import_(tmp_path / "other.jsonl")


def test_doctor_reports_broken_lines_and_makes_the_file_private(home, opened):
    path = home.root / "data" / "diary.jsonl"
    with path.open("a") as file:
        file.write("broken\n")
    path.chmod(0o644)
    checks = {finding.check for finding in opened.doctor().findings if finding.where == str(path)}
    assert checks == {"entry-lines", "permissions"}
    opened.doctor(fix=True)
    assert path.stat().st_mode & 0o777 == 0o600
