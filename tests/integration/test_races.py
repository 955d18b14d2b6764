"""Two at once: what one does while the other embeds leaves no old vectors and brings back nothing forgotten."""

import pytest

from klaw_core import SpaceRecord, VectorSpaceError
from klaw_core.saved import Saved
from klaw_core.testing.values import MOMENT


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def meanwhile(monkeypatch, memory, method, action):
    """Let ``action`` happen once, just before the memory's embedder is asked."""
    embedder = memory._parts.embedder.serving
    original = getattr(type(embedder), method)
    pending = [action]

    def ask(self, argument, /):
        if self is embedder and pending:
            pending.pop()()
        return original(self, argument)

    monkeypatch.setattr(type(embedder), method, ask)


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


def test_an_index_run_whose_space_is_gone_stops_and_says_so(home, monkeypatch, check):
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
        assert [part.leg for result in found for part in result.explain] == ["fts5"]
        assert any("rebuilt meanwhile" in notice for notice in found.notices)


def test_a_question_is_never_compared_with_vectors_of_other_weights_of_the_same_name(home, monkeypatch):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)

        def change_weights():
            with memory._parts.store.write() as transaction:
                record = transaction.space("memory")
                transaction.set_space("memory", SpaceRecord(record.space, record.probe[::-1].copy()))

        meanwhile(monkeypatch, memory, "embed_query", change_weights)
        assert any("rebuilt meanwhile" in notice for notice in memory.search("harbour").notices)


def test_only_vectors_and_the_index_moved_is_an_error(home, monkeypatch):
    home.write("a.md", "the harbour at night")
    with home.open() as old, home.open(embedding={"type": "counting", "model": "other"}) as new:
        old.index(home.notes)
        meanwhile(monkeypatch, old, "embed_query", new.reindex)
        with pytest.raises(VectorSpaceError, match="rebuilt meanwhile"):
            old.search("harbour", mode="vector")


@pytest.mark.parametrize("moment", ["count_tokens", "embed_documents"])
@pytest.mark.parametrize("target", ["notes/", "notes/b.md"])
def test_what_is_forgotten_during_an_index_run_stays_forgotten(home, monkeypatch, check, target, moment):
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


def test_a_memory_forgotten_during_an_index_run_stays_forgotten(home, monkeypatch):
    with home.open() as one, home.open() as two:
        one.save("something else")
        unseen = Saved("saved/2026-02-24/0123456789ab", "the lantern is blue", "manual", MOMENT)
        two._journal.append(unseen)  # as after a crash between journal and index
        meanwhile(monkeypatch, one, "count_tokens", lambda: two._journal.forget(unseen.id))
        assert one.index().added == 1
        assert not one.search("lantern", mode="fts")
        assert one.search("something", mode="fts")


def test_an_origin_without_a_source_is_named_and_can_be_forgotten(home):
    home.write("a.md", "the harbour at night")
    with home.open() as memory:
        memory.index(home.notes)
        memory._workspaces.forget("notes")
        assert any("klaw forget notes/" in problem for problem in memory.status().problems)
        assert memory.forget("notes/").paths == ("notes/a.md",)
        assert memory.status().problems == ()


class TestSaveKeepsWhatItCannotEmbed:
    def test_the_embedder_cannot_even_be_built(self, home):
        with home.open(embedding={"type": "ollama", "url": "http://127.0.0.1:9", "retries": 0}) as memory:
            saved = memory.save("the lantern is blue")
            assert "not embedded yet" in saved.notice
            assert [result.path for result in memory.search("lantern", mode="fts")] == [saved.path]
        with home.open() as memory:
            assert memory.index().embedded == 1
            assert memory.search("lantern", mode="vector")

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
            with other._parts.store.rebuild():
                saved = memory.save("the lantern is blue")
                assert "rebuilding" in saved.notice
        with home.open() as memory:
            memory.index()
            assert memory.search("lantern", mode="fts")

    def test_all_is_well(self, home):
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
