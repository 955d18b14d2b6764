"""The index flow: only what changed is embedded, and whatever happens the index agrees with the notes."""

import threading

import pytest

from klaw_core import EmbeddingError, PluginContractError, VectorSpaceError, WorkspaceError

LONG = "\n\n".join(f"# Part {number}\n\n" + f"word{number} " * 60 for number in range(30))


def paths(memory):
    return {stored.path for stored in stored_chunks(memory)}


def stored_chunks(memory):
    with memory._parts.store.read() as snapshot:
        return snapshot.chunks("memory", snapshot.keys("memory").tolist())


def keys_by_id(memory):
    return {stored.chunk.chunk_id: stored.key for stored in stored_chunks(memory)}


def counts(report):
    return report.added, report.changed, report.unchanged, report.removed


def test_a_second_run_and_a_second_start_embed_nothing(home, check, dump):
    home.write("a.md", LONG)
    home.write("sub/b.md", "# B\n\nother text")
    with home.open() as memory:
        report = memory.index(home.notes)
        assert counts(report) == (2, 0, 0, 0)
        assert report.embedded == len(home.recorder.texts) - 1, "all but the probe"
        before = dump(memory)
        home.recorder.calls = 0
        assert counts(memory.index(home.notes)) == (0, 0, 2, 0)
        assert dump(memory) == before
    with home.open() as memory:
        report = memory.index()
        assert counts(report) == (0, 0, 2, 0)
        assert (report.embedded, report.chunks) == (0, 0)
        assert home.recorder.calls == 0
        assert dump(memory) == before
        check(memory)


def test_touching_a_file_costs_no_embedding_but_dates_it_anew(home, memory, check):
    home.write("a.md", "# A\n\ntext")
    memory.index(home.notes)
    keys = keys_by_id(memory)
    home.recorder.calls = 0
    home.date("a.md", 5)
    assert counts(memory.index()) == (0, 0, 1, 0)
    assert home.recorder.calls == 0
    assert keys_by_id(memory) == keys
    (found,) = memory.search("text", mode="fts")
    assert found.created_at.timestamp() == (home.notes / "a.md").stat().st_mtime
    check(memory)


def test_a_changed_file_replaces_only_its_changed_chunks(home, memory, check):
    sections = [f"# Part {number}\n\n" + f"word{number} " * 300 for number in range(5)]
    home.write("a.md", "\n\n".join(sections))
    home.write("b.md", "# B\n\nbeside it")
    memory.index(home.notes)
    before = keys_by_id(memory)
    home.recorder.take()
    sections[2] = "# Part 2\n\nanother text entirely"
    home.write("a.md", "\n\n".join(sections), hours=1)
    assert counts(memory.index()) == (0, 1, 1, 0)
    after = keys_by_id(memory)
    embedded = home.recorder.take()
    assert len(embedded) == len(after.keys() - before.keys())
    assert embedded
    assert len(embedded) <= 3, "the changed section, and neighbours that overlapped it"
    assert all(after[chunk_id] == before[chunk_id] for chunk_id in after.keys() & before.keys())
    assert not set(after.values()) & (set(before.values()) - {before[i] for i in after.keys() & before.keys()})
    check(memory)


def test_a_deleted_file_disappears_and_comes_back_without_embedding(home, memory, check):
    home.write("a.md", "# A\n\nthe first")
    home.write("b.md", "# B\n\nthe second")
    memory.index(home.notes)
    (home.notes / "a.md").unlink()
    home.recorder.calls = 0
    assert counts(memory.index()) == (0, 0, 1, 1)
    assert paths(memory) == {"notes/b.md"}
    assert not [found for found in memory.search("first") if found.path == "notes/a.md"]
    check(memory)
    home.write("a.md", "# A\n\nthe first")
    report = memory.index()
    assert (counts(report), report.cached, report.embedded) == ((1, 0, 1, 0), 1, 0)
    assert home.recorder.calls == 0
    check(memory)


def test_a_renamed_file_keeps_its_vectors(home, memory, check):
    home.write("a.md", "# A\n\nthe text")
    memory.index(home.notes)
    (home.notes / "a.md").rename(home.notes / "z.md")
    home.recorder.calls = 0
    assert counts(memory.index()) == (1, 0, 0, 1)
    assert home.recorder.calls == 0
    assert paths(memory) == {"notes/z.md"}
    check(memory)


def test_what_a_renamed_directory_held_is_found_under_its_new_name_only(home, memory, check):
    home.write("old/a.md", "the text")
    memory.index(home.notes)
    (home.notes / "old").rename(home.notes / "new")
    memory.index()
    assert paths(memory) == {"notes/new/a.md"}
    check(memory)


def test_below_a_directory_that_cannot_be_read_everything_stays(home, memory, check, monkeypatch):
    """Root reads what chmod forbids, so the refusal is the system's: listing a directory raises."""
    home.write("a.md", "outside")
    home.write("sub/b.md", "inside")
    home.write("subway/c.md", "beside")
    memory.index(home.notes)
    (home.notes / "subway" / "c.md").unlink()
    import os

    listing = os.scandir

    def refuse(path):
        if str(path).endswith("/sub"):
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = memory.index()
    assert [(skipped.path, skipped.keep) for skipped in report.skipped] == [("notes/sub", True)]
    assert paths(memory) == {"notes/a.md", "notes/sub/b.md"}
    check(memory)


def test_a_file_that_became_unusable_is_no_longer_found(home, memory, check):
    home.write("a.md", "the text")
    memory.index(home.notes)
    (home.notes / "a.md").write_bytes(b"\0\1\2")
    report = memory.index()
    assert [skipped.reason for skipped in report.skipped] == ["is binary"]
    assert report.removed == 1
    assert paths(memory) == set()
    check(memory)


def test_an_empty_directory_is_no_error(home, memory, check):
    assert counts(memory.index(home.notes)) == (0, 0, 0, 0)
    assert list(memory.search("anything")) == []
    check(memory)


def test_nothing_to_index_says_what_to_do(memory):
    with pytest.raises(WorkspaceError, match="klaw index DIR"):
        memory.index()


def test_force_cuts_everything_but_embeds_nothing_twice(home, memory, dump):
    home.write("a.md", LONG)
    memory.index(home.notes)
    before, keys = dump(memory), keys_by_id(memory)
    home.recorder.calls = 0
    report = memory.index(force=True)
    assert counts(report) == (0, 1, 0, 0)
    assert report.chunks == len(keys)
    assert home.recorder.calls == 0
    assert (dump(memory), keys_by_id(memory)) == (before, keys)


def test_equal_passages_are_embedded_once(home, memory, check):
    for name in "abc":
        home.write(f"{name}.md", "# Same\n\nthe same words")
    report = memory.index(home.notes)
    assert (report.chunks, report.embedded) == (3, 1)
    check(memory)


def test_a_failing_embedder_keeps_what_was_committed_and_the_next_run_completes(home, check, dump, make_home):
    small = {"type": "markdown", "max_tokens": 60, "overlap_tokens": 0}  # several batches' worth of chunks
    other = make_home(home.backend)
    for number in range(8):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
        other.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    home.recorder.fail_at = 8
    with home.open(chunking=small) as memory:
        with pytest.raises(EmbeddingError, match="told to fail"):
            memory.index(home.notes)
        check(memory)
        assert 0 < len(paths(memory)) < 8, "some batches were committed, some were not"
        assert memory.search("file0word1", mode="fts")
    home.recorder.fail_at = None
    with home.open(chunking=small) as memory:
        memory.index()
        check(memory)
        assert len(home.recorder.texts) <= len(stored_chunks(memory)) + 1, "each passage once, and the probe"
        complete = dump(memory)
    with other.open(chunking=small) as memory:
        memory.index(other.notes)
        assert dump(memory) == complete


def test_another_vector_space_is_refused_until_reindex_moves_to_it(home, check, dump):
    home.write("a.md", LONG)
    with home.open() as memory:
        memory.index(home.notes)
        memory.save("remember the harbour")
        before = dump(memory)
    with home.open(embedding={"type": "counting", "dimension": 16}) as memory:
        with pytest.raises(VectorSpaceError, match="klaw reindex"):
            memory.index()
        assert dump(memory) == before
        found = memory.search("harbour")
        assert found[0].path.startswith("saved/"), "words still answer"
        assert any("klaw reindex" in notice for notice in found.notices)
        with pytest.raises(VectorSpaceError, match="klaw reindex"):
            memory.search("harbour", mode="vector")
        memory.reindex()
        check(memory)
        assert dump(memory)["counts"] == before["counts"]
        assert memory.search("harbour", mode="vector")[0].path.startswith("saved/")
        assert memory.search("harbour").notices == ()
        assert memory.status().space.dimension == 16


def test_an_interrupted_reindex_changes_nothing_and_the_next_one_completes(home, check, dump):
    for number in range(6):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    small = {"type": "markdown", "max_tokens": 60, "overlap_tokens": 0}  # several batches' worth of chunks
    with home.open(chunking=small) as memory:
        memory.index(home.notes)
        before = dump(memory)
    home.recorder.calls, home.recorder.fail_at = 0, 7
    with home.open(chunking=small, embedding={"type": "counting", "dimension": 16}) as memory:
        with pytest.raises(EmbeddingError):
            memory.reindex()
        assert dump(memory) == before
        assert memory.search("file0word1", mode="fts"), "words answer meanwhile"
    with home.open(chunking=small) as memory:
        check(memory)
        assert memory.search("file0word1", mode="vector"), "so does the model that was left behind"
    done = len(home.recorder.take())
    home.recorder.fail_at = None
    with home.open(chunking=small, embedding={"type": "counting", "dimension": 16}) as memory:
        memory.reindex()
        check(memory)
        assert dump(memory) == before
        if home.backend == "sqlite":
            again = len(home.recorder.take())
            assert 0 < again < len(before["chunks"]), "it goes on where the first one stopped"
    assert done


def test_reindex_rebuilds_an_index_that_lost_its_rows(home, memory, check):
    home.write("a.md", LONG)
    memory.index(home.notes)
    with memory._parts.store.write() as transaction:
        for _, index in memory._parts.indexes():
            index.reset(transaction.resource, "memory", transaction.space("memory").space)
    assert any("run `klaw index`" in problem for problem in memory.status().problems)
    memory.index()
    check(memory)
    assert memory.status().problems == ()


def test_rows_that_an_index_has_too_many_go_at_the_next_run(home, check):
    """The vectors were off while a note was deleted; its vector must not stay behind."""
    home.write("a.md", "the secret")
    home.write("b.md", "the rest")
    with home.open() as memory:
        memory.index(home.notes)
    (home.notes / "a.md").unlink()
    with home.open(embedding={"type": "none"}) as memory:
        memory.index()
        assert paths(memory) == {"notes/b.md"}
    with home.open() as memory:
        memory.index()
        check(memory)


def test_a_leg_that_is_added_later_is_filled(home, check):
    home.write("a.md", LONG)
    vectors, words = home.legs
    with home.open(retrieval=[{"type": words}]) as memory:
        memory.index(home.notes)
        assert home.recorder.calls == 0, "no leg needs vectors"
    with home.open() as memory:
        memory.index()
        check(memory)
        assert memory.search("word3 word3", mode="vector")
    assert vectors in home.legs


def test_another_cut_cuts_everything_again(home, check):
    home.write("a.md", "\n\n".join(f"Paragraph {number} " + "has some words. " * 20 for number in range(20)))
    home.write("b.md", "short")
    with home.open() as memory:
        memory.index(home.notes)
        before = len(keys_by_id(memory))
    with home.open(chunking={"type": "markdown", "max_tokens": 60, "overlap_tokens": 10}) as memory:
        report = memory.index()
        assert counts(report) == (0, 2, 0, 0)
        assert len(keys_by_id(memory)) > before
        check(memory)
        assert counts(memory.index()) == (0, 0, 2, 0)


def test_one_missing_workspace_does_not_stop_the_others(home, memory):
    home.write("a.md", "in the first")
    second = home.root / "second"
    second.mkdir()
    (second / "b.md").write_text("in the second")
    memory.index(home.notes)
    memory.index(second)
    home.notes.rename(home.root / "away")
    (second / "c.md").write_text("new in the second")
    (skipped,) = memory.index().skipped
    assert (skipped.path, skipped.keep) == ("notes", True)
    assert "klaw forget notes/" in skipped.reason
    assert paths(memory) == {"notes/a.md", "second/b.md", "second/c.md"}, "what cannot be looked at stays"
    with pytest.raises(WorkspaceError, match="does not exist"):
        memory.index(home.notes)


def test_reindex_loses_nothing_of_a_workspace_that_is_not_there(home, memory, check):
    home.write("a.md", "in the first")
    memory.index(home.notes)
    home.notes.rename(home.root / "away")
    try:
        memory.reindex()
    except WorkspaceError as error:
        assert "klaw forget notes/" in error.hint  # noqa: PT017  # refusing is as good as keeping
    check(memory)
    assert paths(memory) == {"notes/a.md"}
    assert memory.search("first", mode="vector")


def test_two_memories_on_one_file_see_each_other(home, check):
    home.write("a.md", "the harbour")
    with home.open() as first, home.open() as second:
        first.index(home.notes)
        assert second.search("harbour")[0].path == "notes/a.md"
        home.write("b.md", "the lighthouse")
        second.index()
        assert first.search("lighthouse", mode="fts")[0].path == "notes/b.md"
        first.forget("notes/b.md")
        assert not second.search("lighthouse", mode="fts")
        assert counts(second.index()) == (0, 0, 1, 0)
        check(first)
        check(second)


def test_two_memories_index_at_once(home, check, dump):
    for number in range(20):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    with home.open() as first, home.open() as second:
        failures = []

        def run(memory):
            try:
                memory.index(home.notes)
            except Exception as error:  # noqa: BLE001  # shown below
                failures.append(error)

        threads = [threading.Thread(target=run, args=(memory,)) for memory in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        check(first)
        assert len(paths(first)) == 20
        before = dump(first)
        assert counts(first.index()) == (0, 0, 20, 0)
        assert dump(second) == before


def test_searching_while_indexing_sees_whole_documents(home, memory, check):
    home.write("a.md", "harbour")
    for number in range(8):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    memory.index(home.notes)
    failures = []

    def rewrite():
        try:
            for number in range(8):
                home.write(f"{number}.md", LONG.replace("word", f"new{number}word"), hours=1)
            memory.index()
        except Exception as error:  # noqa: BLE001  # shown below
            failures.append(error)

    thread = threading.Thread(target=rewrite)
    thread.start()
    searched = 0
    while thread.is_alive() or not searched:
        results = memory.search("harbour", limit=3)
        assert results[0].path == "notes/a.md"
        assert results.notices == ()
        searched += 1
    thread.join()
    assert failures == []
    check(memory)


def test_progress_never_goes_back_and_ends_at_the_total(home, memory):
    home.write("a.md", LONG)
    home.write("b.md", "some text")
    home.write("z.md", "")
    seen = []
    memory.index(home.notes, on_progress=seen.append)
    stages = {stage: [item for item in seen if item.stage == stage] for stage in ("index", "embed")}
    done = [item.done for item in stages["index"]]
    assert done == sorted(done)
    assert done[0] == 0
    total = sum((home.notes / name).stat().st_size for name in ("a.md", "b.md", "z.md"))
    assert {item.total for item in stages["index"]} == {total}
    assert done[-1] == total
    assert stages["index"][-1].documents == 2


@pytest.mark.parametrize("lie", ["beyond the end", "before the start", "backwards", "empty", "out of order"])
def test_a_chunker_that_cuts_wrongly_is_named_and_nothing_is_kept(home, check, liars, lie):
    home.write("a.md", "some text to cut")
    home.extra.append(("chunker", liars["chunker"]))
    with home.open(chunking={"type": "liar", "lie": lie}) as memory:
        with pytest.raises(PluginContractError, match=r"LiarChunker.*notes/a\.md"):
            memory.index(home.notes)
        check(memory)
        assert paths(memory) == set()


@pytest.mark.parametrize(
    "lie", ["nan", "infinity", "zero", "length", "too few", "too many", "dimension", "dtype", "list", "none"]
)
def test_an_embedder_that_lies_is_named_and_nothing_is_kept(home, liars, lie):
    home.write("a.md", "some text")
    home.extra.append(("embedder", liars["embedder"]))
    with home.open(embedding={"type": "liar", "lie": lie}) as memory:
        with pytest.raises(PluginContractError, match="liar"):
            memory.index(home.notes)
        assert paths(memory) == set()
        assert memory.status().space is None
