"""An extension that is a journal of records: it gets its source, export, import and checks from `JournalExtension`."""

import json

import pytest

from klaw_core import API, Component, Document, KlawError, NoOptions, RecordError
from klaw_journals import FileJournals
from klaw_memories import JournalExtension
from klaw_testing.source import SourceContract
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

    def refusal(self, record, /):
        return "a refused entry" if record["text"] == "refused" else ""

    def document_of(self, record, /):
        return Document(record["id"], record["text"], "diary", "diary", MOMENT)


def diary(number, text):
    return {"id": f"diary/{number}", "text": text}


@pytest.fixture
def opened(home):
    """A memory with a diary of two entries."""
    home.extra.append(
        ("extension", Component("diary", NoOptions, lambda _, place: Diary(FileJournals(place.data_dir)), API))
    )
    with home.open() as memory:
        memory.extension("diary").journal.append([diary(1, "the harbour was frozen"), diary(2, "skated with Ada")])
        memory.index()
        yield memory


class TestSource(SourceContract):
    @pytest.fixture
    def source(self, opened):
        return opened.extension("diary").source()


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


def test_what_changes_back_while_the_change_is_indexed_is_indexed_too(opened, check, monkeypatch):
    extension, before, after = opened.extension("diary"), diary(3, "the ice melted"), diary(3, "the ice broke")
    version = extension.journal.append([before])
    extension.journal.append([after])
    host, writes = type(extension.host), []
    index_documents = host.index_documents

    def index_and_write(self, documents, *arguments):
        report = index_documents(self, documents, *arguments)
        if documents[0].text == after["text"]:
            writes.append(extension.journal.append([before]))
        return report

    monkeypatch.setattr(host, "index_documents", index_and_write)
    extension.index([before], "memory", version)
    assert len(writes) == 1
    assert (found(opened, "melted"), found(opened, "broke")) == (["diary/3"], [])
    check(opened)


def test_an_error_of_the_system_while_indexing_is_one_of_klaw(opened, monkeypatch):
    def fail(*_arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Diary, "document_of", fail)
    with pytest.raises(KlawError, match="Permission denied"):
        opened.extension("diary").index([diary(1, "text")])


def test_a_journal_that_does_not_exist_is_no_source(home, opened):
    extension = opened.extension("diary")
    assert [source.origin for source in extension.sources()] == ["diary"]
    (home.root / "data" / "diary.jsonl").unlink()
    assert extension.sources() == ()


def test_a_source_has_the_records_of_its_collection(opened):
    extension = opened.extension("diary")
    extension.journal.append([diary(3, "elsewhere") | {"collection": "other"}])
    paths = {name: [entry.path for entry in extension.source(name).scan()] for name in ("memory", "other")}
    assert paths == {"memory": ["diary/1", "diary/2"], "other": ["diary/3"]}


def test_what_another_writer_forgets_after_or_during_a_scan_is_forgotten(opened, monkeypatch):
    journal = opened.extension("diary").journal
    source = opened.extension("diary").source()
    assert len(source.scan()) == 2
    journal.forget(["diary/2"])
    assert list(source.forgotten(["diary/1", "diary/2"])) == ["diary/2"]
    replay = type(journal).replay

    def replay_and_forget(self):
        before = replay(self)
        monkeypatch.undo()
        journal.forget(["diary/1"])
        return before

    monkeypatch.setattr(type(journal), "replay", replay_and_forget)
    assert [entry.path for entry in source.scan()] == ["diary/1"]
    assert list(source.forgotten(["diary/1"])) == ["diary/1"]


def test_beside_a_broken_line_only_what_was_forgotten_here_is_forgotten(home, opened):
    source = opened.extension("diary").source()
    source.scan()
    with (home.root / "data" / "diary.jsonl").open("a") as file:
        file.write("broken\n")
    assert list(source.forgotten(["diary/9"])) == []
    source.forget(["diary/1"])
    assert list(source.forgotten(["diary/1", "diary/9"])) == ["diary/1"]


@pytest.mark.promise("D10")
def test_an_interrupted_erasure_is_reported_and_finished(home, opened):
    path, extension = home.root / "data" / "diary.jsonl", opened.extension("diary")

    def interrupt(number):
        with path.open("a") as file:  # the texts are blanked after it
            file.write(f'{{"forget": "diary/{number}"}}\n')
        assert extension.journal.replay().unfinished == (f"diary/{number}",)

    interrupt(1)
    assert [(one.check, one.items) for one in extension.check()] == [("entry-unfinished", ("diary/1",))]
    extension.fix(())
    assert b"frozen" not in path.read_bytes()
    interrupt(2)
    assert extension.source().prepare(None) == ()
    assert b"skated" not in path.read_bytes()
    assert list(extension.check()) == []


def test_an_import_adds_in_batches_and_says_what_it_refuses(home, opened, tmp_path, monkeypatch):
    journal = opened.extension("diary").journal
    journal.append([diary(3, "refused"), *(diary(number, f"day {number}") for number in range(4, 10))])
    with (home.root / "data" / "diary.jsonl").open("a") as file:
        file.write("broken\n")
    report = opened.export(tmp_path / "export.jsonl")
    assert (report.counts, len(report.skipped)) == ({"entry": 9}, 1)
    journal.forget([f"diary/{number}" for number in range(1, 10)])
    monkeypatch.setattr("klaw_memories.journal_extension._BATCH", 3)
    batches, add = [], type(journal).add
    monkeypatch.setattr(type(journal), "add", lambda self, records: batches.append(len(records)) or add(self, records))
    imported = opened.import_(tmp_path / "export.jsonl")
    assert (dict(imported.added), imported.kept) == ({"entry": 8}, ("a refused entry",))
    assert batches == [3, 3, 2]


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
    imported = opened.import_(tmp_path / "export.jsonl")
    assert imported.kept == ("the entry diary/1 already exists with other content",)
    assert not imported.added.get("entry")
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
