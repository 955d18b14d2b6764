"""What users hold: save, get and forget, through the public methods alone."""

import os
import shutil
import stat
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import (
    Chunk,
    Document,
    Filters,
    NewDocument,
    NotFoundError,
    PluginError,
    RecordError,
    RetrievalError,
    SpaceRecord,
    StoreError,
    VectorSpace,
)
from klaw_memories.saved import Saved
from klaw_testing.laws import scaled


def words(memory, query, **options):
    return [result.path for result in memory.search(query, mode="fts", **options)]


def test_a_memory_indexes_searches_saves_and_forgets(home):
    home.write("a.md", "# Auth\n\nWe decided to use short tokens.\n\n# Deploy\n\nBlue and green.\n")
    shutil.rmtree(home.root / "data", ignore_errors=True)
    with home.open() as memory:
        memory.index(home.notes)
        (best, *_) = memory.search("what did we decide about auth")
        assert (best.path, best.heading[0]) == ("notes/a.md", "Auth")
        passage = memory.get(best.path, best.start_line, best.end_line - best.start_line + 1)
        assert passage.content.strip() == best.content.strip()
        status = memory.status()
        assert status.origins["notes"][0] == 1
        assert status.workspaces == {"notes": str(home.notes)}
        assert status.problems == ()
    assert stat.S_IMODE((home.root / "data").stat().st_mode) == 0o700


def test_close_twice_is_allowed(home):
    memory = home.open()
    assert [memory.close() for _ in range(2)] == [None, None]


class TestSaveAndGet:
    def test_a_saved_text_is_found_and_read_at_once(self, memory, check):
        saved = memory.save("The harbour code is 4711.\n\nDo not tell.", source="manual", chat_id="telegram_1")
        (result,) = memory.search("harbour")
        assert (result.path, result.source, result.chat_id) == (saved.path, "manual", "telegram_1")
        read = memory.get(saved.path)
        assert (read.content, read.start_line, read.end_line, read.file) == (saved.content, 1, 3, None)
        assert memory.get(result.chunk_id).content == saved.content
        assert memory.get(result.chunk_id[:8]).path == saved.path
        assert memory.get(saved.path, 3).content == "Do not tell."
        check(memory)

    @pytest.mark.parametrize("error", [RetrievalError, PluginError, StoreError])
    def test_a_text_that_the_index_rejects_is_kept(self, memory, monkeypatch, error):
        def refuse(*_):
            raise error("not now")

        monkeypatch.setattr("klaw_core.indexing.flow.Indexer.put", refuse)
        saved = memory.save("The harbour code is 4711.")
        assert "not now" in saved.notice
        monkeypatch.undo()
        memory.index()
        assert memory.get(saved.path).content == "The harbour code is 4711."

    def test_status_names_the_collection_that_is_in_another_space(self, home, memory):
        home.write("a.md", "note")
        memory.index(home.notes)
        with memory._assembly.store.write() as transaction:
            probe = transaction.space("memory").probe
            transaction.set_space("docs", SpaceRecord(VectorSpace("gone", "1", len(probe)), probe))
        (problem,) = memory.status().problems
        assert "vector search is paused: the collection 'docs' was indexed with gone@1" in problem

    def test_saved_memories_survive_index_force_and_reindex(self, home, memory, check):
        saved = memory.save("The harbour code is 4711.")
        home.write("a.md", "note")
        memory.index(home.notes)
        memory.index(force=True)
        memory.reindex()
        assert memory.get(saved.path).content == "The harbour code is 4711."
        check(memory)

    def test_saved_memories_survive_the_loss_of_the_database(self, home, check):
        """It is derived: what was saved stands in a journal beside it, and what was forgotten does not come back."""
        with home.open() as memory:
            kept = memory.save("the harbour code", chat_id="telegram_1", source="conversation")
            gone = memory.save("the lighthouse")
            memory.forget(gone.path)
        home.store = type(home.store)()
        for file in (home.root / "data").glob("klaw.db*"):
            file.unlink()
        with home.open() as memory:
            memory.index()
            check(memory)
            (found,) = memory.search("harbour lighthouse")
            assert (found.path, found.chat_id, found.source) == (kept.path, "telegram_1", "conversation")
        assert "lighthouse" not in "".join(file.read_text() for file in (home.root / "data").glob("*.jsonl"))

    def test_saving_an_equal_text_changes_nothing(self, home, memory, check):
        first = memory.save("the same", created_at=datetime(2026, 1, 2, tzinfo=UTC))
        home.recorder.calls = 0
        assert memory.save("the same", created_at=datetime(2026, 1, 2, tzinfo=UTC)) == first
        assert home.recorder.calls == 0
        assert words(memory, "same") == [first.path]
        check(memory)

    def test_one_text_saved_for_two_chats_is_found_in_both(self, memory, check):
        for chat in ("telegram_1", "telegram_2"):
            memory.save("likes tea", chat_id=chat)
        for chat in ("telegram_1", "telegram_2"):
            assert [found.chat_id for found in memory.search("tea", filters=Filters(chat_id=chat))] == [chat]
        check(memory)

    def test_a_date_is_kept_in_utc(self, memory):
        moment = datetime.fromisoformat("2024-03-01T01:30:00+03:00")
        saved = memory.save("leap", created_at=moment)
        assert saved.path.startswith("saved/2024-02-29/")
        assert memory.search("leap")[0].created_at == moment

    @pytest.mark.parametrize("year", [1, 999, 9998])
    def test_extreme_dates_are_kept(self, memory, year):
        moment = datetime(year, 6, 1, tzinfo=UTC)
        memory.save("far away", created_at=moment)
        assert memory.search("far")[0].created_at == moment

    @pytest.mark.parametrize(
        ("text", "where"),
        [
            ("", {}),
            (" \n\t", {}),
            ("x" * 1_000_001, {}),
            ("lone \ud800 surrogate", {}),
            ("a", {"source": " "}),
            ("a", {"source": "\ud800"}),
            ("a", {"chat_id": "\ud800"}),
            ("a", {"created_at": datetime(2026, 1, 1)}),  # noqa: DTZ001
            ("a", {"created_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=12)))}),
        ],
    )
    def test_an_invalid_text_is_rejected_and_leaves_nothing(self, memory, text, where):
        with pytest.raises(RecordError):
            memory.save(text, **where)
        assert memory.status().origins == {}

    def test_an_embedder_that_fails_does_not_lose_the_memory(self, home, memory, check):
        home.write("a.md", "note")
        memory.index(home.notes)
        home.recorder.calls, home.recorder.fail_at = 0, 1
        saved = memory.save("the harbour code")
        assert words(memory, "harbour") == [saved.path]
        home.recorder.fail_at = None
        memory.index()
        check(memory)
        assert memory.search("harbour", mode="vector")[0].path == saved.path

    def test_the_first_save_survives_a_failing_embedder(self, home, memory, check):
        home.recorder.fail_at = 1
        saved = memory.save("the harbour code")
        assert words(memory, "harbour") == [saved.path]
        home.recorder.fail_at = None
        memory.save("something else")
        memory.reindex()
        check(memory)

    @given(text=st.text(st.characters(exclude_categories=("Cs",)), max_size=300).filter(str.strip))
    @settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_text_is_read_back_without_outer_white_space(self, memory, text):
        saved = memory.save(text)
        read = memory.get(saved.path)
        assert "".join(read.content.split()) == "".join(text.split())
        assert read.content.strip() in text or "\n" in text or "\r" in text or "\t" in text


class TestGet:
    @pytest.fixture(autouse=True)
    def note(self, home, memory):
        self.file = home.write("sub/a.md", "one\r\ntwo\nthree\rfour")
        memory.index(home.notes)

    @pytest.mark.parametrize(
        ("first", "count", "content", "last"),
        [(1, None, "one\r\ntwo\nthree\rfour", 4), (2, 1, "two\n", 2), (3, 2, "three\rfour", 4), (4, 99, "four", 4)],
    )
    def test_lines_are_counted_as_in_editors(self, memory, first, count, content, last):
        passage = memory.get("notes/sub/a.md", first, count)
        assert (passage.content, passage.start_line, passage.end_line) == (content, first, last)
        assert passage.file == self.file

    @pytest.mark.parametrize(("first", "count"), [(0, None), (-1, None), (5, None), (1, 0), (1, -3)])
    def test_missing_lines_are_named(self, memory, first, count):
        with pytest.raises(NotFoundError, match="line"):
            memory.get("notes/sub/a.md", first, count)

    def test_get_reads_the_current_file(self, home, memory):
        home.write("sub/a.md", "new")
        assert memory.get("notes/sub/a.md").content == "new"

    def test_get_reads_a_deleted_file_from_the_index(self, memory):
        (result, *_) = memory.search("two")
        self.file.unlink()
        read = memory.get(result.chunk_id)
        assert read.content.split() == ["one", "two", "three", "four"]
        assert memory.get("notes/sub/a.md", 3, 1).content.strip() == "three", "lines are where they were"
        assert "when it was last indexed: its file cannot be found" in read.notice

    def test_get_says_why_it_reads_a_file_from_the_index(self, home, memory):
        assert memory.get("notes/sub/a.md").notice == ""
        home.write(".klawignore", "a.md\n")
        assert "when it was last indexed: its file is ignored by" in memory.get("notes/sub/a.md").notice

    def test_get_says_that_a_document_has_no_source_any_more(self, home):
        sources = [{"type": "workspace", "name": "docs", "path": str(home.notes)}]
        home.write("a.md", "alpha")
        with home.open(sources=sources) as memory:
            memory.index()
        with home.open() as memory:
            assert memory.get("docs/a.md").content == "alpha"
            assert "it no longer has a source here" in memory.get("docs/a.md").notice

    def test_a_text_without_a_file_is_never_outdated(self, memory):
        saved = memory.save("the boat")
        memory.add([NewDocument("ticket", "the crane")])
        assert {memory.get(path).notice for path in (saved.path, "documents/ticket")} == {""}

    def test_a_file_is_found_by_its_real_path(self, home, memory, monkeypatch):
        assert memory.get(str(self.file)).path == "notes/sub/a.md"
        monkeypatch.chdir(self.file.parent)
        assert memory.get("a.md").path == "notes/sub/a.md"
        (home.root / "link").symlink_to(home.notes)
        assert memory.get(str(home.root / "link" / "sub" / "a.md")).path == "notes/sub/a.md"

    @pytest.mark.parametrize(
        "target",
        [
            "notes/../../../../../../../../../etc/passwd",
            "notes/sub/../../outside.md",
            "notes/out.md",
            "notes/outdir/outside.md",
            "notes/nothing.md",
            "notes",
            "notes/",
            "notes/sub",
            "",
            "/",
            ".",
            "..",
            "/etc/passwd",
            "~/.ssh/id_rsa",
            "~nosuchuser/x.md",
            "notes/\0.md",
            "notes/" + "x" * 5000,
            "\udcff\ud800",
            "deadbeef",
            "%",
        ],
    )
    def test_get_reads_nothing_outside_of_the_sources(self, home, memory, target):
        (home.root / "outside.md").write_text("secret")
        (home.notes / "out.md").symlink_to(home.root / "outside.md")
        (home.notes / "outdir").symlink_to(home.root)
        with pytest.raises(NotFoundError):
            memory.get(target)
        with pytest.raises(NotFoundError):
            memory.get(str(home.notes / target.removeprefix("notes/")) if "out" in target else "nothing")

    @pytest.mark.promise("T25")
    @pytest.mark.parametrize("name", [".env", ".git/config", "node_modules/x.md", "key.pem", "sub/.hidden.md"])
    def test_get_does_not_read_files_that_are_not_notes(self, home, memory, name):
        home.write(name, "secret = 1")
        with pytest.raises(NotFoundError):
            memory.get(f"notes/{name}")
        with pytest.raises(NotFoundError):
            memory.get(str(home.notes / name))

    def test_a_fifo_is_rejected_without_waiting(self, home, memory):
        os.mkfifo(home.notes / "pipe.md")
        with pytest.raises(NotFoundError):
            memory.get("notes/pipe.md")

    def test_a_file_that_became_binary_is_reported(self, memory):
        self.file.write_bytes(b"\0\0")
        with pytest.raises(NotFoundError, match="is binary"):
            memory.get("notes/sub/a.md")

    def test_an_ambiguous_beginning_of_an_id_is_rejected(self, memory):
        """Ids are hashes, so two that begin alike are made by hand."""
        alike = [Chunk(f"abcdef{number}" + "0" * 25, "text", 0, 4, 1, 1) for number in range(2)]
        with memory._assembly.store.write() as transaction:
            for number, chunk in enumerate(alike):
                document = Document(f"saved/{number}", "text", "manual", "saved", datetime(2026, 1, 1, tzinfo=UTC))
                transaction.replace("memory", document, [chunk])
        with pytest.raises(NotFoundError, match="2 documents"):
            memory.get("abcdef")
        with pytest.raises(NotFoundError, match="2 documents"):
            memory.forget("abcdef")
        assert memory.get("abcdef1").path == "saved/1"
        with pytest.raises(NotFoundError, match="no indexed document has"):
            memory.get("abcde")


class TestForget:
    def cached(self, memory, texts):
        from klaw_core.values.text import text_hash

        with memory._assembly.store.read() as snapshot:
            return len(snapshot.cached_vectors(memory._assembly.embedder.space, [text_hash(text) for text in texts]))

    def test_forgetting_removes_a_saved_memory_with_rows_and_cached_vector(self, memory, check):
        saved = memory.save("the harbour code")
        kept = memory.save("something else")
        assert self.cached(memory, ["the harbour code"]) == 1
        forgotten = memory.forget(saved.path)
        assert (forgotten.paths, forgotten.chunks) == ((saved.path,), 1)
        assert words(memory, "harbour") == []
        assert self.cached(memory, ["the harbour code", "something else"]) == 1
        with pytest.raises(NotFoundError):
            memory.get(saved.path)
        with pytest.raises(NotFoundError):
            memory.forget(saved.path)
        assert memory.get(kept.path).content == "something else"
        check(memory)

    def test_a_memory_that_is_not_indexed_yet_can_be_forgotten(self, home, memory):
        home.write("a.md", "note")
        memory.index(home.notes)
        saved = Saved.make("hunter2", "manual", None, None)
        memory.extension("saved").journal.append([saved.record()])
        assert memory.get(saved.id).content == "hunter2"
        assert memory.forget(saved.id).paths == (saved.id,)
        assert memory.extension("saved").journal.replay().records == {}
        with pytest.raises(NotFoundError):
            memory.forget(saved.id)

    def test_forgetting_another_document_removes_no_journal_line(self, home, memory):
        saved = memory.save("the harbour code")
        journal = home.root / "data" / "saved.jsonl"
        day = saved.path.rpartition("/")[0]
        journal.write_bytes(journal.read_bytes() + f'{{"id":"{day}/0123456789ab","text":"broken}}\n'.encode())
        before = journal.read_bytes()
        for target in (day, f"{day}/", day[:-3], f"{day}/0123456789ab"):
            with pytest.raises(NotFoundError):
                memory.forget(target)
        assert journal.read_bytes() == before

    def test_forgetting_a_whole_workspace_needs_the_slash(self, home, memory):
        home.write("a.md", "note")
        memory.index(home.notes)
        with pytest.raises(NotFoundError, match="notes is a whole workspace") as caught:
            memory.forget("notes")
        assert "remove it with `klaw forget notes/`" in caught.value.hint
        assert memory.search("note").results

    def test_a_chunk_id_forgets_its_document(self, memory, check):
        saved = memory.save("the harbour code")
        (result,) = memory.search("harbour")
        assert memory.forget(result.chunk_id[:10]).paths == (saved.path,)
        check(memory)

    def test_a_saved_memory_that_was_forgotten_stays_so_after_reindex(self, memory, check):
        saved = memory.save("the harbour code")
        memory.save("something else")
        memory.forget(saved.path)
        memory.reindex()
        assert words(memory, "harbour") == []
        check(memory)

    @pytest.mark.parametrize("name", ["a.md", "sub/a.md", "a[1].md", "a?.md", "a*.md", "[!a].md", "日本.md"])
    def test_a_forgotten_note_is_excluded_and_no_other_note(self, home, memory, check, name):
        home.write(name, "the harbour")
        home.write("a1.md", "the harbour too")
        home.write("ab.md", "the harbour too")
        home.write("b.md", "the harbour too")
        memory.index(home.notes)
        assert memory.forget(f"notes/{name}").paths == (f"notes/{name}",)
        for _ in range(2):
            assert sorted(set(words(memory, "harbour"))) == ["notes/a1.md"], "equal texts show once"
            memory.index()
        assert (home.notes / name).read_text() == "the harbour"
        assert memory.status().origins["notes"][0] == 3
        check(memory)

    def test_a_forgotten_workspace_can_be_indexed_again(self, home, memory, check):
        home.write("a.md", "the harbour")
        home.write("sub/b.md", "the lighthouse")
        kept = memory.save("the lighthouse keeper")
        memory.index(home.notes)
        forgotten = memory.forget("notes/")
        assert forgotten.paths == ("notes/a.md", "notes/sub/b.md")
        assert forgotten.chunks == 2
        assert memory.status().workspaces == {}
        assert words(memory, "lighthouse") == [kept.path]
        check(memory)
        memory.index()
        assert words(memory, "lighthouse") == [kept.path], "it is not one of those to be kept up to date any more"
        assert memory.index(home.notes).added == 2
        check(memory)

    @pytest.mark.parametrize("target", ["", "nothing", "notes/", "saved/", "saved", "/", "a" * 32, "\ud800"])
    def test_a_missing_path_is_named(self, memory, target):
        memory.save("text")
        with pytest.raises(NotFoundError):
            memory.forget(target)
