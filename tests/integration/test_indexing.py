"""The index flow: only what changed is embedded, and whatever happens the index agrees with the notes."""

import pytest

from klaw_core import KlawError, PluginContractError, WorkspaceError

LONG = "\n\n".join(f"# StyledText {number}\n\n" + f"word{number} " * 60 for number in range(30))


def paths(memory):
    return {stored.path for stored in stored_chunks(memory)}


def stored_chunks(memory):
    with memory._assembly.store.read() as snapshot:
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


def test_touching_a_file_updates_its_date_without_embedding(home, memory, check):
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
    sections = [f"# StyledText {number}\n\n" + f"word{number} " * 300 for number in range(5)]
    home.write("a.md", "\n\n".join(sections))
    home.write("b.md", "# B\n\nbeside it")
    memory.index(home.notes)
    before = keys_by_id(memory)
    home.recorder.take()
    sections[2] = "# StyledText 2\n\nanother text entirely"
    home.write("a.md", "\n\n".join(sections), hours=1)
    report = memory.index()
    assert (counts(report), report.cached) == ((0, 1, 1, 0), 0), "what stayed is not even looked up"
    after = keys_by_id(memory)
    embedded = home.recorder.take()
    assert len(embedded) == len(after.keys() - before.keys())
    assert embedded
    assert len(embedded) <= 3, "the changed section, and neighbours that overlapped it"
    stayed = after.keys() & before.keys()
    assert {name: after[name] for name in stayed} == {name: before[name] for name in stayed} != {}
    assert not set(after.values()) & (set(before.values()) - {before[name] for name in stayed})
    check(memory)


def test_rows_and_indexes_agree_at_every_moment_of_a_run(home, memory, check):
    for number in range(4):
        home.write(f"{number}.md", f"# Note {number}\n\nthe first text")
    memory.index(home.notes)
    home.write("0.md", "another text")
    home.write("4.md", "a new text")
    (home.notes / "1.md").unlink()
    moments = []
    memory.index(on_progress=lambda progress: (moments.append(progress.stage), check(memory, embedded=False)))
    assert set(moments) == {"index", "embed"}
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


def test_notes_of_a_renamed_directory_are_found_only_under_its_new_name(home, memory, check):
    home.write("old/a.md", "the text")
    memory.index(home.notes)
    (home.notes / "old").rename(home.notes / "new")
    memory.index()
    assert paths(memory) == {"notes/new/a.md"}
    check(memory)


def test_documents_of_an_unreadable_directory_stay(home, memory, check, monkeypatch):
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


def test_a_file_that_became_invalid_is_no_longer_found(home, memory, check):
    home.write("a.md", "the text")
    memory.index(home.notes)
    (home.notes / "a.md").write_bytes(b"\0\1\2")
    report = memory.index()
    assert [skipped.reason for skipped in report.skipped] == ["is binary"]
    assert report.removed == 1
    assert paths(memory) == set()
    check(memory)


def test_an_empty_directory_is_not_an_error(home, memory, check):
    assert counts(memory.index(home.notes)) == (0, 0, 0, 0)
    assert list(memory.search("anything")) == []
    check(memory)


def test_an_index_run_without_sources_names_the_next_command(memory):
    with pytest.raises(WorkspaceError, match="klaw index DIR"):
        memory.index()


def test_force_splits_everything_and_embeds_nothing_again(home, memory, dump):
    home.write("a.md", LONG)
    memory.index(home.notes)
    before, keys = dump(memory), keys_by_id(memory)
    home.recorder.calls = 0
    report = memory.index(force=True)
    assert counts(report) == (0, 1, 0, 0)
    assert report.chunks == len(keys)
    assert home.recorder.calls == 0
    assert (dump(memory), keys_by_id(memory)) == (before, keys)


def test_equal_chunks_are_embedded_once(home, memory, check):
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
        report = memory.index(home.notes)
        assert any("told to fail" in notice for notice in report.notices)
        assert 0 < report.lacking < len(stored_chunks(memory)), "some calls were answered, some were not"
        check(memory, embedded=False)
        assert len(paths(memory)) == 8
        assert memory.search("file7word1", mode="fts")[0].path == "notes/7.md", "words find what has no vector"
        assert any("klaw embed" in problem for problem in memory.status().problems)
    home.recorder.fail_at = None
    with home.open(chunking=small) as memory:
        memory.index()
        check(memory)
        assert len(home.recorder.texts) <= len(stored_chunks(memory)) + 1, "each chunk once, and the probe"
        complete = dump(memory)
    with other.open(chunking=small) as memory:
        memory.index(other.notes)
        assert dump(memory) == complete


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
def test_an_invalid_chunker_is_named_and_nothing_is_stored(home, check, liars, lie):
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
def test_an_embedder_with_invalid_vectors_is_named_and_none_is_stored(home, liars, lie):
    home.write("a.md", "some text")
    home.extra.append(("embedder", liars["embedder"]))
    with home.open(embedding={"type": "liar", "lie": lie}) as memory:
        report = memory.index(home.notes)
        assert "liar" in report.notices[0]
        assert (report.embedded, report.lacking) == (0, 1)
        assert memory.search("text", mode="fts")[0].path == "notes/a.md"
        assert memory.status().space is None


def test_messages_are_only_made_of_what_went_wrong(home, memory, monkeypatch):
    """Text that a message quotes is searched for secrets, which costs as much as a short search for each document."""
    quoted = []
    monkeypatch.setattr("klaw_core.errors._redacted", lambda text: quoted.append(text) or text)
    for number in range(3):
        home.write(f"{number}.md", f"the harbour {number}")
    assert memory.index(home.notes).added == 3
    assert memory.search("harbour")
    assert memory.get("notes/1.md").content == "the harbour 1"
    assert quoted == []
    with pytest.raises(KlawError):
        memory.get("notes/9.md")
    assert quoted != []
