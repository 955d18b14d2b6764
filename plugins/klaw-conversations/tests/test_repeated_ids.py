"""A writer that numbers its messages by day: every message is kept, named and found, and everybody says so."""

import re
import shlex
from datetime import UTC, datetime, timedelta

import pytest

from klaw_conversations import HistoryStore, JournalEntry
from klaw_core import NotFoundError, QueryError
from klaw_journals import Chat, Message
from klaw_testing.messages import message_dump

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "123456")
WORDS = ("kiln", "walrus", "ferry")


def numbered(days, content, *, minutes=0, number="msg_001"):
    return Message("user", content, NOON + timedelta(days, minutes=minutes), number, meta=CHAT.meta)


#: Two messages of the first day and one of the second, all with one id; and the first one again.
SAID = (
    numbered(0, "the kiln is hot"),
    numbered(0, "the walrus sleeps", minutes=1),
    numbered(1, "the ferry leaves"),
    numbered(0, "the kiln is hot"),
)


@pytest.fixture
def names(memory):
    """Append the messages, and return their names by the word that only they have."""
    given = memory.conversations.append_many(SAID)
    assert given[3] == given[0], "an equal message is the same message"
    assert given[0].id == "msg_001"
    return {word: message.id for word, message in zip(WORDS, given, strict=False)}


def rows(memory):
    with memory._assembly.store.read() as snapshot:
        return message_dump(snapshot.messages)


def found(memory, word):
    return [result.content for result in memory.search(word, mode="fts") if word in result.content]


def test_every_reader_has_every_message_once_and_under_one_name(memory, names):
    memory.index()
    conversations = memory.conversations
    assert len(set(names.values())) == 3
    expected = [(names[word], message.content) for word, message in zip(WORDS, SAID, strict=False)]

    def seen(messages):
        return [(message.id, message.content) for message in messages]

    history = HistoryStore(conversations)
    assert seen(conversations.window(CHAT)) == seen(history.all("telegram:123456")) == expected
    assert seen(history.recent("telegram:123456")) == expected
    entries = [line for line in conversations.read(CHAT) if isinstance(line, JournalEntry)]
    assert seen(line.message for line in entries if not line.duplicate) == expected
    assert [line.message for line in conversations.tail(CHAT, 9)] == [line.message for line in entries]
    assert seen([line.message for line in conversations.tail(CHAT, 1)]) == expected[2:]
    for word, message in zip(WORDS, SAID, strict=False):
        assert seen(conversations.search(word)) == [(names[word], message.content)]
        assert conversations.find(CHAT, names[word]).content == message.content
        assert memory.get(f"{CHAT.name}/{names[word]}").content == message.content
        assert found(memory, word)


def test_an_index_run_and_the_doctor_name_them(memory):
    for message in SAID:
        memory.conversations.journal.append(message)
    report = memory.index()
    reasons = [item.reason for item in report.skipped]
    assert len(reasons) == 2, "one for each file"
    assert all("an id that another message of the chat has: 'msg_001' is called msg_001~" in each for each in reasons)
    assert memory.index().skipped == ()
    (finding,) = [item for item in memory.doctor().findings if item.check == "conversation-ids"]
    assert finding.severity == "warning"
    assert len(finding.items) == 2
    assert "2 messages have an id that another message of the chat has" in finding.what
    assert memory.doctor().healthy


def test_a_rebuild_gives_the_same_rows(memory, names):
    memory.index()
    before = rows(memory)
    memory.reindex()
    assert rows(memory) == before
    assert all(found(memory, word) for word in names)
    assert not [item for item in memory.doctor().findings if item.severity == "error"]


@pytest.mark.parametrize("gone", WORDS)
def test_one_message_is_forgotten_by_its_name_and_the_others_stay(memory, names, gone):
    memory.index()
    name = names[gone]
    if name == "msg_001":
        with pytest.raises(QueryError, match="3 messages of telegram_123456 have the id 'msg_001'") as refused:
            memory.forget(f"{CHAT.name}/{name}")
        commands = [shlex.split(part)[-1] for part in re.findall("`(klaw forget [^`]+)`", refused.value.hint)]
        assert len(commands) == 3
        name = commands[0].removeprefix(f"{CHAT.name}/")
        assert memory.conversations.find(CHAT, name).content == "the kiln is hot"
    report = memory.forget(f"{CHAT.name}/{name}")
    assert report.paths == (f"{CHAT.name}/{names[gone]}",)
    for word, message in zip(WORDS, SAID, strict=False):
        assert bool(found(memory, word)) == bool(memory.conversations.search(word)) == (word != gone), word
        if word not in {gone, "kiln"}:
            assert memory.conversations.find(CHAT, names[word]).content == message.content, "the long name stays"
    with pytest.raises(NotFoundError):  # again: no other message has this name now
        memory.conversations.forget(CHAT, name)
    memory.index()
    assert not [item for item in memory.doctor().findings if item.severity == "error"]
    before = rows(memory)
    memory.reindex()
    assert rows(memory) == before


@pytest.mark.usefixtures("names")
def test_removing_messages_by_name_takes_no_other_message_with_the_id(memory):
    memory.index()
    assert memory.conversations.remove(CHAT, ["msg_001"]) == 1
    assert [message.content for message in memory.conversations.window(CHAT)] == [SAID[1].content, SAID[2].content]
    assert not found(memory, "kiln")
    assert found(memory, "walrus")
    assert found(memory, "ferry")


def test_an_export_carries_every_message_as_it_was_written(memory, names, make_home, home, tmp_path):
    memory.export(tmp_path / "export.jsonl")
    other = make_home(home.backend if home.backend != "postgres" else "sqlite")
    with other.open() as second:
        second.import_(tmp_path / "export.jsonl")
        second.index()
        assert {
            word: message.id for word, message in zip(WORDS, second.conversations.window(CHAT), strict=True)
        } == names
        assert second.import_(tmp_path / "export.jsonl").added == {}
        second.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "export.jsonl").read_bytes()


def test_an_earlier_day_that_arrives_later_takes_the_id(memory):
    """What was written first in the chat is called by the id, whichever was read first."""
    later = memory.conversations.append(numbered(1, "the ferry leaves"))
    assert later.id == "msg_001"
    earlier = memory.conversations.append(numbered(0, "the kiln is hot"))
    assert earlier.id == "msg_001"
    ferry, kiln = (memory.conversations.search(word)[0] for word in ("ferry", "kiln"))
    assert (kiln.id, ferry.id.startswith("msg_001~")) == ("msg_001", True)
    before = rows(memory)
    memory.index()
    assert rows(memory) == before
    assert found(memory, "ferry")
    assert found(memory, "kiln")


def test_rows_of_an_earlier_version_are_made_again(memory, home, monkeypatch):
    """They lack messages whose id was used before."""
    if home.backend == "postgres":
        pytest.skip("the same code")
    from klaw_conversations import row_sync

    with monkeypatch.context() as earlier:
        earlier.setattr(row_sync.RowSync, "recipe", property(lambda self: self.redactor.recipe))
        earlier.setattr("klaw_conversations.names.Names.name", lambda _self, message, _place: message.id)
        memory.conversations.append_many(SAID)
        memory.index()
        assert len(memory.conversations.search("the")) == 1
    memory.index()
    assert all(memory.conversations.search(word) for word in WORDS)
