"""What was forgotten is in no file: not as context of what was said next, not in what an interrupted rebuild left."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import Memory
from klaw_core.config.load import load_config
from klaw_core.indexing.backfill import Backfill
from klaw_journals.chats import Chat
from klaw_journals.messages import Message

END = b"ophonium"  # of the word: FTS5 shares the beginnings of neighbouring words
WORDS = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}
CHAT = Chat("telegram", "1")


@pytest.fixture
def memory(tmp_path):
    environment = {"KLAW_CONFIG": os.devnull}
    config = load_config(data_dir=tmp_path / "data", environment=environment, overrides={"memory": WORDS})
    with Memory.open(config) as opened:
        yield opened


def left_behind(memory):
    files = (path for path in memory.config.data_dir.rglob("*") if path.is_file())
    return sorted(path.name for path in files if END in path.read_bytes())


def say(memory, chat, *texts):
    start = datetime(2026, 2, 24, 10, tzinfo=UTC)
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        memory.conversations.append(Message(role, text, start + timedelta(minutes=number), meta=chat.meta))


def test_a_purged_chat_leaves_no_bytes_though_it_was_context_and_summary(memory):
    say(memory, Chat("telegram", "2"), "another chat altogether", "which stays")
    say(
        memory,
        CHAT,
        "where is the xylophonium kept",
        "It stands " + "in the long hall behind the harbour " * 30,
        "and when",
    )
    memory.conversations.add_summary(CHAT, "they spoke of the xylophonium")
    memory.index()
    assert any(b"ophonium" in result.context.encode() for result in memory.search("long hall harbour"))
    memory.conversations.purge(CHAT)
    assert left_behind(memory) == []
    assert memory.search("altogether")


@pytest.mark.promise("D9", "D40", "D45")
def test_what_an_interrupted_rebuild_left_holds_nothing_that_was_forgotten(memory, monkeypatch):
    path = memory.save("the secret is xylophonium").path
    memory.save("the harbour")

    def die(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Backfill, "fill", die)  # the last that is done before the new file takes its place
    with pytest.raises(KeyboardInterrupt):
        memory.reindex()
    monkeypatch.undo()
    assert any("rebuild" in name for name in left_behind(memory))
    memory.forget(path)
    assert left_behind(memory) == []
