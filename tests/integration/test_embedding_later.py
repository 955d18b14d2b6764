"""Write first, embed after: words find a text though no embedder works; vectors follow, and none is computed twice."""

import os
from contextlib import contextmanager
from threading import Event, Thread

import numpy as np
import pytest
from attrs import evolve

from klaw_core import Chat, EmbedderUnavailableError, EmbeddingError, Message, NewDocument
from klaw_core.embedding.run import PROBE
from klaw_memories.saved import Saved
from klaw_testing.values import MOMENT


@pytest.fixture
def notes(home):
    for number in range(200):
        home.write(f"{number:03}.md", f"lantern number{number} of the pier")
    return home.notes


def lacking(memory):
    with memory._assembly.store.read() as snapshot:
        keys = snapshot.keys("memory").tolist()
        held = next(
            index.keys(snapshot.resource, "memory") for _, index in memory._assembly.indexes() if index.needs_vectors
        )
        return sorted(set(keys) - set(held.tolist()))


def embedder_of(memory):
    return memory._assembly.embedder.serving


class TestChunksOfAnotherRun:
    """A run that has written a text may end before it embeds it: whoever keeps that text then embeds it."""

    def test_a_saved_memory_is_embedded_if_only_its_vectors_are_missing(self, memory, check):
        other = Saved.make("a lantern at the pier", "manual", None, MOMENT)
        memory.extension("saved").journal.append([other.record()])
        memory.index(origin="saved", embed=False)
        assert len(lacking(memory)) == 1
        assert not memory.save("a lantern at the pier", created_at=MOMENT).notice
        assert lacking(memory) == []
        check(memory)

    def test_a_document_that_is_added_again_embeds_only_missing_vectors(self, memory, home, check):
        text = "\n\n".join(f"# Part {number}\n\nlantern {number} " + "of the pier " * 80 for number in range(3))
        memory.add([NewDocument("pier", text)])
        assert len(_texts(memory)) > 2
        with memory._assembly.store.write() as transaction:
            key = transaction.keys("memory").tolist()[1]
            for _, index in memory._assembly.indexes():
                if index.needs_vectors:
                    index.remove(transaction.resource, "memory", [key])
            transaction.forget_vectors([stored.chunk.embedding_hash for stored in transaction.chunks("memory", [key])])
        home.recorder.take()
        report = memory.add([NewDocument("pier", text)])
        assert (report.embedded, report.lacking, lacking(memory)) == (1, 0, [])
        assert len([sent for sent in home.recorder.take() if sent != PROBE]) == 1
        check(memory)

    def test_a_failure_to_embed_it_is_reported(self, memory, monkeypatch):
        memory.save("a lantern at the pier", created_at=MOMENT)
        memory.extension("saved").journal.append([Saved.make("a boat at the pier", "manual", None, MOMENT).record()])
        memory.index(origin="saved", embed=False)

        def no_model(*_):
            raise EmbedderUnavailableError("no model here")

        monkeypatch.setattr(type(embedder_of(memory)), "embed_documents", no_model)
        assert "no model here" in memory.save("a boat at the pier", created_at=MOMENT).notice


class TestWithoutEmbedding:
    def test_words_find_everything_without_calling_the_embedder(self, home, memory, notes, check):
        report = memory.index(notes, embed=False)
        assert (report.added, report.embedded, report.lacking) == (200, 0, 200)
        assert home.recorder.calls == 0
        assert memory.search("number199")[0].path == "notes/199.md"
        assert memory.status().space is None
        check(memory, embedded=False)

    def test_a_search_says_how_many_chunks_have_no_vector(self, memory, notes):
        """Also if a newer text has one already, and if vectors find something."""
        memory.index(notes, embed=False)
        memory.embed(limit=30)
        saved = memory.save("a buoy")
        told = "170 chunks have no vector yet, so only words find them: klaw embed"
        for mode in ("hybrid", "vector"):
            found = memory.search("a buoy", mode=mode)
            assert (found[0].path, found.notices) == (saved.path, (told,))
        assert memory.search("a buoy", mode="fts").notices == ()
        assert told in memory.context("a buoy").notices
        assert told in memory.call_tool("memory_search", {"query": "a buoy"})["notices"]
        memory.embed(limit=169)
        assert memory.search("buoy").notices == ("1 chunk has no vector yet, so only words find it: klaw embed",)
        memory.embed()
        assert memory.search("buoy").notices == ()

    def test_the_newest_documents_are_embedded_first(self, memory, notes, monkeypatch, check):
        """Vectors find them while the others still wait. The rest follows in order, and nothing is left out."""
        monkeypatch.setattr("klaw_core.indexing.backfill.POOL", 4)
        monkeypatch.setattr("klaw_core.indexing.backfill._NEWEST", 3)
        for number in range(200):
            os.utime(notes / f"{number:03}.md", (1_500_000_000 + number * 86_400,) * 2)
        memory.index(notes, embed=False)
        waiting = lacking(memory)
        memory.embed(limit=5)
        embedded = sorted(set(waiting) - set(lacking(memory)))
        with memory._assembly.store.read() as snapshot:
            paths = [stored.path for stored in snapshot.chunks("memory", embedded)]
        assert sorted(paths) == [f"notes/{number:03}.md" for number in (0, 1, 197, 198, 199)]
        memory.embed()
        assert lacking(memory) == []
        check(memory)

    def test_chunks_that_are_removed_before_they_have_vectors_are_not_counted(self, memory, notes):
        memory.index(notes, embed=False)
        memory.embed(limit=199)
        (notes / "199.md").unlink()
        memory.index(embed=False)
        assert memory.search("lantern").notices == ()

    @pytest.mark.promise("D7")
    def test_embed_continues_in_order_and_can_be_stopped(self, home, memory, notes, monkeypatch, check):
        monkeypatch.setattr(type(embedder_of(memory)), "remote", True, raising=False)  # told of, and kept, call by call
        memory.index(notes, embed=False)
        every = lacking(memory)
        assert memory.embed(limit=30).lacking == 170
        assert lacking(memory) == every[30:]
        seen = []
        assert memory.embed(texts_per_call=50, on_progress=seen.append).lacking == 0
        assert [progress.done for progress in seen if progress.total] == [0, 49, 99, 149, 170], "the probe was first"
        check(memory)
        home.recorder.calls = 0
        report = memory.embed()
        assert (report.embedded, report.cached, home.recorder.calls) == (0, 0, 0)

    def test_each_text_is_sent_once_in_calls_of_the_embedders_size(self, home, memory, notes, monkeypatch):
        monkeypatch.setattr(type(embedder_of(memory)), "texts_per_call", 500, raising=False)
        memory.index(notes)
        assert home.recorder.calls == 2, "the probe, and all the others at once"
        assert sorted(home.recorder.take()) == sorted({PROBE, *_texts(memory)})

    def test_texts_are_split_by_estimate_until_a_tokenizer_exists(self, home, memory, notes, monkeypatch, check):
        home.write("long.md", "word " * 900)

        def no_model(*_):
            raise EmbedderUnavailableError("no model here")

        with monkeypatch.context() as broken:
            for name in ("count_tokens", "embed_documents", "embed_query"):
                broken.setattr(type(embedder_of(memory)), name, no_model)
            report = memory.index(notes)
            assert (report.added, report.lacking > 200) == (201, True)
            assert "no model here" in report.notices[0]
            assert memory.index().unchanged == 201, "an estimate is no reason to cut them again while there is none"
            assert memory.search("number7")[0].path == "notes/007.md"
        report = memory.index()
        assert (report.changed, report.lacking) == (201, 0)
        assert memory.index().unchanged == 201
        check(memory)


class TestAnEmbedderThatFails:
    def test_an_unavailable_embedder_is_not_called_again_in_the_run(self, memory, notes, monkeypatch):
        calls = []

        def gone(_self, texts, /):
            calls.append(texts)
            raise EmbedderUnavailableError("the server is away", hint="start it")

        monkeypatch.setattr(type(embedder_of(memory)), "embed_documents", gone)
        report = memory.index(notes)
        assert report.lacking == 200
        assert report.notices == ("the server is away (start it)",)
        assert len(calls) == 1

    def test_a_rejected_text_affects_only_its_call(self, memory, notes, monkeypatch, check):
        embed = type(embedder_of(memory)).embed_documents

        def refuse_one(self, texts, /):
            if any("number77 " in text for text in texts):
                raise EmbeddingError("it is too odd")
            return embed(self, texts)

        monkeypatch.setattr(type(embedder_of(memory)), "embed_documents", refuse_one)
        assert 0 < memory.index(notes).lacking <= 64
        assert memory.embed(texts_per_call=1).lacking == 1
        monkeypatch.undo()
        assert memory.embed().lacking == 0
        check(memory)

    def test_an_embedder_that_always_fails_is_not_called_forever(self, home, memory, notes):
        memory.save("the first")
        home.recorder.calls, home.recorder.fail_at = 0, 1
        memory.index(notes)
        assert 2 <= home.recorder.calls <= 16

    def test_a_rejected_text_does_not_affect_the_others(self, memory, notes, monkeypatch):
        embed = type(embedder_of(memory)).embed_documents

        def refuse(self, texts, /):
            if any("number7" in text for text in texts):
                raise EmbeddingError("400: text refused")
            return embed(self, texts)

        monkeypatch.setattr(type(embedder_of(memory)), "embed_documents", refuse)
        report = memory.index(notes)
        refused = sum("number7" in text for text in _texts(memory))
        assert 0 < report.lacking == refused < report.chunks
        assert "400: text refused" in report.notices[0]
        assert memory.reindex("counting:other").lacking == refused


class TestMovingToAnotherModel:
    def test_the_old_vectors_answer_until_the_new_ones_are_complete(self, home, memory, notes, check, dump):
        memory.index(notes)
        before, answers = dump(memory), []

        def look(progress):
            answers.append((progress.stage, len(memory.search("lantern number7", mode="vector"))))

        memory.reindex("counting:other", on_progress=look)
        assert {stage for stage, _ in answers} == {"ahead", "index"}
        assert all(found == 10 for _, found in answers)
        assert memory.config.embedding.options == {"model": "other"}
        assert memory.status().space.model == "other"
        assert memory.search("lantern number7", mode="vector")
        check(memory)
        assert dump(memory)["chunks"] == before["chunks"]
        with home.open() as late:  # its configuration names the old model still
            assert any("klaw reindex" in notice for notice in late.search("lantern").notices)

    @pytest.mark.parametrize("call", [2, 3, 5])
    def test_an_interrupted_move_embeds_nothing_twice(self, home, memory, notes, check, call):
        memory.index(notes)
        home.recorder.take()
        home.recorder.calls, home.recorder.fail_at = 0, call
        with pytest.raises(EmbeddingError, match="told to fail"):
            memory.reindex("counting:other")
        assert memory.search("lantern number7", mode="vector"), "the old index answers, by its own model"
        assert memory.index().notices == ()
        home.recorder.fail_at = None
        first = home.recorder.take()
        memory.reindex("counting:other")
        second = home.recorder.take()
        assert sorted(text for text in first + second if text != PROBE) == sorted(_texts(memory))
        check(memory)

    def test_others_can_write_and_search_during_a_move(self, home, memory, notes, monkeypatch, check):
        memory.index(notes)
        embed, done = type(embedder_of(memory)).embed_documents, []
        with home.open() as other:

            def meanwhile(self, texts, /):
                if self.options.model == "other" and len(texts) > 1 and not done:
                    done.append(other.save("a buoy was seen").notice)
                    home.write("late.md", "a heron came late")
                    done.append(other.index().lacking)
                    done.append(other.search("buoy", mode="vector")[0].content)
                return embed(self, texts)

            monkeypatch.setattr(type(embedder_of(memory)), "embed_documents", meanwhile)
            memory.reindex("counting:other")
        assert done == ["", 0, "a buoy was seen"]
        assert memory.search("late a heron came late", mode="vector")[0].path == "notes/late.md"
        check(memory)

    def test_the_limit_of_the_cache_does_not_evict_a_space_being_built(self, home, notes):
        with home.open(cache={"max_entries": 20}) as memory:
            memory.index(notes)
            home.recorder.take()
            home.recorder.calls, home.recorder.fail_at = 0, 4
            with pytest.raises(EmbeddingError):
                memory.reindex("counting:other")
            home.recorder.fail_at = None
            first = set(home.recorder.take()) - {PROBE}
            assert first
            home.write("more.md", "something more")
            memory.index()
            home.recorder.take()
            memory.reindex("counting:other")
            assert not first & set(home.recorder.take())


class TestTheCache:
    def test_the_cache_is_shared_by_collections_and_counted(self, home, memory):
        home.write("a.md", "the same words")
        (home.root / "manual").mkdir()
        (home.root / "manual" / "a.md").write_text("the same words")  # of the same name: that is embedded as well
        memory.index(home.notes)
        report = memory.index(home.root / "manual", collection="docs")
        assert (report.added, report.embedded, report.cached) == (1, 0, 1)
        if home.backend == "sqlite":
            statistics = memory.status().statistics
            assert (statistics["cached_vectors"], statistics["cache_hit_rate"]) == (1, "50% of 2")
            assert statistics["cache_bytes"] == 2 * 48

    def test_the_cache_is_kept_within_its_limit(self, home, notes, check):
        with home.open(cache={"max_entries": 50}) as memory:
            memory.index(notes)
            with memory._assembly.store.read() as snapshot:
                hashes = [stored.chunk.embedding_hash for stored in _stored(memory)]
                assert len(snapshot.cached_vectors(embedder_of(memory).space, hashes)) == 50
            check(memory)


class TestAModelThatChangedUnderItsName:
    @pytest.fixture
    def changed(self, home, memory, notes, monkeypatch):
        """The index is made; then the same name stands for other weights, on a server that does not say so."""
        kind = type(embedder_of(memory))
        monkeypatch.setattr(kind, "remote", True, raising=False)
        memory.index(notes)
        vector = kind._vector
        monkeypatch.setattr(kind, "_vector", lambda self, text: np.roll(vector(self, text), 7))
        home.recorder.take()
        home.write("new.md", "a new heron")
        return memory

    def test_the_next_run_detects_it_and_vectors_are_not_compared(self, changed, check):
        report = changed.index()
        assert report.lacking == 1
        assert "has changed" in report.notices[0]
        found = changed.search("heron")
        assert found[0].path == "notes/new.md"
        assert any("replaced-1" in notice for notice in found.notices)
        assert any("vector search is paused" in problem for problem in changed.status().problems)
        changed.reindex()
        assert changed.search("heron", mode="vector")[0].path == "notes/new.md"
        assert changed.status().problems == ()
        check(changed)

    def test_reindex_uses_no_vector_of_the_old_weights(self, changed, check):
        assert changed.reindex().embedded == 201
        check(changed)

    def test_the_probe_is_sent_only_with_the_first_texts_of_a_run(self, home, memory, notes, monkeypatch):
        monkeypatch.setattr(type(embedder_of(memory)), "remote", True, raising=False)
        memory.index(notes)
        home.recorder.take()
        home.recorder.calls = 0
        memory.index()
        assert home.recorder.calls == 0, "nothing to send, nothing sent"
        home.write("new.md", "a new heron")
        memory.index()
        assert home.recorder.take() == [PROBE, "new\na new heron"]


class TestFallback:
    def test_another_runtime_of_the_model_is_used(self, home, notes, check):
        chain = {"type": "counting", "fallback": [{"type": "twin"}]}
        home.extra.append(("embedder", home.component("twin")))
        with home.open(embedding=chain) as memory:
            memory.index(notes, embed=False)
            memory.embed(limit=100)
            home.recorder.fail_at = 0
            home.recorder.unavailable = True
            report = memory.embed()
            assert (report.lacking, report.notices) == (0, ())
            assert memory.search("lantern number7", mode="vector")
            assert memory.status().embedder == "twin (memory.embedding.fallback[0])"
            assert any("told to fail" in problem for problem in memory.status().problems)
            assert memory.status().space.model == "counting"
        with home.open() as memory:
            home.recorder.fail_at = None
            check(memory)

    def test_another_model_is_not_used(self, home, notes):
        home.extra.append(("embedder", home.component("twin", model="another")))
        with home.open(embedding={"type": "counting", "fallback": [{"type": "twin"}]}) as memory:
            memory.index(notes)
            home.write("new.md", "a new heron")
            home.recorder.fail_at = 0
            home.recorder.unavailable = True
            assert memory.index().lacking == 1
            found = memory.search("heron")
            assert found[0].path == "notes/new.md"


def _stored(memory):
    with memory._assembly.store.read() as snapshot:
        return snapshot.chunks("memory", snapshot.keys("memory").tolist())


def _texts(memory):
    return {stored.chunk.embedding_text for stored in _stored(memory)}


@contextmanager
def held_elsewhere(memory, name):
    """Hold a lock of the store in another thread."""
    held, done = Event(), Event()

    def hold():
        with memory._assembly.store.lock(name):
            held.set()
            done.wait(300)

    other = Thread(target=hold)
    other.start()
    try:
        assert held.wait(300)
        yield
    finally:
        done.set()
        other.join()


class TestWhileAnotherRunEmbeds:
    @pytest.fixture
    def stages(self):
        return []

    @pytest.fixture
    def look(self, stages):
        def note(progress):
            stages.append(progress.stage)
            if progress.stage == "wait":
                raise LookupError("it waits for the other run")

        return note

    def test_a_run_without_anything_to_embed_does_not_wait(self, memory, notes, stages, look):
        memory.index(notes)
        with held_elsewhere(memory, "embedding"):
            report = memory.index(on_progress=look)
        assert (report.unchanged, report.lacking) == (200, 0)
        assert "left" in stages

    def test_a_run_that_only_removes_does_not_wait(self, home, memory, notes, look):
        memory.index(notes)
        (home.notes / "007.md").unlink()
        with held_elsewhere(memory, "embedding"):
            assert memory.index(on_progress=look).removed == 1

    @pytest.mark.promise("D32")
    def test_a_run_with_something_to_embed_waits(self, home, memory, notes, look):
        memory.index(notes)
        home.write("new.md", "a lantern on the pier")
        with held_elsewhere(memory, "embedding"), pytest.raises(LookupError):
            memory.index(on_progress=look)

    @pytest.mark.promise("D32")
    def test_embed_waits(self, memory, notes, look):
        memory.index(notes, embed=False)
        with held_elsewhere(memory, "embedding"), pytest.raises(LookupError):
            memory.embed(on_progress=look)


def test_a_rebuild_reports_progress_within_a_batch(memory, notes, monkeypatch):
    """A batch of a slow model takes minutes: chunks are counted as the model answers."""
    memory.index(notes)
    monkeypatch.setattr("klaw_core.embedding.run.SECONDS_PER_COMMIT", 0.0)
    seen = []
    memory.reindex("counting:other", on_progress=seen.append)
    ahead = [now for now in seen if now.stage == "ahead"]
    assert len({now.chunks for now in ahead}) >= 5
    assert [now.done for now in ahead] == sorted(now.done for now in ahead)
    assert max(now.chunks for now in ahead) == 200
    assert all(0 <= now.done <= now.total for now in ahead)


def other_embedder(home, **attributes):
    """Offer another embedder, with these attributes besides those of every embedder of these tests."""
    plain = home.component("other")

    def factory(options, place):
        embedder = plain.factory(options, place)
        kind = type("Other", (type(embedder),), attributes)
        return kind(embedder.options, embedder.recorder, embedder.name)

    home.extra.append(("embedder", evolve(plain, factory=factory)))


@pytest.mark.promise("D22")
@pytest.mark.parametrize("way", ["index", "save", "append"])
def test_the_first_run_writes_words_before_it_calls_the_server(home, way):
    """Not even what its model is called, or how long its vectors are: a server that stalls would hold the words up."""
    words = []

    def stall(_embedder):
        with home.open() as beside:
            words.append(len(beside.search("harbour", mode="fts")))
        raise EmbedderUnavailableError("the server does not answer")

    other_embedder(home, remote=True, model="other", space=property(stall))
    home.write("a.md", "the harbour")
    with home.open(embedding={"type": "other"}) as memory:
        if way == "save":
            memory.save("the harbour")
        elif way == "index":
            memory.index(home.notes)
        else:
            memory.conversations.append(Message("user", "the harbour", MOMENT, meta=Chat("telegram", "1").meta))
            memory.index()
    assert words
    assert all(words), "the server was asked before the words were there"


def test_chunks_that_were_split_before_the_first_answer_stay_unchanged(home):
    other_embedder(home, remote=True, model="other")
    home.write("a.md", "the harbour")
    with home.open(embedding={"type": "other"}) as memory:
        assert memory.index(home.notes).added == 1
        assert memory.index().unchanged == 1
