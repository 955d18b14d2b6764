"""What is said: messages as values, and chats as names."""

import string
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core.errors import RecordError
from klaw_journals.chats import Chat
from klaw_journals.messages import SESSION_BREAK, Message

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
ANNA = Chat("telegram", "123456")
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def said(content, minutes=0, *, role="user", chat=ANNA, **more):
    return Message(role, content, NOON + timedelta(minutes=minutes), meta=chat.meta, **more)


def line(number, **changes):
    record = {"id": f"msg_{number:03}", "ts": "2026-02-24T12:00:00Z", "role": "user", "content": f"text {number}"}
    return {name: value for name, value in {**record, **changes}.items() if value is not ...}


# -- messages


def test_a_message_becomes_the_documented_line():
    record = {
        "id": "msg_001",
        "ts": "2026-02-24T10:15:30.123Z",
        "role": "assistant",
        "content": "Привет",
        "type": None,
        "meta": {"channel": "telegram", "chat_id": "123456", "model": "m", "tokens_in": 5, "tokens_out": 7},
        "reply_to": "msg_000",
    }
    message = Message.parse(record)
    assert message.ts == datetime(2026, 2, 24, 10, 15, 30, 123000, tzinfo=UTC)
    assert message.meta["tokens_out"] == 7
    assert message.extra == {"reply_to": "msg_000"}
    assert message.record() == record
    assert list(message.record()) == list(record)


@given(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "system", "tool"]),
        content=st.text(),
        ts=st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=OFFSETS),  # noqa: DTZ001
        id=st.text(min_size=1),
        type=st.sampled_from([None, "session_break", "subagent_result"]),
        meta=st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
        extra=st.dictionaries(st.text().filter(lambda name: name not in Message.__annotations__), st.booleans()),
    )
)
def test_law_a_record_parses_to_its_message(message):
    assert Message.parse(message.record()) == message
    assert message.ts.utcoffset() == timedelta(0)
    assert message.ts.microsecond % 1000 == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-24T10:15:30Z", datetime(2026, 2, 24, 10, 15, 30, tzinfo=UTC)),
        ("2026-02-24T10:15:30.123456789Z", datetime(2026, 2, 24, 10, 15, 30, 123000, tzinfo=UTC)),
        ("2026-02-24 13:15:30+03:00", datetime(2026, 2, 24, 10, 15, 30, tzinfo=UTC)),
        ("20260224T101530Z", datetime(2026, 2, 24, 10, 15, 30, tzinfo=UTC)),
    ],
)
def test_a_time_in_any_iso_8601_form_becomes_utc(text, expected):
    assert Message.parse(line(1, ts=text)).ts == expected


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"id": ...}, "id is missing"),
        ({"id": None}, "id is null"),
        ({"id": ""}, "id is empty"),
        ({"id": 5}, "id: expected a string, got a number"),
        ({"ts": ...}, "ts is missing"),
        ({"ts": 1771927200}, "expected an ISO 8601 string, got a number"),
        ({"ts": "yesterday"}, "the time 'yesterday' is not ISO 8601"),
        ({"ts": "2026-02-24T10:15:30"}, "the time 2026-02-24T10:15:30 has no time zone"),
        ({"ts": "2026-02-24"}, "the time 2026-02-24T00:00:00 has no time zone"),
        ({"ts": "2026-02-30T10:15:30Z"}, "the time '2026-02-30T10:15:30Z' is not ISO 8601"),
        ({"ts": "0001-01-01T00:00:00+14:00"}, "the time 0001-01-01T00:00:00+14:00 is out of range"),
        ({"role": ...}, "role is missing"),
        ({"role": "robot"}, "unknown role 'robot'; known: user, assistant, system, tool"),
        ({"role": "User"}, "unknown role 'User'; known: user, assistant, system, tool"),
        ({"role": ["user"]}, "unknown role an array; known: user, assistant, system, tool"),
        ({"content": ...}, "content is missing"),
        ({"content": None}, "content is null"),
        ({"content": 5}, "content: expected a string, got a number"),
        ({"content": True}, "content: expected a string, got true or false"),
        ({"type": "break"}, "unknown type 'break'; known: null, session_break, subagent_result"),
        ({"type": {}}, "unknown type an object; known: null, session_break, subagent_result"),
        ({"meta": []}, "meta: expected an object, got an array"),
        ({"role": "x" * 1000}, "unknown role '" + "x" * 40 + "…'; known: user, assistant, system, tool"),
    ],
)
def test_an_invalid_record_is_rejected_with_its_reason(changes, reason):
    with pytest.raises(RecordError) as caught:
        Message.parse(line(1, **changes))
    assert caught.value.message == reason


@pytest.mark.parametrize(
    ("content", "kept"),
    [({"type": "text", "text": "я"}, '{"type":"text","text":"я"}'), ([1, "b"], '[1,"b"]'), ("", ""), ("\0", "\0")],
)
def test_an_object_as_content_is_kept_as_its_json(content, kept):
    assert Message.parse(line(1, content=content)).content == kept


def test_a_session_break_needs_no_content():
    for content in (..., None, ""):
        assert Message.parse(line(1, role="system", type=SESSION_BREAK, content=content)).content == ""


@pytest.mark.parametrize("wrong", [{"role": "robot"}, {"content": None}, {"ts": datetime(2026, 1, 1)}, {"ts": "now"}])  # noqa: DTZ001
def test_an_invalid_message_cannot_be_created(wrong):
    with pytest.raises(RecordError):
        Message(**{"role": "user", "content": "", "ts": NOON, **wrong})


# -- chats


@pytest.mark.parametrize(
    ("chat", "name"),
    [
        (Chat("telegram", "123456"), "telegram_123456"),
        (Chat("telegram", "-100123"), "telegram_-100123"),
        (Chat("my_channel", "a_b"), "my%5Fchannel_a_b"),
        (Chat("scheduler", "daily-report"), "scheduler_daily-report"),
        (Chat("matrix", "!room:server/x"), "matrix_%21room%3Aserver%2Fx"),
        (Chat("..", ".."), "%2E._.."),
        (Chat("mail", "a@b.example"), "mail_a@b.example"),
        (Chat("t", "Аня"), "t_%D0%90%D0%BD%D1%8F"),
        (Chat("t", "\0"), "t_%00"),
        (Chat("t", "100%"), "t_100%25"),
    ],
)
def test_the_name_of_a_chat_is_safe_and_reversible(chat, name):
    assert chat.name == name
    assert Chat.parse(name) == chat


@given(st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=10))  # at most 241 bytes, percent-encoded
def test_law_names_are_safe_and_reversible(channel, chat_id):
    chat = Chat(channel, chat_id)
    assert Chat.parse(chat.name) == chat
    assert set(chat.name) <= set(string.ascii_letters + string.digits + "-._~@+%")
    assert not chat.name.startswith(".")
    assert chat.name.count("_") >= 1


@given(
    st.tuples(*[st.text("a_%.", min_size=1, max_size=4)] * 2), st.tuples(*[st.text("a_%.", min_size=1, max_size=4)] * 2)
)
def test_law_no_two_chats_share_a_name(one, other):
    assert (Chat(*one).name == Chat(*other).name) == (one == other)


@pytest.mark.parametrize("name", ["", "telegram", "_1", "telegram_", "%FF_1", "t_%ED%A0%80"])
def test_an_invalid_chat_name_is_rejected(name):
    with pytest.raises(RecordError):
        Chat.parse(name)


@pytest.mark.parametrize("parts", [("", "1"), ("t", ""), ("t", "x" * 254), ("t", "я" * 43), ("t", "\ud83d")])
def test_a_chat_whose_name_is_too_long_or_empty_is_rejected(parts):
    with pytest.raises(RecordError):
        Chat(*parts)


@pytest.mark.parametrize(
    ("meta", "chat"),
    [
        ({"channel": "telegram", "chat_id": "1"}, Chat("telegram", "1")),
        ({"channel": "telegram", "chat_id": 1}, Chat("telegram", "1")),
        ({"source": "scheduler", "task_name": "daily"}, Chat("scheduler", "daily")),
        ({"source": "scheduler", "task_name": "daily", "channel": "t", "chat_id": "1"}, Chat("t", "1")),
        ({}, None),
        ({"channel": "telegram"}, None),
        ({"chat_id": "1"}, None),
        ({"channel": "telegram", "chat_id": True}, None),
        ({"channel": 5, "chat_id": "1"}, None),
        ({"task_name": "daily"}, None),
        ({"source": "scheduler"}, None),
    ],
)
def test_the_chat_of_a_message_is_read_from_its_meta(meta, chat):
    if chat is None:
        with pytest.raises(RecordError):
            Chat.of(meta)
    else:
        assert Chat.of(meta) == chat
