"""``KlawChatMessageHistory``: messages come back as they were, and the memory finds what was said."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from klaw_journals import Chat
from langchain_klaw import KlawChatMessageHistory

MESSAGES = [
    SystemMessage("You are brief."),
    HumanMessage("When does the ferry leave?", id="question"),
    AIMessage("", tool_calls=[{"name": "timetable", "args": {"line": 3}, "id": "call"}]),
    ToolMessage("07:00", tool_call_id="call"),
    AIMessage([{"type": "text", "text": "At seven."}]),
]


@pytest.fixture
def history(words_only):
    return KlawChatMessageHistory("trip/to oslo", words_only)


def test_messages_are_read_back_unchanged(history):
    history.add_messages(MESSAGES[:2])
    history.add_messages(MESSAGES[2:])
    assert history.messages == MESSAGES


def test_sessions_are_separate_and_persistent(history, words_only):
    history.add_user_message("One.")
    KlawChatMessageHistory("other", words_only).add_user_message("Two.")
    again = KlawChatMessageHistory("trip/to oslo", words_only)
    assert [message.content for message in again.messages] == ["One."]


def test_messages_are_found_by_search(history, words_only):
    history.add_user_message("The wombat sleeps in the shed.")
    words_only.index()
    assert "wombat" in words_only.search("wombat")[0].content


def test_a_cleared_chat_is_not_found_and_leaves_no_bytes(history, words_only):
    history.add_user_message("The wombat sleeps in the shed.")
    words_only.index()
    history.clear()
    assert history.messages == []
    assert not words_only.search("wombat")
    history.add_user_message("A new beginning.")
    assert len(history.messages) == 1


def test_messages_of_other_programs_are_read(history, words_only):
    from datetime import UTC, datetime

    from klaw_journals import Message

    chat = Chat("langchain", "trip/to oslo")
    for role in ("user", "assistant", "tool", "system"):
        words_only.conversations.append(Message(role, f"from {role}", datetime.now(UTC), meta=chat.meta))
    assert [message.type for message in history.messages] == ["human", "ai", "tool", "system"]


def test_messages_of_a_human_keep_their_name_and_the_sender_of_the_history(words_only):
    history = KlawChatMessageHistory("trip", words_only, sender_id="7")
    history.add_messages([HumanMessage("Hi", name="Ada"), AIMessage("Yes?")])
    said = [line.message.meta for line in words_only.conversations.read(Chat("langchain", "trip"))]
    assert [(meta.get("sender_id"), meta.get("name")) for meta in said] == [("7", "Ada"), (None, None)]


def test_what_other_programs_said_has_nothing_that_nobody_sees_and_own_messages_are_unchanged(history, words_only):
    from datetime import UTC, datetime

    from klaw_journals import Message

    chat = Chat("langchain", "trip/to oslo")
    words_only.conversations.append(Message("user", "The fer\u00adry.", datetime.now(UTC), meta=chat.meta))
    history.add_user_message("The trai\u200bn.")
    assert [message.content for message in history.messages] == ["The ferry.", "The trai\u200bn."]
