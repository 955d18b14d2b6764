"""Two at once: what one does while the other embeds leaves no old vectors and brings back nothing forgotten."""

import threading
from contextlib import suppress
from importlib import import_module
from itertools import count

import pytest

from klaw_core import EmbeddingError, NewDocument, SpaceRecord, StoreLockedError, VectorSpaceError
from klaw_core.sources import forgetting
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_journals.record_journal import FileJournal
from klaw_memories.journal_extension import JournalSource
from klaw_memories.saved import Saved
from klaw_testing.values import MOMENT


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def meanwhile(monkeypatch, memory, method, action):
    """Let ``action`` happen once, just before the memory's embedder is asked."""
    embedder = memory._assembly.embedder.serving
    original = getattr(type(embedder), method)
    pending = [action]

    def ask(self, argument, /):
        if self is embedder and pending:
            pending.pop()()
        return original(self, argument)

    monkeypatch.setattr(type(embedder), method, ask)


def counts(report):
    return report.added, report.changed, report.unchanged, report.removed


def found(memory, words):
    return [result.path for result in memory.search(words, mode="fts")]


def test_a_vector_of_the_old_model_never_enters_the_new_index(home, monkeypatch, check):
    home.write("a.md", "the harbour at night")
    with home.open() as old, home.open(embedding={"type": "counting", "model": "other"}) as new:
        old.index(home.notes)

        def reindex():
            new.reindex()

        meanwhile(monkeypatch, old, "embed_documents", reindex)
        saved = old.save("a lantern on the pier")
        assert "not embedded yet" in saved.notice
        assert old.search("lantern", mode="fts")
        new.index()
        check(new)


def test_a_vector_is_not_given_to_another_chunk_with_its_key_after_a_rebuild(home, monkeypatch, check):
    home.write("0.md", "the harbour at night")
    with home.open() as saving, home.open() as other:
        saving.index(home.notes)
        home.write("1.md", "trains to the north")
        meanwhile(monkeypatch, saving, "embed_documents", other.reindex)
        saving.save("a lantern on the pier")
        assert saving.index().lacking == 0
        check(saving)
        assert [finding for finding in saving.doctor().findings if finding.check != "disk-space"] == []


def test_an_index_run_whose_space_was_replaced_ends_with_an_error(home, monkeypatch, check):
    home.write("a.md", "the harbour at night")
    with home.open() as old, home.open(embedding={"type": "counting", "model": "other"}) as new:
        old.index(home.notes)
        home.write("b.md", "a lantern on the pier")
        meanwhile(monkeypatch, old, "embed_documents", new.reindex)
        report = old.index()
        assert "other" in report.notices[0]
        assert report.lacking == 0, "the note was there to be rebuilt"
        assert old.search("lantern", mode="fts")
        new.index()
        check(new)


def test_a_question_is_never_compared_with_vectors_of_another_model(home, monkeypatch):
    home.write("a.md", "the harbour at night")
    with home.open() as old, home.open(embedding={"type": "counting", "model": "other"}) as new:
        old.index(home.notes)
        meanwhile(monkeypatch, old, "embed_query", new.reindex)
        found = old.search("harbour")
        assert [part.component for result in found for part in result.explain] == ["fts5"]
        assert any("rebuilt during the search" in notice for notice in found.notices)


def test_a_question_is_never_compared_with_vectors_of_other_weights(home, monkeypatch):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)

        def change_weights():
            with memory._assembly.store.write() as transaction:
                record = transaction.space("memory")
                transaction.set_space("memory", SpaceRecord(record.space, record.probe[::-1].copy()))

        meanwhile(monkeypatch, memory, "embed_query", change_weights)
        assert any("rebuilt during the search" in notice for notice in memory.search("harbour").notices)


def test_a_vector_search_during_a_move_is_an_error(home, monkeypatch):
    home.write("a.md", "the harbour at night")
    with home.open() as old, home.open(embedding={"type": "counting", "model": "other"}) as new:
        old.index(home.notes)
        meanwhile(monkeypatch, old, "embed_query", new.reindex)
        with pytest.raises(VectorSpaceError, match="rebuilt during the search"):
            old.search("harbour", mode="vector")


def test_cached_spaces_are_not_used_after_the_index_moved(home):
    home.write("a.md", "the harbour at night")
    with home.open() as old, home.open(embedding={"type": "counting", "model": "other"}) as new:
        old.index(home.notes)
        assert len(old.search("harbour")[0].explain) == 2
        new.reindex()
        for question in ("harbour", "harbour", "night"):
            found = old.search(question)
            assert [part.component for result in found for part in result.explain] == ["fts5"]
            assert any("was indexed with" in notice for notice in found.notices)
        old.reindex()
        assert len(old.search("harbour")[0].explain) == 2


def test_changed_weights_since_the_last_search_are_used(home):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        memory.search("harbour")
        with memory._assembly.store.write() as transaction:
            record = transaction.space("memory")
            transaction.set_space("memory", SpaceRecord(record.space, record.probe[::-1].copy()))
        found = memory.search("harbour")
        assert len(found[0].explain) == 2
        assert found.notices == ()


def test_a_failing_embedder_is_called_once_per_search(home, monkeypatch):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        memory.search("harbour")
        asked = []
        for _ in range(3):

            def fail():
                asked.append(1)
                raise EmbeddingError("not now")

            meanwhile(monkeypatch, memory, "embed_query", fail)
            assert any("not now" in notice for notice in memory.search("night").notices)
        assert len(asked) == 3


@pytest.mark.parametrize("moment", ["count_tokens", "embed_documents"])
@pytest.mark.parametrize("target", ["notes/", "notes/b.md"])
def test_a_note_forgotten_during_an_index_run_stays_forgotten(home, monkeypatch, check, target, moment):
    home.write("a.md", "the harbour at night")
    with home.open() as one, home.open() as two:
        one.index(home.notes)
        home.write("b.md", "a lantern on the pier")
        two.index()
        home.write("b.md", "a lantern on the quay")
        meanwhile(monkeypatch, one, moment, lambda: two.forget(target))
        one.index(home.notes)
        assert not one.search("lantern", mode="fts")
        check(one)


@pytest.mark.parametrize("target", ["notes/", "notes/b.md", "saved"])
def test_a_text_indexed_between_its_removal_and_its_record_is_removed(home, monkeypatch, check, target):
    home.write("a.md", "the harbour at night")
    home.write("b.md", "a lantern on the pier")
    with home.open() as one, home.open() as two:
        one.index(home.notes)
        saved = one.save("a lantern of blue glass").path
        record = {"notes/": "forget", "notes/b.md": "exclude", "saved": "forget"}[target]
        kind = FileJournal if target == "saved" else type(one.extension("workspaces").registry)
        original = getattr(kind, record)

        def late(self, *arguments):
            two.index()  # a whole run: nothing says yet that anything was forgotten
            return original(self, *arguments)

        monkeypatch.setattr(kind, record, late)
        one.forget(saved if target == "saved" else target)
        left = {"notes/": {saved}, "notes/b.md": {saved}, "saved": {"notes/b.md"}}[target]
        assert set(found(one, "lantern")) == left
        check(one)


def test_a_memory_forgotten_during_an_index_run_stays_forgotten(home, monkeypatch):
    with home.open() as one, home.open() as two:
        one.save("something else")
        unseen = Saved("saved/2026-02-24/0123456789ab", "the lantern is blue", "manual", MOMENT)
        two.extension("saved").journal.append([unseen.record()])  # as after a crash between journal and index
        meanwhile(monkeypatch, one, "count_tokens", lambda: two.extension("saved").journal.forget([unseen.id]))
        assert one.index().added == 1
        assert not one.search("lantern", mode="fts")
        assert one.search("something", mode="fts")


def _save(memory):
    return memory.save("a lantern on the pier").path


def _add(memory):
    memory.add([NewDocument("pier", "a lantern on the pier")])
    return "documents/pier"


def _say(memory):
    memory.conversations.append(Message("user", "a lantern on the pier", MOMENT, meta=Chat("web", "7").meta))
    memory.index(origin="conversations")
    return f"conversations/web_7/{MOMENT.date().isoformat()}.jsonl"


@pytest.mark.parametrize("write", [_save, _add, _say])
def test_a_text_saved_while_a_run_looks_for_forgotten_texts_stays(home, monkeypatch, check, write):
    """The run has read which memories there are, and only then reads which are indexed."""
    with home.open() as one, home.open() as two:
        one.save("something else")
        one.add([NewDocument("else", "something else")])
        one.conversations.append(Message("user", "something else", MOMENT, meta=Chat("web", "8").meta))
        one.index()
        pending, written = [write], []
        original = forgetting.indexed_paths

        def meet(collection, origin):
            if pending and origin == {_save: "saved", _add: "documents", _say: "conversations"}[write]:
                written.append(pending.pop()(two))
            yield from original(collection, origin)

        monkeypatch.setattr(forgetting, "indexed_paths", meet)
        assert one.index().removed == 0
        assert found(one, "lantern") == written
        check(one)


def test_a_text_saved_again_while_a_run_removes_it_stays(home, monkeypatch, check):
    text = "the lantern is blue"
    with home.open() as one, home.open() as two:
        one.save("something else")
        unseen = Saved.make(text, "manual", None, MOMENT)
        two.extension("saved").journal.append([unseen.record()])  # as after a crash between journal and index
        meanwhile(monkeypatch, one, "count_tokens", lambda: two.extension("saved").journal.forget([unseen.id]))
        original = JournalSource.forgotten
        saved = []

        def forgotten(self, paths, /):
            gone = original(self, paths)
            if gone and not saved:
                saved.append(two.save(text, created_at=MOMENT).path)
            return gone

        monkeypatch.setattr(JournalSource, "forgotten", forgotten)
        one.index()
        assert found(one, "lantern") == saved == [unseen.id]
        check(one)


@pytest.fixture(params=[False, True], ids=["sound", "broken"])
def pier(home, request):
    """Two memories with a saved text and a document; with "broken", a line of each journal cannot be read."""
    with home.open() as one, home.open() as two:
        saved = one.save("the lantern is blue", created_at=MOMENT).path
        one.add([NewDocument("pier", "a lantern on the pier")])
        if request.param:
            for name in ("saved", "documents"):
                with (home.root / "data" / f"{name}.jsonl").open("a") as file:
                    file.write('{"id": "?"}\n')
        yield one, two, saved


def _save_again(memory):
    memory.save("the lantern is blue", created_at=MOMENT)


def _add_again(memory):
    memory.add([NewDocument("pier", "a lantern on the quay")])


@pytest.mark.parametrize("kind", ["saved", "document"])
def test_a_text_saved_again_while_it_is_forgotten_stays(pier, monkeypatch, check, kind):
    one, two, saved = pier
    again = _save_again if kind == "saved" else _add_again
    after(monkeypatch, "forget", lambda: again(two), FileJournal)
    if kind == "saved":
        one.forget(saved)
    else:
        assert one.delete(["pier"]) == 1
    assert set(found(one, "lantern")) == {saved, "documents/pier"}
    assert found(one, "quay") == ([] if kind == "saved" else ["documents/pier"])
    check(one)


@pytest.mark.parametrize("kind", ["saved", "document"])
def test_a_text_forgotten_while_it_is_saved_again_leaves_the_index(pier, monkeypatch, check, kind):
    one, two, saved = pier
    if kind == "saved":
        meanwhile(monkeypatch, one, "count_tokens", lambda: two.forget(saved))
        _save_again(one)
    else:
        after(monkeypatch, "append", lambda: two.delete(["pier"]), FileJournal)
        _add_again(one)
    assert found(one, "lantern") == (["documents/pier"] if kind == "saved" else [saved])
    check(one)


@pytest.mark.parametrize("kind", ["saved", "document"])
def test_a_text_indexed_while_it_is_forgotten_is_removed_despite_an_invalid_line(pier, monkeypatch, check, kind):
    one, two, saved = pier
    original = FileJournal.forget

    def late(self, ids):
        two.index()  # nothing says yet that anything was forgotten
        return original(self, ids)

    monkeypatch.setattr(FileJournal, "forget", late)
    if kind == "saved":
        one.forget(saved)
    else:
        one.delete(["pier"])
    assert found(one, "lantern") == (["documents/pier"] if kind == "saved" else [saved])
    check(one)


def workspace_class():
    return import_module("klaw_notes.workspace").Workspace


def after(monkeypatch, method, action, kind=None):
    """Let ``action`` happen once, after the next call of a method of workspaces or of another class."""
    kind = kind or workspace_class()
    original = getattr(kind, method)
    pending = [action]

    def call(self, *arguments):
        answer = original(self, *arguments)
        if pending:
            pending.pop()()
        return answer

    monkeypatch.setattr(kind, method, call)


class TestOfTwoRunsAtOnceTheLaterReadingCounts:
    """``slow`` has looked at the notes when ``quick`` does what there is to do, and ends."""

    @pytest.fixture
    def runs(self, home):
        home.write("a.md", "the harbour at night")
        home.write("b.md", "the tide at noon")
        with home.open() as slow, home.open() as quick:
            slow.index(home.notes)
            yield slow, quick

    @pytest.mark.promise("D30")
    def test_an_older_text_does_not_replace_a_newer_one(self, home, runs, monkeypatch, check):
        slow, quick = runs
        home.write("a.md", "a lantern on the pier", hours=1)

        def overtake():
            home.write("a.md", "a heron on the quay", hours=2)
            assert counts(quick.index()) == (0, 1, 1, 0)

        after(monkeypatch, "read_changed", overtake)
        report = slow.index()
        assert found(slow, "heron") == ["notes/a.md"]
        assert found(slow, "lantern") == []
        assert counts(report) == (0, 0, 2, 0)
        assert report.skipped == ()
        assert counts(quick.index()) == (0, 0, 2, 0)
        check(slow)

    def test_a_named_file_that_another_run_writes_is_read_again(self, home, runs, monkeypatch, check):
        slow, quick = runs
        home.write("a.md", "a lantern on the pier", hours=1)

        def overtake():
            home.write("a.md", "a heron on the quay", hours=2)
            quick.index()
            home.write("a.md", "a gull on the mole", hours=3)

        after(monkeypatch, "read_changed", overtake)
        report = slow.index(paths=[home.notes / "a.md"])
        assert (counts(report), report.skipped) == ((0, 1, 0, 0), ())
        assert found(slow, "gull") == ["notes/a.md"]
        check(slow)

    def test_a_date_is_not_written_to_a_newer_text(self, home, runs, monkeypatch, check, dump):
        slow, quick = runs
        home.date("a.md", 1)

        def overtake():
            home.write("a.md", "a heron on the quay", hours=2)
            quick.index()

        after(monkeypatch, "read_changed", overtake)
        slow.index()
        before = dump(slow)
        assert counts(quick.index()) == (0, 0, 2, 0)
        assert dump(slow) == before
        check(slow)

    def test_a_file_that_exists_again_is_not_removed(self, home, runs, monkeypatch, check):
        slow, quick = runs
        (home.notes / "a.md").unlink()

        def overtake():
            home.write("a.md", "a heron on the quay", hours=2)
            quick.index()

        after(monkeypatch, "scan", overtake)
        assert slow.index().removed == 0
        assert found(slow, "heron") == ["notes/a.md"]
        check(slow)

    def test_a_note_that_another_run_removed_is_scanned_again(self, home, runs, monkeypatch):
        slow, quick = runs
        home.write("a.md", "a lantern on the pier", hours=1)

        def overtake():
            (home.notes / "a.md").unlink()
            quick.index()

        after(monkeypatch, "read_changed", overtake)
        report = slow.index()
        assert found(slow, "lantern") == []
        assert [(item.path, item.reason) for item in report.skipped] == [("notes/a.md", "vanished")]

    def test_a_run_that_is_always_overtaken_ends_with_a_notice(self, home, runs, monkeypatch, check):
        slow, quick = runs
        original = workspace_class().read_changed
        moments = count(1)
        busy = []

        def read(self, entry, digest):
            if busy:
                return original(self, entry, digest)
            busy.append(True)
            home.write("a.md", f"a heron of number{(moment := next(moments))}", hours=moment)
            document = original(self, entry, digest)
            quick.index()
            busy.clear()
            return document

        monkeypatch.setattr(workspace_class(), "read_changed", read)
        report = slow.index()
        assert [(item.path, item.keep) for item in report.skipped] == [("notes/a.md", True)]
        assert "another process" in report.skipped[0].reason
        assert found(slow, "heron") == ["notes/a.md"]
        monkeypatch.undo()
        assert slow.index().skipped == ()
        check(slow)


def test_a_chat_that_is_purged_during_an_index_run_stays_purged(home, monkeypatch):
    chat = Chat("telegram", "1")
    with home.open() as one, home.open() as two:
        two.conversations.append(Message("user", "the lantern is blue", MOMENT, meta=chat.meta))
        meanwhile(monkeypatch, one, "count_tokens", lambda: two.conversations.purge(chat))
        one.index()
        assert found(one, "lantern") == []


def test_the_first_save_does_not_empty_an_index_that_another_process_filled(home, monkeypatch, check):
    home.write("a.md", "the harbour at night")
    with home.open() as slow, home.open() as quick:
        begin = slow._assembly.store.write
        pending = [lambda: None, lambda: quick.index(home.notes)]  # before the text is stored, before the space is

        def write():
            if pending:
                pending.pop(0)()
            return begin()

        monkeypatch.setattr(slow._assembly.store, "write", write)
        assert slow.save("the lantern is blue").notice == ""
        check(slow)


def test_the_first_save_uses_the_space_of_a_concurrent_run(home, monkeypatch, check):
    home.write("a.md", "the harbour at night")
    with home.open() as slow, home.open(embedding={"type": "counting", "model": "other"}) as quick:
        meanwhile(monkeypatch, slow, "embed_documents", lambda: quick.index(home.notes))
        assert "klaw reindex" in slow.save("the lantern is blue").notice
        assert quick.index().lacking == 0
        check(quick)


@pytest.mark.parametrize(("other", "model"), [("reindex", "counting"), ("index", "counting"), ("reindex", "other")])
def test_a_concurrent_reindex_and_index_run_embed_no_text_twice(home, monkeypatch, check, other, model):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
    embedding = {"type": "counting", "model": model}
    with home.open(embedding=embedding) as one, home.open(embedding=embedding) as two:
        home.write("b.md", "a lantern on the pier")
        asked, again = [], threading.Event()
        embedder = type(one._assembly.embedder.serving)
        original = embedder.embed_documents

        def run():
            with suppress(StoreLockedError):  # while the first one rebuilds
                getattr(two, other)()

        thread = threading.Thread(target=run)

        def ask(self, texts, /):
            if any("lantern" in text for text in texts):
                asked.append(texts)
                if len(asked) == 1:
                    thread.start()
                    again.wait(1)  # brief: until the other asks as well; it should not
                else:
                    again.set()
            return original(self, texts)

        monkeypatch.setattr(embedder, "embed_documents", ask)
        one.reindex()
        thread.join(300)
        assert not thread.is_alive()
        assert len(asked) == 1
        check(one)


def test_an_origin_without_a_source_is_named_and_can_be_forgotten(home):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        memory.extension("workspaces").registry.forget("notes")
        assert any("klaw forget notes/" in problem for problem in memory.status().problems)
        assert memory.forget("notes/").paths == ("notes/a.md",)
        assert memory.status().problems == ()


class TestSaveWithoutVector:
    def test_the_embedder_cannot_even_be_built(self, home):
        with home.open(embedding={"type": "ollama", "url": "http://127.0.0.1:9", "retries": 0}) as memory:
            saved = memory.save("the lantern is blue")
            assert "not embedded yet" in saved.notice
            assert [result.path for result in memory.search("lantern", mode="fts")] == [saved.path]
        with home.open() as memory:
            assert memory.index().embedded == 1
            assert memory.search("lantern", mode="vector")

    @pytest.mark.promise("D1")
    def test_the_embedder_fails(self, home):
        with home.open() as memory:
            memory.save("first")
            home.recorder.fail_at = 1
            assert "told to fail" in memory.save("the lantern is blue").notice
            assert memory.search("lantern", mode="fts")

    def test_the_index_is_of_another_space(self, home):
        with home.open() as memory:
            memory.save("first")
        with home.open(embedding={"type": "counting", "model": "other"}) as memory:
            assert "klaw reindex" in memory.save("the lantern is blue").notice
            assert memory.search("lantern", mode="fts")

    def test_another_process_rebuilds(self, home):
        with home.open() as memory, home.open() as other:
            memory.save("first")
            with other._assembly.store.rebuild():
                saved = memory.save("the lantern is blue")
                assert "rebuilding" in saved.notice
        with home.open() as memory:
            memory.index()
            assert memory.search("lantern", mode="fts")

    def test_nothing_fails(self, home):
        with home.open() as memory:
            assert memory.save("the lantern is blue").notice == ""


def test_a_crash_while_embedding_loses_at_most_one_call(home):
    for number in range(130):
        home.write(f"{number}.md", f"entry number{number} of the log")
    with home.open() as memory:
        home.recorder.fail_at = 4  # the probe, two calls of 64 texts, then the failure
        assert memory.index(home.notes).lacking == 2
        home.recorder.fail_at = None
        home.recorder.take()
        memory.index(home.notes)
        assert len(home.recorder.take()) == 2


def test_adding_documents_ends_while_another_process_adds_others_all_the_time(home, monkeypatch):
    with home.open() as one, home.open() as two:
        numbers = count()
        original = FileJournal.get
        looks = []

        def get(self, ids, /):
            if "memory/mine" in ids:
                looks.append(1)
                assert len(looks) < 5
                two.add([NewDocument(f"other-{next(numbers)}", "something else")])
            return original(self, ids)

        meanwhile(monkeypatch, one, "count_tokens", lambda: two.add([NewDocument("other", "something else")]))
        monkeypatch.setattr(FileJournal, "get", get)
        one.add([NewDocument("mine", "a lantern on the pier")])
        assert looks
        assert found(one, "lantern") == ["documents/mine"]
