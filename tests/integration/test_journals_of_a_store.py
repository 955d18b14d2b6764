"""A store that keeps the journals: two machines that share it share one memory, and nothing a person owns is a file."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import pytest
from attrs import evolve
from server_store import ServerStore, TableJournals, Tables

from klaw_core import Chat, Memory, Message, NewDocument, NotFoundError, WorkspaceError
from klaw_core.sources.catalogue import Sources
from klaw_core.values.config import Selection
from klaw_doctor.diagnosis import Diagnosis
from klaw_journals import JournalingStore
from klaw_journals.file_journals import FileJournals
from klaw_journals.machine_id import make_machine_id
from klaw_testing.journal import LogFolderContract, OwnedTextContract, RecordJournalContract
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "123456")


@pytest.fixture(params=["files", "tables"])
def journals(request, tmp_path):
    return FileJournals(tmp_path) if request.param == "files" else TableJournals(Tables())


class TestRecords(RecordJournalContract):
    @pytest.fixture
    def journal(self, journals):
        return journals.records("kept")


class TestLogs(LogFolderContract):
    @pytest.fixture
    def logs(self, journals):
        return journals.logs("said")


class TestTexts(OwnedTextContract):
    @pytest.fixture
    def text(self, journals):
        return journals.text("known")


class TestTwoMachines:
    @pytest.fixture
    def machine(self, tmp_path, make_home):
        """Open the memory of one server on a machine, which has a data directory of its own."""
        home = make_home("memory")
        home.store = ServerStore()
        assert isinstance(home.store, JournalingStore)
        opened = []

        def open_on(name):
            config = evolve(home.config(), data_dir=tmp_path / name)
            opened.append(Memory.open(config, registry=home.registry()))
            return opened[-1]

        yield open_on
        for memory in opened:
            memory.close()

    def test_both_machines_share_owned_data_and_an_index_run_removes_none(self, machine, check):
        one, two = machine("one"), machine("two")
        saved = one.save("the lantern hangs at the pier", created_at=MOMENT)
        two.add([NewDocument("boat", "the boat lies at the pier")])
        one.conversations.append(Message("user", "where is the harbour?", MOMENT, meta=CHAT.meta))
        one.conversations.add_summary(CHAT, "somebody asked for the harbour", created_at=MOMENT)
        two.core.update("user", "name", "Ada")
        for memory in (two, one, two):
            report = memory.index()
            assert (report.removed, report.skipped) == (0, ())
            assert memory.get(saved.path).content == "the lantern hangs at the pier"
            assert memory.get_by_ids(["boat"])[0].text == "the boat lies at the pier"
            assert [line.message.content for line in memory.conversations.tail(CHAT, 9)] == ["where is the harbour?"]
            assert [one.content for one in memory.conversations.summaries(CHAT)] == ["somebody asked for the harbour"]
            assert memory.core.get().user == {"name": "Ada"}
            assert {found.origin for found in memory.search("harbour lantern boat", 9)} >= {"conversations", "saved"}
        check(one)
        assert not [finding for finding in two.doctor().findings if finding.severity == "error"]

    def test_a_text_forgotten_on_one_machine_is_forgotten_on_the_other(self, machine):
        one, two = machine("one"), machine("two")
        saved = one.save("the lantern hangs at the pier", created_at=MOMENT)
        said = one.conversations.append(Message("user", "where is the harbour?", MOMENT, meta=CHAT.meta))
        one.conversations.append(Message("user", "and the mill?", MOMENT, meta=CHAT.meta))
        one.index()
        two.forget(saved.path)
        assert two.conversations.forget(CHAT, said.id) == 1
        for memory in (one, two):
            memory.index()
            assert not list(memory.search("lantern harbour", mode="fts"))
            assert [line.message.content for line in memory.conversations.tail(CHAT, 9)] == ["and the mill?"]

    def test_owned_data_is_in_the_store_and_survives_a_rebuild(self, machine, tmp_path):
        memory = machine("one")
        memory.save("the lantern hangs at the pier", created_at=MOMENT)
        memory.core.update("user", "name", "Ada")
        memory.conversations.append(Message("user", "where is the harbour?", MOMENT, meta=CHAT.meta))
        memory.reindex()
        assert {found.origin for found in memory.search("harbour lantern", 9)} == {"conversations", "saved"}
        assert not [path.name for path in (tmp_path / "one").rglob("*") if path.suffix in (".json", ".jsonl")]

    def test_an_export_contains_the_owned_data(self, machine, tmp_path, make_home):
        memory = machine("one")
        saved = memory.save("the lantern hangs at the pier", created_at=MOMENT)
        memory.core.update("user", "name", "Ada")
        memory.conversations.append(Message("user", "where is the harbour?", MOMENT, meta=CHAT.meta))
        memory.export(tmp_path / "export.jsonl")
        with make_home("sqlite").open() as other:
            other.import_(tmp_path / "export.jsonl")
            assert other.get(saved.path).content == "the lantern hangs at the pier"
            assert other.core.get().user == {"name": "Ada"}
            assert [line.message.content for line in other.conversations.tail(CHAT, 9)] == ["where is the harbour?"]


class TestNotesOfTwoMachines:
    """Machines that share a store have directories of their own."""

    @pytest.fixture
    def machine(self, tmp_path, make_home):
        home = make_home("postgres" if os.environ.get("KLAW_TEST_STORE") == "postgres" else "memory")
        home.store = ServerStore()
        opened = []

        def open_on(name, **notes):
            """Open the memory of a machine with these notes; open it again with the notes that it has."""
            config = evolve(home.config(), data_dir=tmp_path / name)
            opened.append(Memory.open(config, registry=home.registry()))
            directory = tmp_path / name / "disk" / "notes"
            directory.mkdir(parents=True, exist_ok=True)
            for note, text in notes.items():
                (directory / f"{note}.md").write_text(text)
            return opened[-1], directory

        yield open_on
        for memory in opened:
            memory.close()

    def test_an_index_of_one_removes_no_note_of_the_other(self, machine):
        (one, harbour), (two, mill) = machine("one", boat="# Boat at the pier"), machine("two", wheel="# Wheel")
        one.index(harbour)
        report = two.index(mill)
        assert (report.added, report.removed) == (1, 0)
        for memory in (one, two, one, two):
            assert memory.index().removed == 0
            assert [found.path for found in memory.search("pier", mode="fts")] == ["notes/boat.md"]
            assert [found.path for found in memory.search("wheel", mode="fts")] == ["notes-2/wheel.md"]

    def test_a_name_that_the_other_uses_is_taken(self, machine):
        (one, harbour), (two, mill) = machine("one", boat="# Boat"), machine("two", wheel="# Wheel")
        one.index(harbour)
        with pytest.raises(WorkspaceError, match="already in use"):
            two.index(mill, name="notes")
        two.index(mill, name="mill")
        with pytest.raises(WorkspaceError, match="already in use"):
            two.workspaces.rename("mill", "notes")
        one.workspaces.rename("notes", "harbour")
        two.workspaces.rename("mill", "notes")
        assert {found.path for found in one.search("boat wheel", mode="fts")} == {"harbour/boat.md", "notes/wheel.md"}

    def test_the_list_of_notes_of_the_other_is_not_read_for_a_new_directory(self, machine, monkeypatch):
        (one, harbour), (two, mill) = machine("one", boat="# Boat"), machine("two", wheel="# Wheel")
        one.index(harbour)
        shutil.rmtree(harbour)  # it is on another disk
        read, paths = [], Sources.paths
        monkeypatch.setattr(Sources, "paths", lambda self, *names: read.append(names) or paths(self, *names))
        assert two.index(mill).added == 1
        assert list(two.status().origins) == ["notes", "notes-2"]
        assert ("notes", "memory") not in read

    def test_the_other_takes_no_note_for_a_leftover(self, machine):
        (one, harbour), (two, _) = machine("one", boat="# Boat at the pier"), machine("two")
        one.index(harbour)
        two.save("the mill")
        status = two.status()
        assert (status.problems, status.origins["notes"]) == ((), (1, 1))
        assert status.elsewhere["notes"].endswith(f":{harbour.resolve()}")
        assert one.status().elsewhere == {}
        assert two.doctor(fix=True) == Diagnosis()
        assert two.search("pier", mode="fts")

    def test_a_rebuild_keeps_the_notes_of_the_other(self, machine, check):
        (one, harbour), (two, mill) = machine("one", boat="# Boat at the pier"), machine("two", wheel="# Wheel")
        one.index(harbour)
        two.index(mill)
        two.reindex()
        assert [found.path for found in two.search("pier")][:1] == ["notes/boat.md"]
        one.index()
        assert (one.index().changed, one.index().removed) == (0, 0)
        check(one)

    def test_a_rebuild_embeds_the_notes_of_the_other_before_writers_wait(self, machine, monkeypatch):
        (one, harbour), (two, _) = machine("one", boat="# Boat at the pier", oar="# Oar"), machine("two")
        one.index(harbour)
        two.save("the mill")
        recorder, embedded = two._assembly.embedder.serving.recorder, []
        rebuild = type(two._assembly.store).rebuild

        def rebuilding(store):
            embedded.append(recorder.take())
            return rebuild(store)

        recorder.take()
        monkeypatch.setattr(type(two._assembly.store), "rebuild", rebuilding)
        report = two.reindex(Selection("embedder", "counting", "memory.embedding", {"model": "other"}))
        assert sum("pier" in text for text in embedded[0]) == 1
        assert (recorder.take(), report.embedded) == ([], 3)
        assert [found.path for found in two.search("boat at the pier", mode="vector")][:1] == ["notes/boat.md"]

    def test_a_list_of_workspaces_that_was_lost_takes_the_same_directory_again(self, machine):
        one, harbour = machine("one", boat="# Boat at the pier")
        one.index(harbour)
        new, _ = machine("new")  # a container that starts with nothing but the notes
        assert (new.index(harbour).unchanged, new.status().elsewhere) == (1, {})
        assert one.index().removed == 0

    def test_lists_that_already_use_one_name_do_not_overwrite_each_other(self, machine):
        (one, harbour), (two, mill) = machine("one", boat="# Boat at the pier"), machine("two", wheel="# Wheel")
        two.index(mill)
        two.forget("notes/")
        one.index(harbour)
        two._part("workspaces").registry.remember(mill)  # as an earlier version did
        with pytest.raises(WorkspaceError, match=r"two.* needs another name: .*'notes' is .*one"):
            two.index(origin="notes")
        assert [(item.path, item.keep) for item in two.index().skipped] == [("notes", True)]
        assert two.search("pier", mode="fts")

    def test_one_can_forget_what_the_other_left(self, machine):
        (one, harbour), (two, mill) = machine("one", boat="# Boat"), machine("two", wheel="# Wheel")
        one.index(harbour)
        assert two.forget("notes/").paths == ("notes/boat.md",)
        assert two.status().elsewhere == {}
        two.index(mill)
        assert list(two.status().origins) == ["notes"]

    @pytest.fixture
    def one_name(self, machine):
        """Two machines whose lists of workspaces have one name, which an earlier version allowed; one has indexed."""
        (one, harbour), (two, mill) = machine("one", boat="# Boat at the pier"), machine("two", wheel="# Wheel")
        two._part("workspaces").registry.remember(mill)
        one.index(harbour)
        return one, two, mill

    def test_a_run_over_files_of_one_name_changes_nothing_of_the_other(self, one_name):
        one, two, mill = one_name
        (mill / "boat.md").write_text("# Another boat")
        report = two.index(paths=[mill / "boat.md", mill / "gone.md"])
        assert [(item.path, item.keep) for item in report.skipped] == [("notes", True)]
        (mill / "boat.md").unlink()
        assert two.index(paths=[mill / "boat.md"]).removed == 0
        assert [found.path for found in one.search("pier", mode="fts")] == ["notes/boat.md"]

    def test_a_search_that_indexes_changes_nothing_of_the_other(self, one_name):
        one, two, _ = one_name
        assert ["needs another name" in problem for problem in two._runs.refresh(["memory"])] == [True]
        assert [found.path for found in one.search("pier", mode="fts")] == ["notes/boat.md"]

    def test_a_rebuild_with_one_name_keeps_the_notes_of_the_other(self, one_name, check):
        one, two, _ = one_name
        two.save("the mill")
        two.reindex()
        assert [found.path for found in one.search("pier", mode="fts")] == ["notes/boat.md"]
        check(one)

    def test_a_single_note_of_the_other_cannot_be_forgotten_here(self, one_name):
        one, two, _ = one_name
        with pytest.raises(NotFoundError, match="whose next index run would add it again") as caught:
            two.forget("notes/boat.md")
        assert "`klaw forget notes/boat.md` on " in caught.value.hint
        assert two.status().excluded == {}
        assert one.search("pier", mode="fts")
        two.workspaces.rename("notes", "mill")
        two.forget("mill/wheel.md")
        one.forget("notes/boat.md")
        assert (one.index().added, two.index().added) == (0, 0)
        assert not two.search("pier wheel", mode="fts")

    def test_forgetting_a_name_keeps_the_notes_of_the_other_in_another_collection(self, machine):
        (one, harbour), (two, mill) = machine("one", boat="# Boat at the pier"), machine("two", wheel="# Wheel")
        two._part("workspaces").registry.remember(mill, collection="docs")  # before one had recorded the name
        one.index(harbour)
        assert two.index().added == 1
        one.forget("notes/")
        assert [found.path for found in one.search("wheel", mode="fts", collection="docs")] == ["notes/wheel.md"]
        assert list(one.status().elsewhere) == ["notes"]
        assert not one.search("pier", mode="fts")
        one.forget("notes/")  # now it is the name of the other alone
        assert not one.search("wheel", mode="fts", collection="docs")

    def test_the_doctor_fixes_nothing_of_the_other(self, one_name):
        one, two, _ = one_name
        findings = two.doctor(fix=True).findings
        assert [(item.check, item.where, item.fixed) for item in findings] == [("name-taken", "notes", False)]
        assert "klaw workspace rename notes NEW" in findings[0].hint
        assert [problem for problem in two.status().problems if "needs another name" in problem]
        assert [found.path for found in one.search("pier", mode="fts")] == ["notes/boat.md"]

    def test_a_rename_keeps_the_notes_of_the_other(self, one_name):
        one, two, _ = one_name
        report = two.workspaces.rename("notes", "mill")
        assert ["notes/ stays indexed" in notice for notice in report.notices] == [True]
        for memory in (one, two):
            assert memory.index().removed == 0
            paths = {found.path for found in memory.search("pier wheel", mode="fts")}
            assert paths == {"notes/boat.md", "mill/wheel.md"}

    def test_to_forget_a_workspace_of_one_name_keeps_the_notes_of_the_other(self, one_name):
        one, two, mill = one_name
        assert two.forget("notes/").paths == ()
        assert list(two.status().workspaces) == []
        two.index(mill)
        paths = {found.path for found in one.search("pier wheel", mode="fts")}
        assert paths == {"notes/boat.md", "notes-2/wheel.md"}

    def test_of_two_that_index_one_name_at_once_the_first_gets_it(self, one_name):
        one, two, _ = one_name
        (source,) = two._sources.with_origin("notes")
        shared = two._sources.machines
        seen = [{}, shared.journal.get(["memory/notes"])]  # it has looked before the other has recorded its own
        refused = pytest.raises(WorkspaceError, match="another name")
        with patch.object(type(shared.journal), "get", side_effect=seen), refused:
            shared.claim(source)
        assert one.status().elsewhere == {}

    def test_notes_that_no_machine_has_recorded_are_kept(self, one_name):
        one, two, _ = one_name
        two._sources.machines.journal.forget(["memory/notes"])  # an earlier version has recorded nothing
        two.forget("notes/")  # its own list
        two._sources.machines.journal.forget(["memory/notes"])
        one.index(force=True)
        two._sources.machines.journal.forget(["memory/notes"])
        (finding,) = two.doctor(fix=True).findings
        assert (finding.check, finding.hint, finding.fixed) == ("ghost-source", "klaw forget notes/", False)
        assert ["or belongs to a machine that has not indexed" in problem for problem in two.status().problems] == [
            True
        ]
        two.save("the mill")
        two.reindex()
        assert [found.path for found in one.search("pier", mode="fts")] == ["notes/boat.md"]
        two.forget("notes/")
        assert two.doctor() == Diagnosis()

    def test_a_new_container_with_the_host_name_and_path_of_another_is_another_machine(self, machine, tmp_path):
        one, notes = machine("box", boat="# Boat at the pier")
        one.index(notes)
        shutil.rmtree(tmp_path / "box")
        new, notes = machine("box", wheel="# Wheel")
        new.index(notes)
        assert new.index().removed == 0
        paths = {found.path for found in new.search("pier wheel", mode="fts")}
        assert paths == {"notes/boat.md", "notes-2/wheel.md"}

    def test_a_container_that_keeps_only_its_notes_continues(self, machine, tmp_path):
        one, notes = machine("box", boat="# Boat at the pier", wheel="# Wheel", mill="# Mill")
        one.index(notes)
        for file in (tmp_path / "box").iterdir():
            if file.is_file():
                file.unlink()
        (notes / "mill.md").unlink()  # a change while no machine was running
        new, _ = machine("box", lamp="# Lamp")
        report = new.index(notes)
        assert (report.unchanged, report.added, report.removed) == (2, 1, 1)
        assert list(new.status().origins) == ["notes"]

    def test_a_copied_data_directory_is_another_machine_by_its_host_name(self, machine, tmp_path):
        (one, harbour), (two, mill) = machine("one", boat="# Boat at the pier"), machine("two", wheel="# Wheel")
        one.index(harbour)
        shutil.copy(tmp_path / "one" / "machine-id", tmp_path / "two" / "machine-id")
        two._part("workspaces").registry.remember(mill)  # the image contains the list too
        with patch("socket.gethostname", return_value="clone"):
            assert [item.path for item in two.index().skipped] == ["notes"]
            assert one.search("pier", mode="fts")

    def test_a_machine_that_gets_another_host_name_continues_in_another_directory(self, machine, tmp_path):
        one, notes = machine("one", boat="# Boat at the pier")
        one.index(notes)
        moved = notes.rename(tmp_path / "one" / "moved")
        with patch("socket.gethostname", return_value="new-name"):
            assert one.index(moved, name="notes").unchanged == 1
        assert [found.path for found in one.search("pier", mode="fts")] == ["notes/boat.md"]

    def test_the_id_of_a_machine_is_private_and_stays(self, machine, tmp_path):
        file = tmp_path / "one" / "machine-id"
        one, notes = machine("one", boat="# Boat at the pier")
        one.status()
        assert not file.exists()  # a command that only reads makes no file
        one.index(notes)
        made = file.read_text()
        assert (len(made.strip()), file.stat().st_mode & 0o777) == (32, 0o600)
        one.index(force=True)
        assert file.read_text() == made
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(make_machine_id, [tmp_path / "new" / "machine-id"] * 8))) == 1

    @pytest.mark.parametrize("damage", ["", "\xff", "x" * 65])
    def test_an_id_that_cannot_be_read_is_none(self, machine, tmp_path, damage):
        one, notes = machine("one", boat="# Boat at the pier")
        (tmp_path / "one" / "machine-id").write_text(damage, "latin-1")
        one.index(notes)
        assert one.index().unchanged == 1
        assert one.status().elsewhere == {}

    def test_a_record_of_an_earlier_version_gets_the_id(self, machine):
        one, notes = machine("one", boat="# Boat at the pier")
        one.index(notes)
        journal = one._sources.machines.journal
        (record,) = journal.replay().records.values()
        journal.append([{key: value for key, value in record.items() if key != "machine"}])
        assert one.status().elsewhere == {}
        assert one.index().unchanged == 1
        assert list(journal.replay().records.values()) == [record]
