"""The contract of a store for the rows of conversations.

class TestSqliteMessages(MessagesContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: SqliteStore(tmp_path / "klaw.db")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import Store, StoreError
from klaw_journals import JournalFileState, MessageReader, Session, StoredMessage, Summary
from klaw_testing.laws import law, scaled
from klaw_testing.memory_store import MemoryStore
from klaw_testing.store import InjectedError, OpenStore
from klaw_testing.values import MOMENT

CHAT, OTHER = "telegram_1", "matrix_%21room"
DAY = date(2026, 2, 24)


def make_message(
    number: int, content: str = "", *, chat: str = CHAT, day: date = DAY, id_: str = "", **changes: Any
) -> StoredMessage:
    """Return message ``number`` of a day, which determines its position and the default id and content."""
    message = StoredMessage(
        id=id_ or f"msg_{day}_{number}",
        channel=chat.partition("_")[0],
        chat_id=chat,
        role="user",
        content=content or f"message {number}",
        created_at=MOMENT + timedelta(minutes=number),
        day=day,
        position=number * 100,
    )
    return evolve(message, **changes)


def put_messages(store: Store[Any], *messages: StoredMessage) -> int:
    """Insert messages in one transaction; return how many were new."""
    with store.write() as transaction:
        new: int = transaction.messages.insert(messages)
        return new


def ids(messages: Sequence[StoredMessage]) -> list[str]:
    """Return the messages' ids."""
    return [message.id for message in messages]


def message_dump(messages: MessageReader) -> object:
    """Return all rows of conversations, without keys, as plain data for comparison."""
    return {
        chat: (
            [(message, dict(message.metadata)) for message in messages.all(chat)],
            messages.session(chat),
            list(messages.summaries(chat)),
            dict(messages.files(chat)),
        )
        for chat in messages.chats()
    }


def _at_unique_position(number: int, content: str, *, id_: str, **changes: Any) -> StoredMessage:
    """Return a message; messages with different ids have different positions."""
    message = make_message(number, content, id_=id_, **changes)
    return evolve(message, position=message.position + len(id_))


_stored = st.builds(
    _at_unique_position,
    st.integers(0, 5),
    st.sampled_from(["alpha", "beta gamma", "память", ""]),
    chat=st.sampled_from([CHAT, OTHER]),
    day=st.sampled_from([DAY, DAY + timedelta(days=1)]),
    id_=st.sampled_from(["", "same", "twice"]),
    role=st.sampled_from(["user", "assistant"]),
    type=st.sampled_from([None, None, "session_break"]),
    metadata=st.sampled_from([{}, {"model": "m1"}, {"model": 7}, {"deep": {"a": [1, None, "я"]}}]),
)


class MessagesContract:
    """The laws of the rows of conversations. ``open_store`` opens the same data each time it is called."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Return a function that opens the store; each call opens the same data."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Any:
        store = open_store()
        yield store
        store.close()

    def test_a_new_store_has_no_messages(self, store: Store[Any]) -> None:
        with store.read() as snapshot:
            messages = snapshot.messages
            assert list(messages.chats()) == []
            assert list(messages.all(CHAT)) == []
            assert messages.session(CHAT) is None
            assert list(messages.summaries(CHAT)) == []
            assert dict(messages.files(CHAT)) == {}
            assert list(messages.search("anything", 10)) == []

    def test_written_data_is_read_back_equal(self, store: Store[Any]) -> None:
        written = [
            make_message(1, "nul \0, память 内存 🧵\r\nline", metadata={"tokens_in": 7, "deep": {"a": [None, 1.5]}}),
            make_message(2, role="assistant", type="subagent_result"),
            make_message(3, role="tool"),
            make_message(4, role="system", type="session_break"),
        ]
        assert put_messages(store, *written) == 4
        with store.read() as snapshot:
            assert list(snapshot.messages.all(CHAT)) == written
            assert list(snapshot.messages.chats()) == [CHAT]

    def test_inserting_again_changes_nothing(self, store: Store[Any]) -> None:
        written = [make_message(1), make_message(2)]
        assert put_messages(store, *written) == 2
        assert put_messages(store, *written, make_message(3)) == 1
        with store.read() as snapshot:
            assert len(snapshot.messages.all(CHAT)) == 3
            assert ids(snapshot.messages.search("message", 10)) == ids(snapshot.messages.all(CHAT))

    def test_the_first_of_two_messages_with_the_same_id_is_kept(self, store: Store[Any]) -> None:
        late, early = make_message(5, "late", id_="x"), make_message(2, "early", id_="x")
        put_messages(store, late)
        assert put_messages(store, early, late) == 0
        with store.read() as snapshot:
            assert list(snapshot.messages.all(CHAT)) == [early]
            assert list(snapshot.messages.search("late", 10)) == []
            assert list(snapshot.messages.search("early", 10)) == [early]

    def test_messages_are_found_by_their_ids(self, store: Store[Any]) -> None:
        written = [
            make_message(number, id_=name) for number, name in enumerate(["x", "nul\0", "x~1", "ключ", "%", "X"])
        ]
        put_messages(store, *written, make_message(9, "other", id_="x", chat=OTHER))
        with store.read() as snapshot:
            for message in written:
                assert list(snapshot.messages.get(CHAT, [message.id])) == [message]
            found = snapshot.messages.get(CHAT, ["x", "x", "none", "%", ""])
            assert sorted(message.id for message in found) == ["%", "x"]
            assert list(snapshot.messages.get(CHAT, [])) == list(snapshot.messages.get("no_chat", ["x"])) == []

    def test_ids_are_unique_only_within_a_chat(self, store: Store[Any]) -> None:
        assert put_messages(store, make_message(1, id_="x"), make_message(1, id_="x", chat=OTHER)) == 2
        with store.read() as snapshot:
            assert [len(snapshot.messages.all(chat)) for chat in (CHAT, OTHER)] == [1, 1]

    def test_messages_are_ordered_by_position_and_not_by_time(self, store: Store[Any]) -> None:
        second = make_message(2, created_at=MOMENT - timedelta(days=9))
        before = make_message(9, day=DAY - timedelta(days=1))
        put_messages(store, make_message(10), second, before)
        with store.read() as snapshot:
            assert list(snapshot.messages.all(CHAT)) == [before, second, make_message(10)]

    def test_a_session_is_derived_from_its_messages(self, store: Store[Any]) -> None:
        put_messages(store, make_message(1), make_message(2, role="assistant", metadata={"model": "m1"}))
        start = MOMENT + timedelta(minutes=1)
        with store.read() as snapshot:
            assert snapshot.messages.session(CHAT) == Session(CHAT, "m1", start, start)
        put_messages(store, make_message(3, type="session_break"), make_message(4, role="assistant"))
        with store.read() as snapshot:
            assert snapshot.messages.session(CHAT) == Session(CHAT, "m1", start + timedelta(minutes=2), start)
        put_messages(store, make_message(5, role="assistant", metadata={"model": "m2"}))
        put_messages(store, make_message(6, role="assistant", metadata={"model": 7}))
        with store.read() as snapshot:
            assert snapshot.messages.session(CHAT) == Session(CHAT, "m2", start + timedelta(minutes=2), start)

    @pytest.mark.parametrize("wrong", [{"role": "robot"}, {"type": "joke"}])
    def test_an_unknown_role_or_type_is_rejected(self, store: Store[Any], wrong: dict[str, Any]) -> None:
        with pytest.raises(StoreError):
            put_messages(store, make_message(1), make_message(2, **wrong))
        with store.read() as snapshot:
            assert list(snapshot.messages.chats()) == []

    def test_search_finds_any_word_in_one_chat_or_in_all(self, store: Store[Any]) -> None:
        put_messages(
            store,
            make_message(1, "The kiln is hot"),
            make_message(2, "the ferry leaves"),
            make_message(3, "печь остыла"),
            make_message(1, "kiln and ferry", chat=OTHER),
        )
        with store.read() as snapshot:
            search = snapshot.messages.search
            assert {message.content for message in search("KILN", 10)} == {"The kiln is hot", "kiln and ferry"}
            assert [message.content for message in search("kiln ferry", 1)] == ["kiln and ferry"]
            assert [message.content for message in search("kiln", 10, CHAT)] == ["The kiln is hot"]
            assert [message.content for message in search("ПЕЧЬ", 10)] == ["печь остыла"]
            assert list(search("kiln", 0)) == []

    @pytest.mark.parametrize(
        ("said", "question"),
        [
            ("我们换了一个数据库", "数据库"),
            ("京都の宿はいくら", "宿"),
            ("수입 결제 버그를 고쳤다", "결제"),
            ("ключи от сарая", "ключ"),
            ("the kilns are hot", "kiln"),
            ("set lock_timeout to 5", "lock_timeout"),
            ("the architecture is done", "archit"),
        ],
    )
    def test_messages_are_tokenized_like_chunks(self, store: Store[Any], said: str, question: str) -> None:
        put_messages(store, make_message(1, said), make_message(2, "nothing of that"))
        with store.read() as snapshot:
            assert [message.content for message in snapshot.messages.search(question, 10)] == [said]

    @pytest.mark.parametrize(
        "text",
        ["", " ", '"', "a AND", "NOT", "NEAR(", "content:x", "*", "^a", "C++", "cat's", "\0", "\ud800", "a-b", "_"],
    )
    def test_every_text_is_a_valid_query(self, store: Store[Any], text: str) -> None:
        put_messages(store, make_message(1, "near and far"))
        with store.read() as snapshot:
            assert len(snapshot.messages.search(text, 10)) <= 1

    def test_a_query_of_many_words_is_answered(self, store: Store[Any]) -> None:
        put_messages(store, make_message(1, "w1 w2"))
        with store.read() as snapshot:
            assert len(snapshot.messages.search(" ".join(f"w{number}" for number in range(50_000)), 10)) == 1

    def test_put_summaries_replaces_all_summaries_of_a_chat(self, store: Store[Any]) -> None:
        first = Summary(CHAT, "They met.", "summaries/telegram_1.jsonl", MOMENT, "a", "b")
        second = evolve(first, content="", created_at=MOMENT + timedelta(hours=1), from_message_id=None)
        for summaries in ([first], [first, second]):
            with store.write() as transaction:
                transaction.messages.put_summaries(CHAT, summaries)
            with store.read() as snapshot:
                assert list(snapshot.messages.summaries(CHAT)) == summaries
                assert list(snapshot.messages.summaries(OTHER)) == []
                assert list(snapshot.messages.chats()) == [CHAT]

    def test_the_state_of_a_journal_file_is_stored(self, store: Store[Any]) -> None:
        for end in (100, 250):
            with store.write() as transaction:
                transaction.messages.put_file(JournalFileState(CHAT, DAY, end, "r"))
            with store.read() as snapshot:
                assert dict(snapshot.messages.files(CHAT)) == {DAY: JournalFileState(CHAT, DAY, end, "r")}

    def test_a_purge_deletes_only_its_chat(self, store: Store[Any]) -> None:
        put_messages(store, make_message(1, "kiln"), make_message(2, "kiln"), make_message(1, "kiln", chat=OTHER))
        with store.write() as transaction:
            for chat in (CHAT, OTHER):
                transaction.messages.put_file(JournalFileState(chat, DAY, 1))
                transaction.messages.put_summaries(chat, [Summary(chat, "s", "f", MOMENT)])
        with store.write() as transaction:
            assert transaction.messages.purge(CHAT) == 2
            assert transaction.messages.purge(CHAT) == 0
        with store.read() as snapshot:
            assert list(snapshot.messages.chats()) == [OTHER]
            assert [message.chat_id for message in snapshot.messages.search("kiln", 10)] == [OTHER]
            assert snapshot.messages.session(CHAT) is None
            assert len(snapshot.messages.summaries(OTHER)) == len(snapshot.messages.files(OTHER)) == 1

    def test_a_failed_transaction_leaves_nothing(self, store: Store[Any]) -> None:
        put_messages(store, make_message(1, "kiln"))
        with store.read() as snapshot:
            before = message_dump(snapshot.messages)
        with pytest.raises(InjectedError), store.write() as transaction:  # noqa: PT012  # the block is the subject
            transaction.messages.insert([make_message(2, "ferry", type="session_break")])
            transaction.messages.purge(CHAT)
            transaction.messages.put_summaries(OTHER, [Summary(OTHER, "s", "f", MOMENT)])
            transaction.messages.put_file(JournalFileState(OTHER, DAY, 1))
            raise InjectedError
        with store.read() as snapshot:
            assert message_dump(snapshot.messages) == before
            assert ids(snapshot.messages.search("kiln ferry", 10)) == [f"msg_{DAY}_1"]

    def test_only_the_transaction_sees_its_uncommitted_messages(self, store: Store[Any]) -> None:
        with store.read() as snapshot:
            with store.write() as transaction:
                transaction.messages.insert([make_message(1)])
                assert len(transaction.messages.all(CHAT)) == len(transaction.messages.search("message", 5)) == 1
            assert list(snapshot.messages.all(CHAT)) == []

    def test_a_rebuild_starts_without_messages_and_replaces_them(self, store: Store[Any]) -> None:
        put_messages(store, make_message(1, "old"))
        with store.rebuild() as fresh:
            with fresh.read() as snapshot:
                assert list(snapshot.messages.chats()) == []
            put_messages(fresh, make_message(2, "new"))
        with store.read() as snapshot:
            assert [message.content for message in snapshot.messages.all(CHAT)] == ["new"]
            assert list(snapshot.messages.search("old", 5)) == []

    @settings(law, max_examples=scaled(30))
    @given(batches=st.lists(st.lists(_stored, max_size=5), max_size=5), purged=st.sampled_from(["", CHAT, OTHER]))
    def test_it_agrees_with_the_in_memory_store(
        self, open_store: OpenStore, batches: list[list[StoredMessage]], purged: str
    ) -> None:
        store, oracle = open_store(), MemoryStore()
        try:
            with store.write() as transaction:
                for chat in (CHAT, OTHER):
                    transaction.messages.purge(chat)
            for batch in batches:
                assert put_messages(store, *batch) == put_messages(oracle, *batch)
            for each in (store, oracle):
                with each.write() as transaction:
                    transaction.messages.purge(purged)
            with store.read() as mine, oracle.read() as theirs:
                assert message_dump(mine.messages) == message_dump(theirs.messages)
                for chat in (CHAT, OTHER):
                    assert {found.place for found in mine.messages.search("alpha gamma", 99, chat)} == {
                        found.place for found in theirs.messages.search("alpha gamma", 99, chat)
                    }
        finally:
            store.close()
