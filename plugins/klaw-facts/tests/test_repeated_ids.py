"""Facts from a chat whose writer numbers its messages by day: each fact quotes its own message, and leaves with it."""

from datetime import timedelta

import pytest

from klaw_conversations.names import full_name
from klaw_facts import Facts
from klaw_journals import BadLine, Chat, Message

from .conftest import META, MONDAY

CHAT = Chat("telegram", "1")
SAID = ("I live in Rome.", "My birthday is 24 December.", "My sister is called Eve.")


@pytest.fixture
def memory(open_memory):
    memory = open_memory(extractor="rules")
    for number, text in enumerate(SAID):
        memory.conversations.append(Message("user", text, MONDAY + timedelta(number), "msg_001", meta=META))
    memory.index()
    return memory


def facts(memory):
    """Return the text of each fact, and that of the place that it quotes."""
    found = memory.extension(Facts)
    places = {fact.text: found.pointers.place(fact.quotes[0]) for fact in found.list()}
    return {text: None if place is None else place.message.content for text, place in places.items()}


def full_names(memory):
    said = [line for line in memory.conversations.read(CHAT) if not isinstance(line, BadLine)]
    return {line.written.content: full_name(line.written) for line in said}


def test_every_message_is_read_and_quoted(memory):
    assert facts(memory) == {text: text for text in SAID}


@pytest.mark.parametrize("gone", SAID)
@pytest.mark.parametrize("how", ["forget", "conversations", "file"])
def test_only_the_facts_of_a_removed_message_leave(memory, tmp_path, gone, how):
    name = full_names(memory)[gone]
    if how == "forget":
        memory.forget(f"telegram_1/{name}")
    elif how == "conversations":
        memory.conversations.forget(CHAT, name)
    else:
        (tmp_path / "data" / "conversations" / "telegram_1" / f"2026-02-{23 + SAID.index(gone)}.jsonl").unlink()
    memory.index()
    assert facts(memory) == {text: text for text in SAID if text != gone}
    assert gone not in (tmp_path / "data" / "facts.jsonl").read_text("utf-8")
    assert memory.extension(Facts).extraction.waiting() == 0
    assert not memory.extension(Facts).pointers.unsound(memory.extension(Facts).list())
