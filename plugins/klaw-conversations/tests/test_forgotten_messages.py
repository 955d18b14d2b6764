"""A message that was forgotten is in no file of the data directory, whatever happens meanwhile; the others stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from forgotten import WORD, digests, left_behind

from klaw_conversations.journal import Journal
from klaw_conversations.row_sync import RowSync
from klaw_conversations.summaries import SummaryFiles
from klaw_core import EmbeddingError, NotFoundError
from klaw_journals import Chat, Message
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "1")


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


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


@pytest.mark.parametrize("reached", ["files", "rows"])
def test_a_chat_leaves_no_bytes_when_a_purge_is_repeated(home, reached):
    with home.open() as memory:
        memory.save("the harbour")
        memory.conversations.append(said(f"the secret is {WORD}"))
        memory.index()
        for file in memory.conversations.journal.files(CHAT).files:  # the purge before was interrupted here
            file.log.delete()
        if reached == "rows":
            with memory._assembly.store.write() as transaction:
                transaction.messages.purge(CHAT.name)
        memory.conversations.purge(CHAT)
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


@pytest.mark.promise("D46")
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


def test_a_chat_is_forgotten_with_its_summaries_as_the_error_of_a_day_says(home, check):
    """Removing the file of the day, as the error said, left the text in a summary, where a search found it."""
    with home.open() as memory:
        memory.conversations.append_many([said("the harbour", "one"), said(f"a secret: {WORD}", "two")])
        memory.conversations.add_summary(CHAT, f"of all: {WORD}", from_message_id="one", to_message_id="two")
        memory.conversations.add_summary(CHAT, f"of unknown messages: {WORD}")
        memory.index()
        with pytest.raises(NotFoundError) as told:
            memory.forget(f"conversations/telegram_1/{MOMENT.date()}.jsonl")
        assert "`klaw forget conversations/telegram_1/` the chat with its summaries" in told.value.hint
        assert memory.get("conversations/telegram_1/").content == f"the harbour\na secret: {WORD}"
        assert memory.forget("conversations/telegram_1/").paths == ("conversations/telegram_1/",)
        assert left_behind(home) == []
        check(memory)
        for target in ("conversations/telegram_1/", "conversations/", "conversations//", "telegram_1/"):
            with pytest.raises(NotFoundError):
                memory.forget(target)


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


@pytest.mark.promise("D47")
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
