"""Conversations from the journal to rows and chunks, over each store, with a real index and a counting embedder."""

import json
import os
import shutil
import threading
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve

from klaw_conversations.history import HistoryStore
from klaw_conversations.journal import Journal, JournalEntry
from klaw_conversations.row_sync import RowSync
from klaw_conversations.row_values import SyncReport
from klaw_core import Filters, NotFoundError, StoreError, StoreFullError, StoreLockedError
from klaw_core.embedding.run import PROBE
from klaw_core.errors import RecordError
from klaw_journals.chats import Chat
from klaw_journals.messages import Message
from klaw_redaction import REDACTED
from klaw_testing.memory_store import MemoryStore
from klaw_testing.messages import message_dump

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "123456")
SECRET = "sk-" + "a1B2" * 10
DAY = "conversations/telegram_123456/2026-02-24.jsonl"


def said(number, content="", *, role="user", chat=CHAT, days=0, **meta):
    moment = NOON + timedelta(days=days, minutes=number)
    return Message(role, content or f"message number {number}", moment, meta={**chat.meta, **meta})


def rows(memory):
    with memory._assembly.store.read() as snapshot:
        return message_dump(snapshot.messages)


def everything(memory, dump):
    return dump(memory), rows(memory)


def long(number):
    """A message of about a quarter of a chunk, whose words are its own."""
    return said(number, " ".join(f"w{number}x{part}" for part in range(20)))


class TestRows:
    @pytest.mark.promise("D3")
    def test_append_adds_the_row_in_the_same_call(self, memory):
        written = memory.conversations.append(said(1, "the kiln is hot", role="assistant", model="m1"))
        (found,) = memory.conversations.search("kiln")
        assert (found.id, found.chat_id, found.channel, found.created_at) == (
            written.id,
            "telegram_123456",
            "telegram",
            written.ts,
        )
        session = memory.conversations.session(CHAT)
        assert (session.model, session.segment_start, session.created_at) == ("m1", written.ts, written.ts)

    def test_the_rows_agree_with_the_journal_in_order(self, memory):
        conversations = memory.conversations
        for number in range(5):
            conversations.append(said(number))
        conversations.session_break(CHAT, NOON + timedelta(minutes=9))
        for number in (20, 10, 30):  # a clock that goes backwards
            conversations.append(said(number))
        with memory._assembly.store.read() as snapshot:
            mirrored = [row.content for row in snapshot.messages.all(CHAT.name)]
        assert mirrored == [line.message.content for line in conversations.tail(CHAT, 99)]
        assert mirrored[-2:] == [message.content for message in conversations.window(CHAT, 2)]
        assert mirrored[-2:] == ["message number 10", "message number 30"]
        assert len(conversations.window(CHAT)) == 3

    def test_a_message_that_was_appended_twice_has_one_row(self, memory, home):
        conversations = memory.conversations
        first = conversations.append(evolve(said(1, "The kiln is hot."), id="m1"))
        conversations.append(said(2, "Good."))
        conversations.append(first)
        assert [message.content for message in conversations.window(CHAT)] == ["The kiln is hot.", "Good."]
        history = HistoryStore(conversations)
        assert [message.content for message in history.recent("telegram:123456")] == ["The kiln is hot.", "Good."]
        memory.index()
        (result,) = memory.search("kiln", mode="fts")
        assert result.content == "User: The kiln is hot.\nUser: Good."
        assert (home.root / "data" / DAY).read_text("utf-8").count("m1") == 2

    def test_a_sync_reads_only_new_lines(self, memory, monkeypatch):
        conversations = memory.conversations
        conversations.append_many([said(number) for number in range(50)])
        started = []
        read_file = Journal.read_file
        monkeypatch.setattr(
            Journal, "read_file", lambda self, file, start=0: (started.append(start), read_file(self, file, start))[1]
        )
        assert conversations.sync().messages == 0
        assert started == []
        conversations.journal.append(said(60))
        assert conversations.sync().messages == 1
        assert started
        assert min(started) > 0

    def test_invalid_lines_are_counted_and_the_others_read(self, memory, home):
        conversations = memory.conversations
        conversations.append(said(1))
        path = home.root / "data" / DAY
        size = path.stat().st_size
        with path.open("ab") as file:
            file.write(b'garbage\n\n{"id":1}\n' + b'{"torn')
        report = conversations.sync()
        assert [item.path.rpartition("@")[2] for item in report.bad] == [str(size), str(size + 9), str(size + 18)]
        conversations.append(said(2))
        assert [row.content for row in rows_of(memory)] == ["message number 1", "message number 2"]
        skipped = {item.path for item in memory.index().skipped}
        assert skipped == set()  # what was reported once is not reported at every run

    def test_an_index_run_names_the_invalid_lines(self, memory, home):
        path = home.root / "data" / DAY
        path.parent.mkdir(parents=True)
        record = json.dumps(said(1).record() | {"id": "a"})
        path.write_text(f"{record}\nnot json\n{record}\n", "utf-8")
        report = memory.index()
        assert [item.path for item in report.skipped] == [f"{DAY}@{len(record) + 1}"]
        assert len(rows_of(memory)) == 1, "a second message with the same id is in the file, and one row"

    @pytest.mark.parametrize("change", ["cut", "replaced", "removed"])
    def test_rows_of_files_that_were_edited_by_hand_are_made_again(self, memory, home, change):
        conversations = memory.conversations
        conversations.append_many([said(1), said(2), said(3, days=1)])
        path = home.root / "data" / DAY
        if change == "cut":
            path.write_bytes(path.read_bytes().partition(b"\n")[0] + b"\n")
        elif change == "replaced":
            path.write_text(json.dumps(said(7, "x" * 999).record() | {"id": "a"}) + "\n", "utf-8")
        else:
            path.unlink()
        conversations.sync()
        expected = [line.message.content for line in conversations.read(CHAT) if isinstance(line, JournalEntry)]
        assert [row.content for row in rows_of(memory)] == expected

    def test_a_chat_whose_directory_was_removed_loses_its_rows(self, memory, home):
        memory.conversations.append(said(1))
        shutil.rmtree(home.root / "data" / "conversations" / CHAT.name)
        memory.conversations.sync()
        assert rows(memory) == {}

    def test_concurrent_appends_lose_nothing(self, memory):
        def write(number):
            for part in range(10):
                memory.conversations.append(said(part, f"thread {number} part {part}"))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = [line.message.content for line in memory.conversations.read(CHAT)]
        assert len(expected) == 40
        assert [row.content for row in rows_of(memory)] == expected

    def test_two_memories_append_to_one_chat(self, make_home):
        home = make_home("sqlite")
        with home.open() as first, home.open() as second:
            for number in range(6):
                (first, second)[number % 2].conversations.append(said(number))
            assert [row.content for row in rows_of(first)] == [f"message number {number}" for number in range(6)]

    def test_a_message_that_is_appended_during_a_rebuild_gets_its_row_later(self, make_home):
        home = make_home("sqlite")
        with home.open() as memory:
            memory.conversations.append(said(1))
            with memory._assembly.store.rebuild():
                with pytest.raises(StoreLockedError), memory._assembly.store.write():
                    pass
                memory.conversations.append(said(2))
            memory.index()
            assert [row.content for row in rows_of(memory)] == ["message number 1", "message number 2"]

    @pytest.mark.parametrize("error", [StoreFullError, StoreLockedError])
    def test_a_message_in_the_journal_is_acknowledged_though_the_database_has_no_room_for_its_row(
        self, make_home, monkeypatch, error, caplog
    ):
        def refuse(*_arguments):
            raise error("nothing was changed")

        with make_home("sqlite").open() as memory:
            with monkeypatch.context() as patched:
                patched.setattr(RowSync, "sync_file", refuse)
                patched.setattr(RowSync, "sync_summaries", refuse)
                memory.conversations.append(said(1))
                memory.conversations.add_summary(CHAT, "one message")
            assert caplog.text.count("`klaw index`") == (0 if error is StoreLockedError else 2)
            memory.index()
            assert [row.content for row in rows_of(memory)] == ["message number 1"]

    def test_what_could_not_be_removed_on_the_way_is_named(self, make_home, monkeypatch, caplog):
        report = SyncReport(failures=(StoreError("the chunks of a day stay"),))
        with make_home("sqlite").open() as memory:
            for name in ("sync_file", "sync_summaries"):
                monkeypatch.setattr(RowSync, name, lambda *_arguments: report)
            memory.conversations.append(said(1))
            assert caplog.text.count(f"removed from {CHAT.name} may be left: the chunks of a day stay") == 1
            memory.conversations.add_summary(CHAT, "one message")
        assert caplog.text.count("the chunks of a day stay") == 2


def rows_of(memory, chat=CHAT):
    with memory._assembly.store.read() as snapshot:
        return list(snapshot.messages.all(chat.name))


class TestChunks:
    def test_a_result_has_the_lines_of_the_file(self, memory, home):
        conversations = memory.conversations
        conversations.append(said(1, "noise of a tool", role="tool"))
        conversations.append(said(2, "Where did we leave\n\nthe   kiln?"))
        conversations.append(said(3, "In the shed.", role="assistant"))
        memory.index()
        (result,) = memory.search("kiln")
        assert (result.path, result.start_line, result.end_line) == (DAY, 2, 3)
        assert result.content == "User: Where did we leave the kiln?\nAssistant: In the shed."
        assert result.heading == (CHAT.name, "2026-02-24, Tuesday, 24 February 2026")
        assert (result.source, result.chat_id, result.created_at) == (
            "conversation",
            CHAT.name,
            said(3, "").ts,
        )
        lines = (home.root / "data" / DAY).read_text("utf-8").splitlines()
        assert "kiln" in lines[result.start_line - 1]
        assert memory.get(DAY, 3, 1).content == "Assistant: In the shed."

    def test_a_recent_message_is_found_by_its_own_time(self, memory):
        conversations = memory.conversations
        conversations.append_many([said(number, f"early word{number} " + "xylophone " * 100) for number in range(3)])
        memory.index()
        conversations.append(said(600, "The kiln is hot."))
        memory.index()
        (late,) = memory.search("kiln early", filters=Filters(since=NOON + timedelta(hours=9)))
        assert "kiln" in late.content
        assert late.created_at == said(600).ts
        everything = memory.search("kiln early", filters=Filters(until=NOON + timedelta(hours=9)))
        assert {item.created_at for item in everything} == {said(number).ts for number in range(3)}

    def test_a_summary_is_found_until_a_later_one_replaces_it(self, memory):
        conversations = memory.conversations
        conversations.add_summary(CHAT, f"They plan the zebra\nmigration. {SECRET}", created_at=NOON)
        conversations.add_summary(CHAT, "They fired the kiln.", from_message_id="m9", created_at=NOON)
        memory.index()
        (found,) = memory.search("zebra", mode="fts")
        assert found.content.startswith(f"They plan the zebra migration. {REDACTED}")
        assert (found.source, found.chat_id, found.created_at) == ("summary", CHAT.name, NOON)
        assert found.path == f"conversations/{CHAT.name}/summaries.jsonl"
        assert memory.get(found.path, found.start_line, 1).content.startswith("They plan the zebra")
        conversations.add_summary(CHAT, "They plan nothing.", created_at=NOON + timedelta(hours=1))
        memory.index()
        assert not memory.search("zebra", mode="fts")
        (result,) = memory.search("kiln", mode="fts")
        assert (result.start_line, result.end_line) == (2, 3)
        assert result.content == "They fired the kiln.\nThey plan nothing."
        conversations.purge(CHAT)
        assert not memory.search("kiln nothing", mode="fts")

    def test_a_chunk_is_found_by_day_speaker_and_chat(self, memory):
        memory.conversations.append(said(1, "The ferry leaves.", name="Caroline"))
        memory.conversations.append(said(1, "Another thing.", days=30, chat=Chat("matrix", "room")))
        memory.index()
        for question in ("what happened on 24 February 2026", "Tuesday", "2026-02-24", "what did Caroline say"):
            assert memory.search(question, 1)[0].path == DAY, question
        assert {result.chat_id for result in memory.search("leaves thing", filters=Filters(chat_id="matrix_room"))} == {
            "matrix_room"
        }

    def test_a_new_message_embeds_only_the_end_of_its_day(self, memory, home):
        conversations = memory.conversations
        conversations.append_many([long(number) for number in range(60)])
        memory.index()
        first = home.recorder.take()
        assert len(first) > 6
        for number in range(60, 66):
            conversations.append(long(number))
            report = memory.index()
            assert (report.changed, report.added) == (1, 0)
            texts = home.recorder.take()
            assert 1 <= len(texts) <= 2
            assert all(f"w{number}x0" in text or f"w{number - 1}x0" in text for text in texts)
        memory.index()
        assert home.recorder.take() == []

    def test_an_answer_is_found_by_its_question_and_shows_it(self, home):
        with home.open(conversations={"packed_tokens": 0}) as memory:
            asked, answered = said(1, "When does the ferry leave?"), said(2, "On Friday at nine.", role="assistant")
            memory.conversations.append_many([asked, answered, said(3, "Thanks.", days=1)])
            memory.index()
            found = memory.search("ferry", mode="fts")
            assert [(result.content, result.context) for result in found] == [
                ("Assistant: On Friday at nine.", "User: When does the ferry leave?"),
                ("User: When does the ferry leave?", ""),
            ]

    def test_a_later_message_does_not_change_earlier_chunks(self, home):
        with home.open(conversations={"packed_tokens": 0}) as memory:
            memory.conversations.append_many([long(number) for number in range(4)])
            memory.index()
            before = {result.chunk_id for result in memory.search("user", 9, mode="fts")}
            assert len(before) == 4
            memory.conversations.append(long(4))
            memory.index()
            assert before < {result.chunk_id for result in memory.search("user", 9, mode="fts")}

    def test_an_edited_message_leaves_no_old_word_in_later_contexts(self, home, dump, check):
        with home.open(conversations={"packed_tokens": 0}) as memory:
            memory.conversations.append_many([said(1, "the word is hunter"), said(2, "Thanks."), said(3, "Bye.")])
            memory.index()
            assert len(memory.search("hunter", mode="fts")) == 3
            file = home.root / "data" / DAY
            file.write_text(file.read_text("utf-8").replace("hunter", "gather"), "utf-8")
            home.recorder.take()
            memory.index()
            assert len(home.recorder.take()) == 1, "what follows has the chunk that it had"
            assert not memory.search("hunter", mode="fts")
            assert len(memory.search("gather", mode="fts")) == 3
            check(memory)
            incremental = dump(memory)
            memory.reindex()
            assert dump(memory) == incremental

    def test_no_chunk_crosses_a_session_break(self, memory):
        conversations = memory.conversations
        conversations.append(said(1))
        conversations.session_break(CHAT, NOON)
        conversations.append(said(2))
        report = memory.index()
        assert report.chunks == 2

    def test_incremental_equals_full_and_the_database_is_rebuilt_from_the_files(self, home, dump, check):
        with home.open() as memory:
            conversations = memory.conversations
            for number in range(30):
                conversations.append(long(number))
                if number % 7 == 3:
                    conversations.session_break(CHAT, NOON + timedelta(minutes=number))
                if number % 5 == 0:
                    memory.index()
            conversations.append(said(3, days=-1))
            conversations.add_summary(CHAT, "They spoke of words.", from_message_id="a", created_at=NOON)
            memory.save("a fact", created_at=NOON)
            memory.index()
            check(memory)
            before = everything(memory, dump)
            assert len(rows(memory)[CHAT.name][0]) == 35
            home.recorder.take()
            memory.reindex()
            assert home.recorder.take() in ([], [PROBE]), "the cache survives"
            assert everything(memory, dump) == before
        home.store = MemoryStore()
        for path in (home.root / "data").glob("klaw.db*"):
            path.unlink()
        with home.open() as memory:
            memory.index()
            assert everything(memory, dump) == before
            check(memory)

    def test_a_day_cannot_be_forgotten_while_its_file_exists(self, memory):
        memory.conversations.append(said(1))
        memory.index()
        with pytest.raises(NotFoundError, match="a day of a conversation"):
            memory.forget(DAY)

    def test_documents_of_a_removed_file_leave_the_index(self, memory, home):
        memory.conversations.append_many([said(1), said(2, days=1)])
        memory.index()
        (home.root / "data" / DAY).unlink()
        assert memory.index().removed == 1


class TestRedaction:
    def test_no_secret_reaches_the_database(self, make_home):
        home = make_home("sqlite")
        with home.open(conversations={"redact": [r"hunter\d"]}) as memory:
            conversations = memory.conversations
            conversations.append(said(1, f"my key is {SECRET} and the word is hunter2", note=f"also {SECRET}"))
            conversations.append(said(2, f"tool says {SECRET}", role="tool"))
            conversations.add_summary(CHAT, f"They exchanged {SECRET}.")
            memory.index()
            memory.reindex()
            result = memory.search("key word")[0]
            assert result.content == f"User: my key is {REDACTED} and the word is {REDACTED}"
            assert SECRET in conversations.window(CHAT)[0].content, "the journal is what was said"
        data = b"".join(path.read_bytes() for path in (home.root / "data").glob("klaw.db*"))
        assert b"my key is" in data
        assert SECRET.encode() not in data
        assert b"hunter2" not in data

    def test_new_patterns_apply_to_existing_messages(self, make_home):
        home = make_home("sqlite")
        with home.open() as memory:
            memory.conversations.append(said(1, "the word is hunter2"))
            memory.index()
        with home.open(conversations={"redact": ["hunter2"]}) as memory:
            memory.index()
            assert rows_of(memory)[0].content == f"the word is {REDACTED}"
            assert memory.search("word")[0].content == f"User: the word is {REDACTED}"
            assert not memory.search("hunter2", mode="fts")
            memory.reindex()  # what a full-text index no longer finds may be in its pages until then
        data = b"".join(path.read_bytes() for path in (home.root / "data").glob("klaw.db*"))
        assert b"hunter2" not in data

    def test_redaction_can_be_turned_off(self, home):
        with home.open(conversations={"redact_secrets": False}) as memory:
            memory.conversations.append(said(1, SECRET))
            assert rows_of(memory)[0].content == SECRET

    def test_only_configured_roles_are_indexed(self, home):
        with home.open(conversations={"include_roles": ["tool"]}) as memory:
            memory.conversations.append_many([said(1, "spoken words"), said(2, "measured words", role="tool")])
            memory.index()
            assert [result.content for result in memory.search("words")] == ["Tool: measured words"]


class TestPurge:
    def test_a_purged_chat_does_not_return(self, memory):
        other = Chat("matrix", "room")
        conversations = memory.conversations
        conversations.append_many([said(1, "gone words"), said(1, "other words", chat=other)])
        conversations.add_summary(CHAT, "a summary")
        memory.index()
        assert conversations.purge(CHAT) == 1
        assert list(rows(memory)) == [other.name]
        assert {result.chat_id for result in memory.search("words summary")} == {other.name}
        memory.reindex()
        assert list(rows(memory)) == [other.name]
        assert conversations.summaries(CHAT) == ()
        conversations.append(said(2))
        assert len(rows_of(memory)) == 1


class TestHistory:
    KEY = "telegram:123456:7"

    @pytest.fixture
    def history(self, memory):
        return HistoryStore(memory.conversations, max_recent=3)

    def test_an_appended_message_is_read_back(self, history):
        call = {"name": "search", "arguments": {"q": [1, None]}}
        history.append(self.KEY, "user", "hello", metadata={"tokens_in": 3})
        history.append(self.KEY, "assistant", "", tool_calls=[call])
        first, second = history.all(self.KEY)
        assert (first.role, first.content, first.meta["tokens_in"]) == ("user", "hello", 3)
        assert second.meta["tool_calls"] == [call]
        assert history.length(self.KEY) == 2
        assert history.all("telegram:123456:8") == ()

    def test_recent_is_bounded_and_outlives_sessions(self, history):
        for number in range(5):
            history.append(self.KEY, "user", str(number), ts=NOON)
            history.conversations.session_break(Chat("telegram", "123456:7"), NOON)
        assert [message.content for message in history.recent(self.KEY)] == ["2", "3", "4"]
        assert [message.content for message in history.recent(self.KEY, 2)] == ["3", "4"]
        assert [message.content for message in history.recent(self.KEY, 99)] == ["2", "3", "4"]
        assert history.recent(self.KEY, 0) == history.recent("a:b", 5) == ()
        assert len(history.all(self.KEY)) == 5

    def test_a_summary_replaces_the_one_before_it(self, history):
        assert history.summary(self.KEY) == ""
        history.set_summary(self.KEY, "one")
        history.set_summary(self.KEY, "two")
        assert history.summary(self.KEY) == "two"

    def test_a_purge_removes_history_and_summary(self, history):
        history.append(self.KEY, "user", "hello")
        history.set_summary(self.KEY, "one")
        history.purge(self.KEY)
        assert history.all(self.KEY) == ()
        assert history.summary(self.KEY) == ""

    def test_a_new_process_reads_the_history(self, make_home):
        home = make_home("sqlite")
        with home.open() as memory:
            HistoryStore(memory.conversations).append(self.KEY, "user", "hello")
        with home.open() as memory:
            assert [message.content for message in HistoryStore(memory.conversations).recent(self.KEY)] == ["hello"]

    def test_an_invalid_key_is_rejected(self, history):
        for key in ("telegram", "", ":x", "a:"):
            with pytest.raises(RecordError):
                history.append(key, "user", "hello")


@pytest.mark.parametrize("beyond", [0, 1])
def test_rows_of_a_file_that_was_edited_to_the_same_length_are_made_again(home, beyond):
    with home.open() as memory:
        memory.conversations.append_many([said(1, "the password is hunter2"), said(2, "thank you")])
        memory.index()
        path = home.root / "data" / DAY
        before = path.stat()
        path.write_bytes(path.read_bytes().replace(b"hunter2", b"XXXXXXX"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert "conversation-rows" in [finding.check for finding in memory.doctor().findings]
        if beyond:
            memory.conversations.append(said(3, "and another"))
        memory.index()
        assert [row.content for row in memory.conversations.search("password")] == ["the password is XXXXXXX"]
        assert memory.conversations.search("hunter2") == ()
        assert memory.doctor().findings == ()
    if home.backend == "sqlite":
        files = [path for path in (home.root / "data").rglob("klaw.db*") if path.is_file()]
        assert not any(b"password is hunter2" in path.read_bytes() for path in files)


def test_rows_without_a_checksum_are_made_again_once(home):
    with home.open() as memory:
        memory.conversations.append(said(1, "the harbour"))
        memory.index()
        with memory._assembly.store.write() as transaction:
            ((day, state),) = transaction.messages.files(CHAT.name).items()
            assert state.checksum is not None
            transaction.messages.put_file(evolve(state, checksum=None))
        memory.index()
        with memory._assembly.store.read() as snapshot:
            assert snapshot.messages.files(CHAT.name) == {day: state}
            assert len(snapshot.messages.all(CHAT.name)) == 1
