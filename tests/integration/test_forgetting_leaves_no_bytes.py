"""What was forgotten is in no file of the data directory: not in rows, words, vectors, the log or a journal."""

from __future__ import annotations

from pathlib import Path

import apsw
import numpy as np
import pytest
from forgotten import WORD, database, digests, left_behind

from klaw_core import Chat, EmbeddingError, Index, Message, NewDocument, PluginError
from klaw_core.values.text import text_hash
from klaw_fts5.index import Fts5Index
from klaw_store_sqlitevec.unused_space import clear_unused_space
from klaw_testing.values import MOMENT


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def others(memory, count: int) -> list[str]:
    return [memory.save(f"the harbour of day {number} and its gulls").path for number in range(count)]


@pytest.mark.promise("D9", "D44", "S4")
@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("after", [0, 3])
def test_a_saved_memory_leaves_no_bytes(home, check, before, after):
    with home.open() as memory:
        others(memory, before)
        path = memory.save(f"the secret is {WORD}").path
        others(memory, before + after)
        assert left_behind(home), "it was there"
        memory.forget(path)
        assert left_behind(home) == []
        check(memory)
    assert left_behind(home) == []


def save(_home, memory, text: str) -> str:
    return memory.save(text).path


def append(_home, memory, text: str) -> str:
    chat = Chat("telegram", "1")
    return f"{chat.name}/{memory.conversations.append(Message('user', text, MOMENT, meta=chat.meta)).id}"


def add(_home, memory, text: str) -> str:
    memory.add([NewDocument("one", text)])
    return "documents/one"


def note(home, _memory, text: str) -> str:
    return f"notes/{home.write(f'{text[11]}.md', text).name}"


def workspace(_home, _memory, _text: str) -> str:
    return "notes/"


@pytest.mark.parametrize("make", [save, append, add, note, workspace])
def test_each_forgetting_reads_the_database_once_to_clear_it(home, monkeypatch, make):
    """It has several transactions, and the file may be large."""
    scans: list[object] = []

    def scan(path: Path) -> int:
        scans.append(path)
        return clear_unused_space(path)

    monkeypatch.setattr("klaw_store_sqlitevec.unused_space.clear_unused_space", scan)
    with home.open() as memory:
        home.write("b.md", "The gulls of the harbour.")
        for number in range(3):
            target = make(home, memory, f"the secret {number} is {WORD}")
            memory.index(home.notes)
            scans.clear()
            memory.forget(target)
            assert scans == [home.root / "data" / "klaw.db"]
            if not target.endswith("/"):
                assert left_behind(home) == []


@pytest.mark.promise("D53")
def test_what_a_reader_of_an_older_state_delays_is_said_and_done_with_the_next_change(home):
    with home.open() as memory:
        path = memory.save(f"the secret is {WORD}").path
        reader = apsw.Connection(str(home.root / "data" / "klaw.db"))
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM documents").fetchall()
        others(memory, 1)
        memory.forget(path)
        assert "another program" in memory.erases_later
        reader.close()
        others(memory, 1)
        assert memory.erases_later == ""
        assert left_behind(home) == []


@pytest.mark.promise("D9")
def test_the_vector_of_a_memory_leaves_no_bytes(home):
    text = f"the secret is {WORD}"
    with home.open() as memory:
        others(memory, 3)
        path = memory.save(text).path
        with memory._assembly.store.read() as snapshot:
            space = memory._assembly.embedder.space
            vector = snapshot.cached_vectors(space, [text_hash(text)])[text_hash(text)]
        half = np.asarray(vector, "<f2").tobytes()  # as the cache keeps it
        assert half in database(home), "it was there"
        memory.forget(path)
    assert half not in database(home)
    assert np.asarray(vector, "<f4").tobytes() not in database(home)


def test_a_memory_leaves_no_bytes_after_the_index_was_merged(home):
    with home.open() as memory:
        path = memory.save(f"the secret is {WORD}").path
        kept, *rest = others(memory, 3)
        memory.forget(rest[0])  # merges
        memory.forget(path)
        assert left_behind(home) == []
        assert memory.get(kept).content.startswith("the harbour")


def test_a_note_and_a_workspace_leave_no_bytes(home, check):
    note = home.write("a.md", f"# One\n\nthe secret is {WORD}")
    home.write("b.md", "the harbour")
    with home.open() as memory:
        memory.index(home.notes)
        memory.forget("notes/a.md")
        assert left_behind(home) == []
        check(memory)
        home.write("b.md", note.read_text())
        memory.index()
        assert left_behind(home)
        memory.forget("notes/")
        assert left_behind(home) == []


def test_the_index_erases_in_the_transaction_that_removes(home, monkeypatch):
    with home.open() as memory:
        path = memory.save(f"the secret is {WORD}").path

        def fail(*_arguments):
            raise RuntimeError

        monkeypatch.setattr(Fts5Index, "erase", fail)
        with pytest.raises(PluginError, match="RuntimeError"):
            memory.forget(path)
        with memory._assembly.store.read() as snapshot:
            assert len(snapshot.outline("memory", path)) == 1


def test_the_full_text_index_erases():
    assert Fts5Index.erase is not Index.erase


CHAT = Chat("telegram", "1")


def said(text, name=""):
    return Message("user", text, MOMENT, id=name, meta=CHAT.meta)


def moving(home, during, texts):
    """Return a component of another model; ``during`` is called while it embeds, and then it fails."""
    other = home.component("other", "other-model")

    def factory(options, place):
        embedder = other.factory(options, place)

        class Stalling(type(embedder)):
            def embed_documents(self, given, /):
                if any(text in given for text in texts):
                    during()
                return super().embed_documents(given)

        return Stalling(embedder.options, embedder.recorder, embedder.name)

    return other.__class__(other.name, other.options, factory, other.api)


@pytest.mark.parametrize("kind", ["saved", "note", "message", "chat", "document"])
def test_a_text_forgotten_during_a_reindex_leaves_the_cache(home, kind):
    """A run that had read the text before must not put its vector, and its hash, into the cache after."""
    from klaw_core import NewDocument

    text = f"the secret is {WORD}"
    home.write("a.md", text if kind == "note" else "nothing here")
    done = []

    def forget():
        if done:
            return
        done.append(True)
        with home.open() as beside:
            target = {"saved": path, "note": "notes/a.md", "message": "telegram_1/one"}.get(kind)
            if target is not None:
                beside.forget(target)
            elif kind == "chat":
                beside.conversations.purge(CHAT)
            else:
                beside.delete(["one"])

    with home.open() as memory:
        memory.index(home.notes)
        path = memory.save(text if kind == "saved" else "something else").path
        if kind in {"message", "chat"}:
            memory.conversations.append(said(text, "one"))
        if kind == "document":
            memory.add([NewDocument("one", text)])
        memory.index()
        with memory._assembly.store.read() as snapshot:
            stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
        (embedded,) = (item.chunk.embedding_text for item in stored if WORD in item.chunk.text)
        assert digests(home, embedded)
    home.extra.append(("embedder", moving(home, forget, [embedded])))
    with home.open(embedding={"type": "other"}) as memory:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(memory._assembly.store), "rebuild", _killed)
            with pytest.raises(EmbeddingError, match="killed"):
                memory.reindex()
        assert done
        assert digests(home, embedded) == set()
        assert left_behind(home) == []


def _killed(_store):
    raise EmbeddingError("killed")


def test_vectors_cached_by_a_killed_reindex_are_removed_with_the_text(home):
    """The other model counts tokens otherwise, so that its chunks are not those of the index."""
    sentences = [f"Sentence {number} about the {WORD}." for number in range(60)]
    with home.open() as memory:
        path = memory.save("\n\n".join(sentences)).path
        kept = memory.save("\n\n".join(f"The harbour of day {number}." for number in range(60))).path
        first = {item.chunk.embedding_text for item in chunks_of(memory, path)}
    greedy = home.component("other", "other-model")

    def factory(options, place):
        embedder = greedy.factory(options, place)

        class Greedy(type(embedder)):
            def count_tokens(self, texts, /):
                return [7 * count for count in super().count_tokens(texts)]

        return Greedy(embedder.options, embedder.recorder, embedder.name)

    home.extra.append(("embedder", greedy.__class__(greedy.name, greedy.options, factory, greedy.api)))
    with home.open(embedding={"type": "other"}) as memory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(memory._assembly.store), "rebuild", _killed)
        with pytest.raises(EmbeddingError, match="killed"):
            memory.reindex()
    cached = cached_hashes(home)
    with home.open() as memory:
        memory.forget(path)
        left = cached_hashes(home)
        assert first.isdisjoint(digests(home, *first))
        others = {text_hash(item.chunk.embedding_text) for item in chunks_of(memory, kept)}
    gone = cached - left
    assert len(gone) > 2 * len(first), "its chunks in the space to come are smaller, and more"
    assert others <= left
    with home.open(embedding={"type": "other"}) as memory:
        memory.reindex()


def chunks_of(memory, path):
    with memory._assembly.store.read() as snapshot:
        return snapshot.outline("memory", path)


def cached_hashes(home):
    import apsw

    connection = apsw.Connection(str(home.root / "data" / "klaw.db"))
    try:
        return {digest.hex() for (digest,) in connection.execute("SELECT hash FROM embedding_cache")}
    finally:
        connection.close()
