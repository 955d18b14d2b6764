"""Messages leave the index, and only they: lines that a person deletes, and messages forgotten during an index run."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from klaw_conversations.extension import ConversationsExtension
from klaw_core.indexing.collection import Collection
from klaw_journals import Chat, Message

CHAT = Chat("telegram", "1")
# FTS5 shares the beginnings of neighbouring words: the end of the word is what must not be found.
WORD = "xylophonium"
END = b"ophonium"


@pytest.fixture
def home(make_home):
    return make_home("sqlite")


def said(number: int, text: str) -> Message:
    return Message("user", text, datetime(2026, 2, 24, 10, number, tzinfo=UTC), id=f"m{number}", meta=CHAT.meta)


def files(home):
    return [path for path in (home.root / "data").rglob("*") if path.is_file()]


def left_behind(home):
    return sorted(path.name for path in files(home) if END in path.read_bytes())


def delete_line(home, word):
    """Delete the lines with a word from the files of conversations, as an editor does."""
    for path in files(home):
        lines = path.read_bytes().splitlines(keepends=True) if path.suffix == ".jsonl" else []
        if any(word in line for line in lines):
            path.write_bytes(b"".join(line for line in lines if word not in line))


def check_vectors(memory):
    """Check that the cached vectors are those of the chunks."""
    with memory._assembly.store.read() as snapshot:
        cached = {row[0] for row in snapshot.resource.execute("SELECT hash FROM embedding_cache")}
        chunks = snapshot.chunks("memory", snapshot.keys("memory").tolist())
    assert cached == {bytes.fromhex(stored.chunk.embedding_hash) for stored in chunks}


def after_each_commit(monkeypatch, memory, look):
    original = memory._assembly.store.write

    @contextmanager
    def write():
        with original() as transaction:
            yield transaction
        look()

    monkeypatch.setattr(memory._assembly.store, "write", write)


# Long enough that each is a chunk.
REST = "and what else was to be seen there on that day, which was long and bright, until the lamps were lit"
TEXTS = [f"the {what} {REST}" for what in ("harbour", WORD, "gulls", "ferry")]


@pytest.mark.parametrize("then", ["append", "sync", "index", "fix"])
def test_the_other_messages_are_found_at_every_moment_after_a_line_was_deleted_by_hand(home, monkeypatch, check, then):
    found = []
    with home.open() as memory, home.open() as beside:
        memory.conversations.append_many(said(number, text) for number, text in enumerate(TEXTS))
        memory.index()
        after_each_commit(
            monkeypatch,
            memory,
            lambda: found.append([len(beside.search(word, mode="fts")) > 0 for word in ("harbour", "gulls", "ferry")]),
        )
        delete_line(home, WORD.encode())
        home.recorder.take()
        if then == "append":
            memory.conversations.append(said(9, "the tide"))
        elif then == "sync":
            memory.conversations.sync()
        elif then == "index":
            memory.index()
        else:
            memory.doctor(fix=True)
        assert found
        assert all(map(all, found))
        assert not memory.search(WORD, mode="fts")
        assert left_behind(home) == []
        memory.index()
        asked = [text for call in home.recorder.take() for text in call]
        assert not any("harbour" in text for text in asked), "its vector was kept"
        check_vectors(memory)
        check(memory)


def test_one_of_two_summaries_of_the_same_moment_is_deleted_by_hand(home, check):
    moment = datetime(2026, 2, 24, 12, tzinfo=UTC)
    with home.open() as memory:
        memory.conversations.append(said(0, "the harbour"))
        for text in (f"of {WORD}", "of the gulls"):
            memory.conversations.add_summary(CHAT, text, from_message_id="m0", to_message_id="m0", created_at=moment)
        # The index has only the second one, which replaces the first; the rows have both.
        memory.index()
        delete_line(home, b"gulls")
        memory.conversations.sync()
        assert not memory.search("gulls", mode="fts")
        memory.index()
        delete_line(home, WORD.encode())
        memory.conversations.sync()
        assert left_behind(home) == []
        assert not memory.search(WORD, mode="fts")
        memory.index()
        check_vectors(memory)
        check(memory)


def test_a_day_whose_only_message_was_forgotten_is_not_reported(home, check):
    with home.open() as memory:
        memory.conversations.append(said(0, TEXTS[1]))
        memory.index()
        memory.conversations.forget(CHAT, "m0")
        assert not list((home.root / "data").rglob("summaries.jsonl"))
        assert not list((home.root / "data" / "conversations").rglob("*.jsonl")), "nor an empty one for each day"
        for _ in range(2):
            report = memory.index()
            assert (report.skipped, report.removed) == ((), 0)
        check(memory)


class TestForgottenWhileTheDayIsReadForTheFirstTime:
    """One process indexes a day that is new to the index; another forgets a message after the first has read it."""

    @pytest.fixture(params=["alone", "with others"])
    def texts(self, request):
        return [TEXTS[1]] if request.param == "alone" else TEXTS

    def write_late(self, monkeypatch, when):
        """Let ``when(write)`` happen where the first process writes what it has read; ``write()`` does that."""
        original, pending = Collection.replace, [True]

        def replace(self, *arguments, **options):
            if not pending:
                return original(self, *arguments, **options)
            pending.clear()
            return when(lambda: original(self, *arguments, **options))

        monkeypatch.setattr(Collection, "replace", replace)

    def forgotten(self, home, check, memory):
        assert not memory.search(WORD, mode="fts")
        assert left_behind(home) == []
        check_vectors(memory)
        check(memory)

    def test_before_the_day_is_written(self, home, monkeypatch, check, texts):
        with home.open() as memory, home.open() as beside:
            memory.conversations.append_many(said(number, text) for number, text in enumerate(texts))

            def when(write):
                beside.conversations.forget(CHAT, f"m{texts.index(TEXTS[1])}")
                return write()

            self.write_late(monkeypatch, when)
            memory.index()
            assert [bool(memory.search("gulls", mode="fts"))] == [len(texts) > 1]
            self.forgotten(home, check, memory)

    def test_between_the_removal_from_the_index_and_the_next_run(self, home, monkeypatch, check, texts):
        with home.open() as memory, home.open() as beside:
            memory.conversations.append_many(said(number, text) for number, text in enumerate(texts))
            index = ConversationsExtension._index

            def when(write):
                written = []

                def finish(extension):
                    written.append(write())
                    index(extension)

                monkeypatch.setattr(ConversationsExtension, "_index", finish)
                beside.conversations.forget(CHAT, f"m{texts.index(TEXTS[1])}")
                return written[0]

            self.write_late(monkeypatch, when)
            memory.index()
            self.forgotten(home, check, memory)
