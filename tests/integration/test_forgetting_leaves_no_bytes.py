"""What was forgotten is in no file of the data directory: not in rows, words, vectors, the log or a journal."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from klaw_conversations.journal import Journal
from klaw_conversations.row_sync import RowSync
from klaw_conversations.summaries import SummaryFiles
from klaw_core import Chat, EmbeddingError, Index, Message, NotFoundError, PluginError
from klaw_core.values.text import text_hash
from klaw_fts5.index import Fts5Index
from klaw_testing.values import MOMENT

# FTS5 shares the beginnings of neighbouring words: the end of the word is what must not be found.
WORD = "xylophonium"
END = b"ophonium"


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def left_behind(home) -> list[str]:
    """Return the files that hold the word."""
    files = (path for path in (home.root / "data").rglob("*") if path.is_file())
    return sorted(path.name for path in files if END in path.read_bytes())


def database(home) -> bytes:
    return b"".join(path.read_bytes() for path in (home.root / "data").rglob("klaw.db*"))


def others(memory, count: int) -> list[str]:
    return [memory.save(f"the harbour of day {number} and its gulls").path for number in range(count)]


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


@pytest.mark.parametrize("indexed", [False, True])
def test_a_chat_leaves_no_bytes(home, indexed):
    """Also one that was never indexed, of which there are rows and no chunks."""
    with home.open() as memory:
        memory.save("the harbour")
        memory.conversations.append(said(f"the secret is {WORD}"))
        if indexed:
            memory.index()
        assert left_behind(home), "it was there"
        memory.conversations.purge(CHAT)
        assert left_behind(home) == []
    assert left_behind(home) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_a_chat_leaves_no_bytes_in_what_an_interrupted_rebuild_left(home, indexed):
    with home.open() as memory:
        memory.save("the harbour")
        memory.conversations.append(said(f"the secret is {WORD}"))
        if indexed:
            memory.index()
        store = memory._assembly.store
        with pytest.raises(EmbeddingError):
            interrupt_rebuild(store)
        assert any("rebuild" in name for name in left_behind(home)), "it was there"
        memory.conversations.purge(CHAT)
        assert left_behind(home) == []


def interrupt_rebuild(store):
    with store.rebuild() as fresh:
        with fresh.write() as transaction, store.read() as snapshot:
            transaction.messages.insert(snapshot.messages.all(CHAT.name))
        raise EmbeddingError("killed")


@pytest.mark.parametrize("way", ["forget", "conversations", "remove"])
def test_a_message_leaves_no_bytes(home, check, way):
    with home.open() as memory:
        memory.conversations.append_many([said("the harbour", "one"), said(f"a secret: {WORD}", "two")])
        memory.conversations.append(said("the gulls", "three"))
        memory.index()
        assert memory.get("telegram_1/two").content == f"a secret: {WORD}"
        if way == "forget":
            assert memory.forget("telegram_1/two").paths == ("telegram_1/two",)
        elif way == "conversations":
            assert memory.conversations.forget(CHAT, "two") == 1
        else:
            assert memory.conversations.remove(CHAT, ["two"]) == 1
        assert left_behind(home) == []
        assert [line.message.content for line in memory.conversations.read(CHAT)] == ["the harbour", "the gulls"]
        assert [row.content for row in memory.conversations.search("harbour gulls secret")] != []
        assert memory.search("gulls", mode="fts")
        check(memory)
        for target in ("telegram_1/two", "telegram_1/unknown", "telegram_2/one", "telegram_1/"):
            with pytest.raises(NotFoundError):
                memory.forget(target)
        with pytest.raises(NotFoundError, match="no message 'two'"):
            memory.conversations.forget(CHAT, ["one", "two"])
        assert len(list(memory.conversations.read(CHAT))) == 2
    assert left_behind(home) == []


def test_forgetting_a_message_removes_its_summaries(home, check):
    with home.open() as memory:
        memory.conversations.append_many([said("the harbour", "one"), said(f"a secret: {WORD}", "two")])
        memory.conversations.append_many([said("the gulls", "three"), said("the ferry", "four")])
        add = memory.conversations.add_summary
        add(CHAT, "of the harbour", from_message_id="one", to_message_id="one")
        add(CHAT, f"of harbour and {WORD}", from_message_id="one", to_message_id="three")
        add(CHAT, f"of all until now: {WORD}", to_message_id="four")
        add(CHAT, "of the gulls", from_message_id="three", to_message_id="four")
        add(CHAT, "of nothing in particular")
        memory.index()
        assert memory.search(WORD, mode="fts")
        memory.forget("telegram_1/two")
        assert left_behind(home) == []
        kept = ["of the harbour", "of the gulls", "of nothing in particular"]
        assert [summary.content for summary in memory.conversations.summaries(CHAT)] == kept
        memory.index()
        check(memory)
    assert left_behind(home) == []


class _KilledError(BaseException):
    """Ends a step where a process may be killed."""


@pytest.mark.parametrize("then", ["index", "append", "sync", "reindex"])
@pytest.mark.parametrize(
    "step", ["SummaryFiles.forget", "Journal.remove", "RowSync.mirror_again", "RowSync._replace_rows"]
)
def test_a_message_whose_forgetting_was_interrupted_leaves_no_bytes_after_the_next_index(home, check, step, then):
    """Killed before or after a step, the message is still there as a whole, or the next index removes the rest."""
    owner, name = step.split(".")
    kind = {"SummaryFiles": SummaryFiles, "Journal": Journal, "RowSync": RowSync}[owner]
    for when in ("before", "after"):
        with home.open() as memory:
            chat = Chat("telegram", when)
            memory.conversations.append_many(
                Message("user", text, MOMENT, id=name, meta=chat.meta)
                for name, text in (("one", "the harbour"), ("two", f"a secret: {WORD}"), ("three", "the gulls"))
            )
            memory.conversations.add_summary(chat, f"of {WORD}", from_message_id="two", to_message_id="two")
            memory.index()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(kind, name, killed(getattr(kind, name), when))
                with pytest.raises(_KilledError):
                    memory.conversations.forget(chat, "two")
        with home.open() as memory:
            if then == "append":
                memory.conversations.append(Message("user", "the ferry", MOMENT, meta=chat.meta))
            elif then == "sync":
                memory.conversations.sync()
            elif then == "reindex":
                memory.reindex()
            memory.index()
            if memory.conversations.find(chat, "two") is not None:
                memory.conversations.forget(chat, "two")
            assert left_behind(home) == []
            assert memory.search("gulls", mode="fts")
            check(memory)
            assert memory.doctor().findings == ()


def killed(work, when):
    def wrapped(*arguments):
        if when == "after":
            work(*arguments)
        raise _KilledError

    return wrapped


def _forget_one(beside, chat):
    beside.conversations.forget(chat, "one")


def _forget_on_another_day(beside, chat):
    beside.conversations.forget(chat, "four")


def _index(beside, _chat):
    beside.index()


def _fix(beside, _chat):
    beside.doctor(fix=True)


def _remove_line(beside, chat):
    """Do what a process has done that is killed in the middle."""
    beside.conversations.journal.remove(chat, ["four"])


def before(patch, kind, method, action):
    """Let ``action`` happen once, before the next call of a method."""
    original, pending = getattr(kind, method), [action]

    def call(*arguments):
        if pending:
            pending.pop()()
        return original(*arguments)

    patch.setattr(kind, method, call)


def _die():
    raise _KilledError


@pytest.fixture
def chatting(home):
    """Two memories with a chat of two days, and a function that returns which vectors of a text are left."""
    with home.open() as memory, home.open() as beside:
        texts = {
            "one": "the harbour",
            "two": f"a secret: {WORD}",
            "three": "the gulls",
            "four": "the ferry",
            "five": "the tide",
        }
        memory.conversations.append_many(
            Message("user", text, MOMENT + timedelta(days=name in {"four", "five"}), id=name, meta=CHAT.meta)
            for name, text in texts.items()
        )
        memory.conversations.add_summary(CHAT, f"of {WORD}", from_message_id="two", to_message_id="two")
        memory.index()
        with memory._assembly.store.read() as snapshot:
            stored = snapshot.chunks("memory", snapshot.keys("memory").tolist())
        embedded = [item.chunk.embedding_text for item in stored]

        def vectors(text):
            return digests(home, *(one for one in embedded if text in one))

        assert vectors(WORD)
        assert vectors("ferry")
        yield memory, beside, home, vectors


@pytest.mark.parametrize("step", ["first", "last"])
@pytest.mark.parametrize("act", [_forget_one, _forget_on_another_day, _index, _fix])
def test_a_forgetting_that_was_overtaken_and_then_killed_leaves_no_bytes_after_the_next_index(
    monkeypatch, chatting, check, act, step
):
    """Another process forgets, indexes or repairs before a step of it; it is killed when the line has left the file."""
    memory, beside, home, vectors = chatting

    def overtake():
        act(beside, CHAT)
        before(monkeypatch, RowSync, "mirror_again", _die)

    if step == "first":
        before(monkeypatch, Journal, "remove", overtake)
    else:
        before(monkeypatch, RowSync, "mirror_again", lambda: (act(beside, CHAT), _die()))
    with pytest.raises(_KilledError):
        memory.conversations.forget(CHAT, "two")
    beside.index()
    assert left_behind(home) == []
    assert vectors(WORD) == set()
    assert beside.search("gulls", mode="fts")
    check(beside)
    assert beside.doctor().findings == ()


def test_a_message_is_forgotten_whole_beside_a_damaged_line_of_the_same_day(chatting):
    memory, _beside, home, vectors = chatting
    (file,) = (
        path
        for path in (home.root / "data").rglob("*.jsonl")
        if WORD.encode() in path.read_bytes()[:2000] and "summar" not in path.name
    )
    file.write_bytes(file.read_bytes().replace(b'"three"', b'"thr\x01e"'))
    memory.index()
    assert vectors(WORD)
    memory.conversations.forget(CHAT, "two")
    assert vectors(WORD) == set()
    assert left_behind(home) == []


def test_a_message_that_leaves_the_file_while_another_is_forgotten_leaves_no_vector(monkeypatch, chatting, check):
    """The process that removed its line is killed; the other one makes the rows again, and forgets it too."""
    memory, beside, _home, vectors = chatting
    meanwhile(monkeypatch, lambda: _remove_line(beside, CHAT))
    memory.conversations.forget(CHAT, "two")
    assert vectors("ferry") == set()
    memory.index()
    assert not memory.search("ferry", mode="fts")
    assert memory.search("tide", mode="fts")
    check(memory)


def test_a_summary_that_was_forgotten_does_not_come_back_with_one_that_is_added(monkeypatch, chatting):
    memory, beside, home, _vectors = chatting
    write = memory._assembly.store.write
    pending = [lambda: beside.conversations.forget(CHAT, "two")]

    def begin():
        if pending:
            pending.pop()()
        return write()

    monkeypatch.setattr(memory._assembly.store, "write", begin)
    memory.conversations.add_summary(CHAT, "of the gulls")
    assert not pending
    with memory._assembly.store.read() as snapshot:
        assert [summary.content for summary in snapshot.messages.summaries(CHAT.name)] == ["of the gulls"]
    assert left_behind(home) == []


@pytest.mark.parametrize("way", ["forget", "purge"])
def test_a_message_that_is_removed_before_its_row_is_written_gets_none(home, monkeypatch, way):
    with home.open() as memory, home.open() as beside:
        memory.save("something else")

        def remove():
            if way == "forget":
                beside.conversations.forget(CHAT, "one")
            else:
                beside.conversations.purge(CHAT)

        before(monkeypatch, RowSync, "_write", remove)
        memory.conversations.append(said(f"a secret: {WORD}", "one"))
        assert not memory.conversations.search("secret")
        assert left_behind(home) == []


def test_the_other_messages_are_there_while_one_is_forgotten(home, monkeypatch):
    """A regression: its chat had no rows for a moment, and after a crash until the next index."""
    found = []
    with home.open() as memory, home.open() as beside:
        memory.conversations.append_many([said(f"harbour {number}", f"m{number}") for number in range(5)])
        memory.index()
        batches = RowSync._batches

        def looked(*arguments):
            found.append(len(beside.conversations.search("harbour")))
            return batches(*arguments)

        monkeypatch.setattr(RowSync, "_batches", looked)
        memory.conversations.forget(CHAT, "m2")
        assert found
        assert set(found) == {5}
        assert len(beside.conversations.search("harbour")) == 4


def meanwhile(monkeypatch, action):
    """Let ``action`` happen once, while the files of a chat are read to make its rows again."""
    row, pending = RowSync.row, [action]

    def read(*arguments):
        if pending:
            pending.pop()()
        return row(*arguments)

    monkeypatch.setattr(RowSync, "row", read)


def contents(memory):
    with memory._assembly.store.read() as snapshot:
        return [message.content for message in snapshot.messages.all(CHAT.name)]


def test_others_can_write_while_the_messages_of_a_chat_are_read_again(home, monkeypatch):
    with home.open() as memory, home.open() as beside:
        memory.conversations.append_many([said(f"harbour {number}", f"m{number}") for number in range(5)])
        memory.index()
        saved = []
        meanwhile(monkeypatch, lambda: saved.append(beside.save("a lantern on the pier")))
        memory.conversations.forget(CHAT, "m2")
        assert saved[0].notice == "", "it was not locked out"
        assert beside.search("lantern", mode="fts")
        assert contents(memory) == [f"harbour {number}" for number in (0, 1, 3, 4)]


def _say(beside, _home):
    beside.conversations.append(said("harbour 9", "m9"))


def _say_on_another_day(beside, _home):
    beside.conversations.append(Message("user", "harbour 9", MOMENT + timedelta(days=1), id="m9", meta=CHAT.meta))


def _forget(beside, _home):
    beside.conversations.forget(CHAT, "m1")


def _edit(_beside, home):
    (path,) = (home.root / "data" / "conversations" / CHAT.name).iterdir()
    path.write_text(path.read_text().replace("harbour 4", "harbour 8"))


def _purge(beside, _home):
    beside.conversations.purge(CHAT)


@pytest.mark.parametrize(
    ("act", "left"),
    [(_say, "01349"), (_say_on_another_day, "01349"), (_forget, "034"), (_edit, "0138"), (_purge, "")],
)
def test_what_happens_to_a_chat_while_its_messages_are_read_again_is_in_its_rows(home, monkeypatch, check, act, left):
    with home.open() as memory, home.open() as beside:
        memory.conversations.append_many([said(f"harbour {number}", f"m{number}") for number in range(5)])
        memory.index()
        meanwhile(monkeypatch, lambda: act(beside, home))
        memory.conversations.forget(CHAT, "m2")
        assert contents(memory) == [f"harbour {number}" for number in left]
        memory.index()
        assert contents(memory) == [f"harbour {number}" for number in left]
        assert memory.doctor().findings == ()
        check(memory)


@pytest.mark.parametrize("others", [0, 1, 40])
def test_only_the_words_of_a_purged_chat_are_removed(home, check, others):
    """With few others the index of words is made again; with many, its entries are deleted one by one."""
    other = Chat("telegram", "other")
    with home.open() as memory:
        memory.conversations.append_many([said("the harbour", "one"), said(f"a secret: {WORD}", "two")])
        memory.conversations.append_many(
            Message("user", f"gulls {number}", MOMENT, id=f"g{number}", meta=other.meta) for number in range(others)
        )
        memory.index()
        memory.conversations.purge(CHAT)
        assert left_behind(home) == []
        assert not memory.conversations.search("harbour")
        assert len(memory.conversations.search("gulls", others + 1)) == others
        assert memory.doctor().findings == ()
        check(memory)


def digests(home, *texts):
    """Return which of these texts the database still has the hash of."""
    found = database(home)
    return {text for text in texts if bytes.fromhex(text_hash(text)) in found}


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
