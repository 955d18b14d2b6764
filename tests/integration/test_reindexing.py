"""Another model, another cut, another retriever: the index follows, and nothing is lost on the way."""

import errno
import os
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from klaw_core import ConfigError, EmbeddingError, NotFoundError, PluginNotFoundError, VectorSpaceError
from klaw_core.embedding.run import PROBE
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_testing.values import MOMENT

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


@pytest.mark.promise("D16")
def test_another_vector_space_is_refused_until_reindex_moves_to_it(home, check, dump):
    home.write("a.md", LONG)
    with home.open() as memory:
        memory.index(home.notes)
        memory.save("remember the harbour")
        before = dump(memory)
    with home.open(embedding={"type": "counting", "dimension": 16}) as memory:
        home.write("b.md", "a lantern on the pier")
        report = memory.index()
        assert "klaw reindex" in report.notices[0]
        assert (report.added, report.changed, report.embedded, report.lacking) == (1, 0, 0, 1), "nothing is cut anew"
        assert memory.search("lantern", mode="fts")[0].path == "notes/b.md"
        assert any("vector search is paused" in problem for problem in memory.status().problems)
        memory.forget("notes/b.md")
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


NONE = {"embedding": {"type": "none"}}


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("none", "does not remove the vectors.*`klaw config set memory.embedding.type none`, then `klaw index`"),
        ("counting", "no vectors to rebuild.*`klaw config set memory.embedding.type counting`, then `klaw index`"),
        ("counting:m", "no vectors.*type counting`, `klaw config set memory.embedding.model m`, then `klaw index`"),
    ],
)
def test_the_error_says_why_a_rebuild_neither_adds_nor_removes_vectors(home, check, named, told):
    home.write("a.md", "the kiln")
    with home.open(**({} if named == "none" else NONE)) as memory:
        memory.index(home.notes)
        with pytest.raises(ConfigError, match=told):
            memory.reindex(embedding=named)
    kind, _, model = named.partition(":")
    with home.open(embedding={"type": kind, **({"model": model} if model else {})}) as memory:
        memory.index()  # what the hint says
        assert bool(memory.search("kiln").notices) is False
        assert len(home.recorder.questions) == (kind != "none")
        if kind != "none":
            check(memory)


def test_an_index_without_vectors_is_rebuilt_without_an_embedder(home):
    home.write("a.md", "the kiln")
    with home.open(**NONE) as memory:
        memory.index(home.notes)
        for named in (None, "none"):
            assert memory.reindex(embedding=named).added == 1
            assert [result.path for result in memory.search("kiln")] == ["notes/a.md"]
    assert home.recorder.calls == 0


@pytest.mark.parametrize("configured", [True, False], ids=["vectors", "no vectors"])
@pytest.mark.parametrize("named", ["nope", "", "nope:model"])
def test_an_unknown_embedder_is_named_with_those_that_exist(home, named, configured):
    home.write("a.md", "the kiln")
    options = {} if configured else {"embedding": {"type": "none"}}
    with home.open(**options) as memory:
        memory.index(home.notes)
        with pytest.raises(PluginNotFoundError, match="no plugin provides the embedder") as caught:
            memory.reindex(embedding=named)
        assert "none" in caught.value.hint.split("installed: ")[1]
        assert memory.search("kiln", mode="fts")


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


def test_an_index_run_keeps_the_vectors_of_an_interrupted_reindex(home, check):
    if home.backend != "sqlite":
        pytest.skip("only there is a rebuild a file, and a memory of its own keeps nothing")
    for number in range(6):
        home.write(f"{number}.md", LONG.replace("word", f"file{number}word"))
    small = {"type": "markdown", "max_tokens": 60, "overlap_tokens": 0}
    with home.open(chunking=small) as memory:
        memory.index(home.notes)
    home.recorder.take()
    home.recorder.calls, home.recorder.fail_at = 0, 3
    with home.open(chunking=small, embedding={"type": "counting", "dimension": 16}) as memory:
        with pytest.raises(EmbeddingError):
            memory.reindex()
        first = home.recorder.take()
        home.recorder.fail_at = None
        home.write("new.md", "a lantern on the pier")
        memory.index()
        assert not list(memory.config.data_dir.glob("*rebuild*"))
        memory.reindex()
        check(memory)
        second = home.recorder.take()
    assert first
    assert second
    assert set(first) & set(second) <= {PROBE}, "nothing is embedded twice"


def test_reindex_rebuilds_an_index_that_lost_its_rows(home, memory, check):
    home.write("a.md", LONG)
    memory.index(home.notes)
    with memory._assembly.store.write() as transaction:
        for _, index in memory._assembly.indexes():
            index.reset(transaction.resource, "memory", transaction.space("memory").space)
    assert any("run `klaw index`" in problem for problem in memory.status().problems)
    memory.index()
    check(memory)
    assert memory.status().problems == ()


def test_orphaned_rows_of_an_index_are_removed_by_the_next_run(home, check):
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


def test_a_retriever_that_is_added_later_is_filled(home, check):
    home.write("a.md", LONG)
    vectors, words = home.retrievers
    with home.open(retrieval=[{"type": words}]) as memory:
        memory.index(home.notes)
        assert home.recorder.calls == 0, "no retriever needs vectors"
    with home.open() as memory:
        memory.index()
        check(memory)
        assert memory.search("word3 word3", mode="vector")
    assert vectors in home.retrievers


def test_changed_chunking_options_split_everything_again(home, check):
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


def test_reindex_keeps_the_documents_of_a_missing_workspace(home, memory, check):
    home.write("a.md", "in the first")
    memory.index(home.notes)
    home.notes.rename(home.root / "away")
    (skipped,) = memory.reindex().skipped
    assert (skipped.path, skipped.keep) == ("notes", True)
    assert "klaw forget notes/" in skipped.reason
    check(memory)
    assert paths(memory) == {"notes/a.md"}
    assert memory.search("first", mode="vector")


def test_reindex_with_another_model_embeds_the_documents_of_a_missing_workspace(home, memory, check):
    home.write("a.md", "in the first")
    memory.index(home.notes)
    home.notes.rename(home.root / "away")
    memory.reindex("counting:another")
    check(memory)
    assert memory.search("first", mode="vector")[0].path == "notes/a.md"


def test_a_document_of_a_missing_workspace_is_printed_from_the_index(home, memory):
    home.write("a.md", "in the first")
    memory.index(home.notes)
    home.notes.rename(home.root / "away")
    assert memory.get("notes/a.md").content == "in the first"
    assert "when it was last indexed" in memory.get("notes/a.md").notice
    with pytest.raises(NotFoundError):
        memory.get("notes/b.md")


class TestUnreadableSourcesDuringAReindex:
    """A link to itself can be seen and not read, like a file of another user's, whoever runs the test."""

    @pytest.fixture
    def memory(self, home, memory):
        home.write("a.md", "the harbour")
        home.write("sub/b.md", LONG)
        home.write("c.md", "the tide")
        memory.index(home.notes)
        for name in ("sub/b.md", "c.md"):
            (home.notes / name).unlink()
        (home.notes / "sub" / "b.md").symlink_to("b.md")
        return memory

    @pytest.mark.promise("D31")
    def test_chunks_of_an_unreadable_file_are_kept(self, home, memory, check, dump):
        report = memory.reindex()
        assert [(item.path, item.keep) for item in report.skipped] == [("notes/sub/b.md", True)]
        assert report.lacking == 0
        assert paths(memory) == {"notes/a.md", "notes/sub/b.md"}
        check(memory)
        assert memory.search("word3 word3", mode="vector")[0].path == "notes/sub/b.md"
        assert memory.index().skipped == report.skipped
        assert paths(memory) == {"notes/a.md", "notes/sub/b.md"}
        (home.notes / "sub" / "b.md").unlink()
        home.write("sub/b.md", LONG)
        assert counts(memory.index()) == (0, 1, 1, 0)
        before = dump(memory)
        memory.reindex()
        assert dump(memory) == before

    @pytest.mark.usefixtures("memory")
    def test_chunks_are_kept_in_another_vector_space(self, home, check):
        with home.open(embedding={"type": "counting", "model": "other"}) as other:
            other.reindex()
            assert paths(other) == {"notes/a.md", "notes/sub/b.md"}
            check(other)

    @pytest.mark.promise("D31")
    def test_documents_of_an_unreadable_directory_are_kept(self, memory, monkeypatch, check):
        scandir = os.scandir

        def refuse(place):
            if Path(place).name == "sub":
                raise PermissionError(errno.EACCES, "Permission denied")
            return scandir(place)

        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", refuse)
            report = memory.reindex()
        assert [item.path for item in report.skipped] == ["notes/sub"]
        assert paths(memory) == {"notes/a.md", "notes/sub/b.md"}
        check(memory)


def test_unreadable_documentation_keeps_its_version(home, memory):
    home.write("a.md", LONG)
    memory.index(home.notes, collection="docs", version="2.1")
    (home.notes / "a.md").unlink()
    (home.notes / "a.md").symlink_to("a.md")
    with memory._assembly.store.read() as snapshot:
        before = snapshot.outline("docs", "notes/a.md")
    memory.reindex()
    with memory._assembly.store.read() as snapshot:
        after = snapshot.outline("docs", "notes/a.md")
    assert [evolve(stored, key=0) for stored in after] == [evolve(stored, key=0) for stored in before]


def test_an_unreadable_conversation_keeps_its_chunks_and_messages(home, memory, monkeypatch, check, dump):
    chat = Chat("telegram", "1")
    for day, words in enumerate(["the lantern is blue", "the heron is grey"]):
        memory.conversations.append(Message("user", words, MOMENT + timedelta(days=day), meta=chat.meta))
    memory.index()

    def rows():
        with memory._assembly.store.read() as snapshot:
            return list(snapshot.messages.all(chat.name)), snapshot.messages.session(chat.name)

    before, everything = rows(), dump(memory)
    file = min((home.root / "data" / "conversations" / chat.name).iterdir())
    opened = os.open

    def refuse(path, *arguments, **options):
        if Path(path) == file:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        report = memory.reindex()
    path = f"conversations/{chat.name}/{file.name}"
    assert path in {item.path for item in report.skipped}
    assert memory.search("lantern", mode="fts")[0].path == path
    assert rows() == before
    check(memory)
    assert memory.index().skipped == ()
    assert rows() == before
    assert dump(memory) == everything
    assert memory.doctor().findings == ()
