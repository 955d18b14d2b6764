"""The journal as a source of documents and of rows: laws that hold for whatever was said, and however it was read."""

import json
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_conversations.archive import Conversations
from klaw_conversations.journal import Journal
from klaw_conversations.row_sync import RowSync
from klaw_conversations.source import ConversationSource, document_path, named_day
from klaw_conversations.summaries import SummaryFiles
from klaw_core import Entry
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_redaction import Redactor
from klaw_testing.laws import law, scaled
from klaw_testing.memory_store import MemoryStore
from klaw_testing.messages import message_dump
from klaw_testing.source import SourceContract

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "123456")


def said(number, content="", *, role="user", chat=CHAT, days=0, **meta):
    moment = NOON + timedelta(days=days, minutes=number)
    return Message(role, content or f"message number {number}", moment, meta={**chat.meta, **meta})


def rows(memory):
    with memory._assembly.store.read() as snapshot:
        return message_dump(snapshot.messages)


class TestSource(SourceContract):
    @pytest.fixture
    def source(self, tmp_path):
        journal = Journal(tmp_path)
        journal.append_many([said(1), said(2, days=1), said(1, chat=Chat("a", "b")), said(1, role="tool", days=2)])
        (tmp_path / CHAT.name / "notes.jsonl").write_text("{}")
        (tmp_path / "stray.jsonl").write_text("{}")
        return ConversationSource(journal)

    def test_something_other_than_a_journal_is_skipped_with_its_place(self, source):
        skipped = {item.path for item in source.scan() if not isinstance(item, Entry)}
        assert skipped == {"conversations/telegram_123456/notes.jsonl", "conversations/stray.jsonl"}

    def test_a_path_outside_of_the_conversations_is_rejected(self, source):
        for path in ("conversations/../x/2026-02-24.jsonl", "conversations/a_b/../a_b/2026-02-24.jsonl", "x", ""):
            assert source._file(path) is None


_lines = st.lists(
    st.one_of(
        st.sampled_from(["", "   ", "garbage", '{"id":"x"}', '{"a":NaN}', "\r"]).map(str.encode),
        st.builds(
            lambda role, content, kind: json.dumps(
                {"id": content[:3] or "i", "ts": "2026-02-24T10:00:00Z", "role": role, "content": content, "type": kind}
            ).encode(),
            st.sampled_from(["user", "assistant", "tool", "robot"]),
            st.text(max_size=30),
            st.sampled_from([None, None, "session_break", "joke"]),
        ),
    ),
    max_size=12,
)


@settings(law, max_examples=scaled(80))
@given(lines=_lines, torn=st.sampled_from([b"", b'{"id":']))
def test_a_transcript_has_a_line_for_each_line_of_its_file(tmp_path_factory, lines, torn):
    root = tmp_path_factory.mktemp("journal")
    path = root / CHAT.name / "2026-02-24.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(line + b"\n" for line in lines) + torn)
    journal = Journal(root)
    source = ConversationSource(journal, redactor=Redactor(()))
    (file,) = journal.files().files
    document = source.read(Entry(document_path(file)))
    shown = {
        number: json.loads(line) for number, line in enumerate(lines) if line.startswith(b'{"id"') and b'"ts"' in line
    }
    messages = {n: record for n, record in shown.items() if record["role"] != "robot" and record["type"] != "joke"}
    first = {json.dumps(record): number for number, record in reversed(messages.items())}
    expected = {
        number: " ".join(record["content"].split())
        for number, record in messages.items()
        if first[json.dumps(record)] == number
        and record["role"] in ("user", "assistant")
        and record["type"] is None
        and record["content"].split()
    }
    text = getattr(document, "text", "").split("\n")
    found = {number: line.partition(": ")[2] for number, line in enumerate(text) if line.strip()}
    assert found == expected


@settings(law, max_examples=scaled(40))
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.integers(-1, 1), st.sampled_from(["user", "assistant", "break", "sync"])),
        max_size=25,
    )
)
def test_rows_added_in_steps_equal_rows_added_at_once(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("journal")
    journal = Journal(root / "conversations")

    def row_sync():
        return RowSync(MemoryStore(), journal, SummaryFiles(root / "summaries"), Redactor())

    slow = Conversations(row_sync())
    for number, (chat, day, what) in enumerate(steps):
        target = Chat("telegram", str(chat))
        if what == "sync":
            slow.sync()
        elif what == "break":
            slow.session_break(target, NOON + timedelta(days=day, minutes=number))
        else:
            journal.append(said(number, chat=target, days=day, role=what, model=f"m{number}"))
    slow.sync()
    fast = Conversations(row_sync())
    fast.sync()
    with slow.row_sync.store.read() as mine, fast.row_sync.store.read() as theirs:
        assert message_dump(mine.messages) == message_dump(theirs.messages)


def test_names_of_days_do_not_depend_on_the_locale():
    assert named_day(date(2026, 3, 1)) == "2026-03-01, Sunday, 1 March 2026"
    names = {named_day(date(2026, 1, 1) + timedelta(days=step)).split(", ")[1] for step in range(7)}
    assert len(names) == 7
    assert all(a != b for a, b in pairwise(sorted(names)))
