"""What a person keeps in order: lists, workspaces and their patterns, notes taken back, files that are left out."""

import json
import shutil
from datetime import UTC, datetime
from unicodedata import normalize

import pytest

from klaw_core import ConfigError, NewDocument, NotFoundError, QueryError, WorkspaceError
from klaw_core.indexing.collection import BATCH, Collection
from klaw_core.sources.skipped import SkippedFiles
from klaw_core.values.runs import SkippedEntry
from klaw_journals.chats import Chat
from klaw_journals.messages import Message


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.one_of(4)), "sqlite"])
def home(request, make_home):
    return make_home(request.param)


@pytest.fixture
def memory(home):
    home.write("a.md", "# Alpha\n\nthe harbour at night\n", hours=1)
    home.write("sub/b.md", "a lantern on the pier\n", hours=3)
    home.write("c.txt", "a buoy\n", hours=2)
    with home.open() as opened:
        opened.index(home.notes)
        yield opened


def _interrupt(*_args, **_options):
    raise KeyboardInterrupt


def paths(memory):
    return [record.path for record in memory.documents()]


class TestRecent:
    def test_the_newest_documents_are_first(self, memory):
        assert [item.path for item in memory.recent()] == ["notes/sub/b.md", "notes/c.txt", "notes/a.md"]
        assert [item.path for item in memory.recent(1)] == ["notes/sub/b.md"]

    def test_each_document_has_title_and_preview(self, memory):
        by_path = {item.path: item for item in memory.recent()}
        assert (by_path["notes/a.md"].title, by_path["notes/a.md"].preview) == ("Alpha", "the harbour at night")
        assert by_path["notes/c.txt"].preview == "a buoy"

    def test_headings_inside_the_text_end_in_a_colon(self, memory):
        text = "# Note\n\nReplaces the account.\n\n## Context\n\nOne card.\n\n### Why? ##\n\nOld.\n"
        memory.add([NewDocument("note", text)])
        (found,) = (item for item in memory.recent() if item.path == "documents/note")
        assert found.preview == "Replaces the account. Context: One card. Why? Old."

    def test_saved_texts_and_other_collections_are_included(self, memory):
        memory.save("The ferry leaves at seven.", created_at=datetime(2030, 1, 1, tzinfo=UTC))
        memory.add([NewDocument("x", "a rope", created_at=datetime(2029, 1, 1, tzinfo=UTC))], collection="shed")
        first, second, *_ = memory.recent()
        assert (first.origin, first.preview, first.source) == ("saved", "The ferry leaves at seven.", "manual")
        assert (second.path, second.collection) == ("documents/x", "shed")
        assert [item.path for item in memory.recent(collection="shed")] == ["documents/x"]
        assert [item.origin for item in memory.recent(origin="saved")] == ["saved"]
        assert len(memory.recent(None)) == 5
        assert memory.collections() == ("memory", "docs", "shed")

    def test_since_leaves_out_older_documents(self, memory):
        assert [item.path for item in memory.recent(since=datetime(2026, 2, 24, 15, tzinfo=UTC))] == ["notes/sub/b.md"]

    def test_only_the_newest_are_read(self, memory, monkeypatch):
        with memory._assembly.store.read() as snapshot:
            monkeypatch.delattr(type(snapshot), "manifest")
        assert [item.path for item in memory.recent(2)] == ["notes/sub/b.md", "notes/c.txt"]
        assert [item.path for item in memory.recent(1, origin="notes")] == ["notes/sub/b.md"]

    def test_the_documents_of_one_origin_are_listed_without_counting_all_chunks(self, memory, monkeypatch):
        memory.save("The ferry leaves at seven.")
        with memory._assembly.store.read() as snapshot:
            monkeypatch.delattr(type(snapshot), "counts")
        assert [item.origin for item in memory.recent(9, origin="saved")] == ["saved"]
        assert memory.recent(9, origin="nope") == ()

    def test_a_document_with_a_damaged_date_is_the_oldest(self, memory, home):
        if home.backend != "sqlite":
            pytest.skip("changes a table of SQLite")
        with memory._assembly.store.write() as transaction:
            transaction.resource.execute("UPDATE documents SET created_at = 'z' WHERE path = 'notes/sub/b.md'")
        assert [item.path for item in memory.recent(2)] == ["notes/c.txt", "notes/a.md"]
        assert [item.path for item in memory.recent()] == ["notes/c.txt", "notes/a.md", "notes/sub/b.md"]

    def test_an_unknown_collection_is_named(self, memory):
        with pytest.raises(QueryError, match="nope"):
            memory.recent(collection="nope")


def test_chats_are_ordered_by_their_last_day(memory):
    assert memory.conversations.chats() == ()
    for name, days in (("1", (3, 5)), ("2", (4, 4))):
        for day in days:
            meta = Chat("telegram", name).meta
            memory.conversations.append(Message("user", "ahoy", datetime(2026, 2, day, 9, tzinfo=UTC), meta=meta))
    first, second = memory.conversations.chats()
    assert (first.name, first.first_day.day, first.last_day.day, first.days) == ("telegram_1", 3, 5, 2)
    assert (second.name, second.days) == ("telegram_2", 1)


class TestRestore:
    def test_restore_indexes_a_forgotten_note(self, memory, check):
        memory.forget("notes/a.md")
        assert memory.index().added == 0
        report = memory.restore("notes/a.md")
        assert (report.added, report.lacking) == (1, 0)
        assert memory.search("harbour")[0].path == "notes/a.md"
        assert memory.index().unchanged == 3
        assert memory.status().excluded == {}
        check(memory)

    def test_restore_accepts_the_path_of_the_file(self, home, memory):
        memory.forget("notes/sub/b.md")
        memory.restore(str(home.notes / "sub" / "b.md"))
        assert "notes/sub/b.md" in paths(memory)

    def test_restore_accepts_a_name_with_pattern_characters(self, home, memory):
        home.write("[x] *?.md", "a gull")
        memory.index()
        memory.forget("notes/[x] *?.md")
        assert memory.restore("notes/[x] *?.md").added == 1

    @pytest.mark.parametrize("form", ["NFC", "NFD"])
    def test_restore_accepts_a_name_in_the_other_form_of_unicode(self, home, memory, form):
        name = normalize({"NFC": "NFD", "NFD": "NFC"}[form], "cr\u00e8me.md")
        home.write(name, "eggs")
        memory.index(home.notes)
        memory.forget(f"notes/{name}")
        assert memory.restore(f"notes/{normalize(form, name)}").added == 1

    def test_a_restored_note_without_a_file_is_indexed_when_the_file_returns(self, home, memory):
        memory.forget("notes/a.md")
        (home.notes / "a.md").unlink()
        assert "is missing now" in memory.restore("notes/a.md").notices[0]
        home.write("a.md", "the harbour")
        assert memory.index().added == 1

    @pytest.mark.parametrize("path", ["notes/a.md", "notes/nope.md", "elsewhere/a.md", "saved/2026-01-01/abc", "", "/"])
    def test_restore_rejects_other_paths(self, memory, path):
        with pytest.raises(NotFoundError):
            memory.restore(path)

    @pytest.mark.needs("klaw-conversations")
    @pytest.mark.parametrize("path", ["saved/2026-01-01/abc", "documents/a", "conversations/web_7/2026-01-01.jsonl"])
    def test_restore_says_that_the_text_of_an_extension_is_gone(self, memory, path):
        with pytest.raises(NotFoundError, match="its text was deleted when it was forgotten"):
            memory.restore(path)

    def test_restore_of_an_excluded_note_names_the_pattern(self, memory):
        memory.workspaces.exclude("notes", "sub/*")
        with pytest.raises(NotFoundError, match="sub/"):
            memory.restore("notes/sub/b.md")


class TestWorkspaces:
    def test_list_returns_the_workspaces(self, home, memory):
        (listed,) = memory.workspaces.list()
        assert (listed.name, listed.root, listed.documents, listed.is_there) == ("notes", home.notes, 3, True)
        assert listed.include == ("*.md", "*.markdown", "*.mdx", "*.qmd", "*.rmd", "*.txt")

    def test_rename_keeps_vectors_and_removes_old_paths(self, home, memory, check):
        home.recorder.take()
        report = memory.workspaces.rename("notes", "vault")
        assert (report.added, report.embedded) == (3, 0)
        assert home.recorder.take() == []
        assert paths(memory) == ["vault/a.md", "vault/c.txt", "vault/sub/b.md"]
        assert memory.index().unchanged == 3
        assert not memory.status().problems
        check(memory)

    def test_rename_to_a_taken_or_invalid_name_changes_nothing(self, memory, tmp_path):
        (tmp_path / "other").mkdir()
        memory.index(tmp_path / "other")
        for name in ("other", "saved", "a/b", ".x", "", "notes"):
            with pytest.raises(WorkspaceError):
                memory.workspaces.rename("notes", name)
        with pytest.raises(NotFoundError):
            memory.workspaces.rename("nope", "vault")
        assert paths(memory) == ["notes/a.md", "notes/c.txt", "notes/sub/b.md"]

    def test_an_interrupted_rename_loses_nothing_and_can_be_cleaned_up(self, memory, monkeypatch, check):
        with monkeypatch.context() as interrupted:
            interrupted.setattr("klaw_core.indexing.collection.Collection.remove", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                memory.workspaces.rename("notes", "vault")
        assert {"notes/a.md", "vault/a.md"} <= set(paths(memory))
        assert "notes to vault" in memory.status().statistics["renaming"]
        assert memory.doctor(fix=True).healthy
        assert paths(memory) == ["vault/a.md", "vault/c.txt", "vault/sub/b.md"]
        check(memory)

    def test_a_finished_rename_leaves_no_earlier_name(self, memory):
        memory.workspaces.rename("notes", "vault")
        assert "renaming" not in memory.status().statistics
        memory.workspaces.rename("vault", "notes")
        assert "earlier" not in (memory.config.data_dir / "workspaces.json").read_text("utf-8")

    def test_a_workspace_that_gets_its_name_back_or_whose_name_another_one_gets_has_no_earlier_name(self, home, memory):
        for name in ("vault", "notes"):
            with pytest.raises(KeyboardInterrupt):
                memory.workspaces.rename(memory.workspaces.list()[0].name, name, on_progress=_interrupt)
        for _ in range(2):
            memory.index()
        assert "renaming" not in memory.status().statistics
        with pytest.raises(KeyboardInterrupt):
            memory.workspaces.rename("notes", "vault", on_progress=_interrupt)
        other = home.root / "other"
        other.mkdir()
        (other / "new.md").write_text("another gull", "utf-8")
        memory.index(other, name="notes")
        memory.index()
        assert "renaming" not in memory.status().statistics
        assert [path for path in paths(memory) if path.startswith("notes/")] == ["notes/new.md"]

    def test_rename_of_an_unknown_workspace_is_an_error(self, home, memory):
        shutil.rmtree(home.notes)
        with pytest.raises(WorkspaceError, match="does not exist"):
            memory.workspaces.rename("notes", "vault")
        assert [item.name for item in memory.workspaces.list()] == ["notes"]
        assert not memory.workspaces.list()[0].is_there

    @pytest.mark.parametrize("place", ["while it is indexed", "before the documents of the old name go"])
    def test_an_interrupted_rename_is_completed_by_the_next_run(self, home, memory, check, monkeypatch, place):
        if place == "while it is indexed":
            with pytest.raises(KeyboardInterrupt):
                memory.workspaces.rename("notes", "vault", on_progress=_interrupt)
        else:
            with monkeypatch.context() as interrupted:
                interrupted.setattr(Collection, "remove", _interrupt)
                with pytest.raises(KeyboardInterrupt):
                    memory.workspaces.rename("notes", "vault")
        assert any(path.startswith("notes/") for path in paths(memory))
        assert [item.what for item in memory.doctor().findings if item.check == "workspaces"]
        with pytest.raises(KeyboardInterrupt):
            memory.index(on_progress=_interrupt)
        assert memory.status().statistics["renaming"].startswith("notes to vault has not finished")
        (home.notes / "c.txt").unlink()
        for _ in range(2):
            memory.index()
            assert paths(memory) == ["vault/a.md", "vault/sub/b.md"]
        assert "earlier" not in (memory.config.data_dir / "workspaces.json").read_text("utf-8")
        assert [item.name for item in memory.workspaces.list()] == ["vault"]
        check(memory)

    def test_rename_of_a_workspace_that_is_a_file_now_loses_nothing(self, home, memory):
        shutil.rmtree(home.notes)
        home.notes.write_text("a file")
        with pytest.raises(WorkspaceError, match="is not a directory"):
            memory.workspaces.rename("notes", "vault")
        assert {"notes/a.md", "notes/sub/b.md"} <= set(paths(memory))

    def test_remove_equals_forgetting_the_workspace(self, home, memory):
        home.write("bad.md", "\0")
        memory.index()
        assert len(memory.workspaces.remove("notes").paths) == 3
        assert memory.workspaces.list() == ()
        assert paths(memory) == []
        assert "bad" not in (memory.config.data_dir / "skipped.json").read_text("utf-8")
        with pytest.raises(NotFoundError):
            memory.workspaces.remove("notes")

    def test_exclude_removes_notes_at_once_and_can_be_reversed(self, memory, check):
        assert memory.workspaces.exclude("notes", "sub", "*.txt").removed == 2
        assert paths(memory) == ["notes/a.md"]
        assert memory.workspaces.list()[0].exclude == ("sub", "*.txt")
        assert memory.workspaces.exclude("notes", remove=["sub"]).added == 1
        with pytest.raises(NotFoundError, match="does not exclude"):
            memory.workspaces.exclude("notes", remove=["sub"])
        check(memory)


class TestPatternsOfARun:
    def test_patterns_of_a_run_are_stored(self, home):
        for name in ("a.md", "b.py", "c.org", "build/d.py"):
            home.write(name, "a gull")
        with home.open() as memory:
            memory.index(home.notes, include=["*.py", "*.md"], exclude=["build/*"])
            assert paths(memory) == ["notes/a.md", "notes/b.py"]
            memory.index(home.notes)
            assert paths(memory) == ["notes/a.md", "notes/b.py"]
            memory.index(home.notes, include=["*.org"], exclude=["a*"])
            assert paths(memory) == ["notes/c.org"]
            assert memory.workspaces.list()[0].exclude == ("build/*", "a*")

    def test_a_single_string_is_one_pattern(self, home):
        for name in ("a.py", "drafts/b.py"):
            home.write(name, "a gull")
        with home.open() as memory:
            memory.index(home.notes, include="*.py", exclude="drafts/")
            assert paths(memory) == ["notes/a.py"]
            assert memory.workspaces.list()[0].exclude == ("drafts",)

    def test_a_list_of_an_older_version_is_read(self, home):
        home.write("a.md", "a gull")
        file = home.root / "data" / "workspaces.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"notes": {"path": str(home.notes), "exclude": []}}), "utf-8")
        with home.open() as memory:
            assert memory.index().added == 1


class TestSkippedFiles:
    @pytest.fixture
    def odd(self, home, memory):
        home.write("latin.md", "")
        (home.notes / "latin.md").write_bytes(b"\xc3\xa9a\xe9")
        home.write("binary.txt", "\0\1")
        home.write("empty.md", "\n")
        memory.index()
        return memory

    def test_status_names_files_that_the_last_run_skipped(self, home, odd):
        reasons = {item.path: item.reason for item in odd.status().skipped["notes"]}
        assert reasons == {
            "notes/latin.md": "is not valid UTF-8 (byte 3)",
            "notes/binary.txt": "is binary",
            "notes/empty.md": "is empty",
        }
        home.write("latin.md", "café")
        odd.index(paths=[home.notes / "latin.md"])
        assert "notes/latin.md" not in {item.path for item in odd.status().skipped["notes"]}
        home.write("binary.txt", "text")
        home.write("empty.md", "text")
        odd.index()
        assert odd.status().skipped == {}

    def test_forgotten_files_leave_the_list(self, odd):
        odd.forget("notes/latin.md")
        assert "latin" not in (odd.config.data_dir / "skipped.json").read_text("utf-8")
        assert "notes/binary.txt" in {item.path for item in odd.status().skipped["notes"]}

    def test_doctor_names_skipped_files_with_a_fix(self, odd):
        found = {item.what: item for item in odd.doctor().findings if item.check == "skipped"}
        (latin,) = [item for what, item in found.items() if "UTF-8" in what]
        assert latin.severity == "warning"
        assert "iconv" in latin.hint
        assert latin.items == ("notes/latin.md: is not valid UTF-8 (byte 3)",)
        (empty,) = [item for what, item in found.items() if "empty" in what]
        assert empty.severity == "note"

    def test_an_index_run_over_a_skipped_file_reports_the_reason(self, home, memory):
        home.write("code.py", "print()")
        home.write(".hidden.md", "text")
        memory.forget("notes/a.md")
        named = [home.notes / "code.py", home.notes / ".hidden.md", home.notes / "a.md", home.notes / "nope.md"]
        reasons = {item.path: item.reason for item in memory.index(paths=named).skipped}
        assert set(reasons) == {"notes/code.py", "notes/.hidden.md", "notes/a.md"}
        assert "*.md" in reasons["notes/code.py"]
        assert "klaw restore notes/a.md" in reasons["notes/a.md"]
        assert memory.status().skipped == {}, "what a person left out is no trouble"

    def test_get_of_a_skipped_file_reports_the_reason(self, memory):
        memory.workspaces.exclude("notes", "sub")
        with pytest.raises(NotFoundError, match="excluded by the pattern 'sub'"):
            memory.get("notes/sub/b.md")
        with pytest.raises(NotFoundError, match="no indexed document has the path or id"):
            memory.get("notes/nope.md")

    def test_an_inaccessible_list_is_ignored(self, tmp_path):
        skipped = SkippedFiles(tmp_path)
        for text in ("", "[]", '{"notes": 1}', '{"notes": [{}]}', "\udcff"):
            skipped.file.write_text(text, "utf-8", errors="surrogateescape")
            assert skipped.all() == {}
        SkippedFiles(tmp_path / "skipped.json" / "x").replace("notes", [SkippedEntry("notes/a", "b", keep=True)])


class TestUnfinishedRuns:
    NOTICE = "notes: the last index run has not finished; if none is running: `klaw index`"

    @pytest.fixture
    def many(self, home):
        """More notes than a run writes at once, none of which is indexed."""
        for number in range(BATCH + 8):
            home.write(f"{number:04}.md", f"Gull number {number}.")
        with home.open() as opened:
            yield opened

    @staticmethod
    def _end_after_the_first_batch(progress):
        if progress.chunks:
            raise KeyboardInterrupt

    @pytest.mark.parametrize("end", [_interrupt, _end_after_the_first_batch])
    def test_an_ended_run_is_said_until_a_run_finishes(self, many, home, end):
        with pytest.raises(KeyboardInterrupt):
            many.index(home.notes, on_progress=end)
        assert many.status().origins.get("notes", (0, 0))[0] < BATCH + 8
        for question in ("gull", f"number {BATCH + 7}", "walrus"):
            assert self.NOTICE in many.search(question).notices
        assert self.NOTICE in many.status().problems
        assert "notes" not in many.status().skipped
        many.index(paths=[home.notes / "0000.md"])
        assert self.NOTICE in many.status().problems, "a run over one file is not a run over all"
        many.index()
        assert self.NOTICE not in (*many.status().problems, *many.search("gull").notices)

    def test_a_forgotten_workspace_has_no_unfinished_run(self, many, home):
        with pytest.raises(KeyboardInterrupt):
            many.index(home.notes, on_progress=self._end_after_the_first_batch)
        many.forget("notes/")
        assert self.NOTICE not in many.status().problems

    def test_a_directory_that_is_gone_has_no_unfinished_run(self, home, memory):
        home.notes.rename(home.notes.with_name("elsewhere"))
        assert [item.path for item in memory.index().skipped] == ["notes"]
        assert self.NOTICE not in memory.status().problems


class TestSyncOnSearch:
    @pytest.fixture
    def eager(self, home):
        with home.open(sync={"on_search": True}) as opened:
            opened.index(home.notes)
            yield opened

    def test_off_by_default(self, home, memory):
        home.write("new.md", "a gull on the mast")
        assert not [result for result in memory.search("gull", mode="fts") if result.path == "notes/new.md"]

    def test_a_search_sees_new_changed_and_deleted_notes(self, home, eager, check):
        home.write("new.md", "a gull on the mast")
        assert eager.search("gull")[0].path == "notes/new.md"
        home.write("new.md", "a heron on the mast")
        assert eager.search("heron", mode="vector")[0].path == "notes/new.md"
        (home.notes / "new.md").unlink()
        assert eager.search("heron", mode="fts").results == ()
        check(eager)

    def test_it_embeds_a_limited_number_of_chunks_with_a_notice(self, home, eager, monkeypatch):
        monkeypatch.setattr("klaw_core.sources.index_runs._MAX_BEFORE_SEARCH", 2)
        for number in range(5):
            home.write(f"{number}.md", f"gull number{number}")
        found = eager.search("number4", mode="fts")
        assert found[0].path == "notes/4.md"
        assert "chunks found by words alone: 3" in found.notices[0]
        assert eager.index().lacking == 0

    def test_it_does_not_wait_for_another_run(self, home, eager):
        home.write("new.md", "a gull on the mast")
        with eager._assembly.store.lock("embedding"):
            assert eager.search("gull", mode="fts")[0].path == "notes/new.md"

    def test_a_missing_source_is_a_notice(self, home, eager):
        home.write("new.md", "a gull on the mast")
        eager.index()
        home.notes.rename(home.root / "elsewhere")
        found = eager.search("gull")
        assert found[0].path == "notes/new.md"
        assert "notes may be out of date" in found.notices[0]

    @pytest.mark.parametrize("table", ["yes", {"on_search": 1}, {"on_serch": True}, {"watch": True}])
    def test_an_invalid_table_is_named(self, home, table):
        with pytest.raises(ConfigError, match=r"memory\.sync"):
            home.config(sync=table)
