"""The rows of conversations keep their contract, and what is particular to their tables."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from klaw_store_sqlitevec.checking import check_messages
from klaw_store_sqlitevec.conversations import refill_words
from klaw_store_sqlitevec.store import SqliteStore
from klaw_testing.messages import CHAT, MessagesContract, make_message, put_messages
from klaw_words.tokenizer import tokenizer
from klaw_words.treatment import index_text

DOCUMENTED = {
    "messages": {"id", "channel", "chat_id", "role", "type", "content", "metadata", "created_at"},
    "sessions": {"chat_id", "model", "segment_start", "created_at"},
    "summaries": {"id", "chat_id", "from_message_id", "to_message_id", "file_path", "created_at"},
}


class TestSqliteMessages(MessagesContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: SqliteStore(tmp_path / "klaw.db")


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    yield store
    store.close()


@pytest.mark.parametrize("table", DOCUMENTED)
def test_the_tables_have_the_documented_names_and_columns(store, table):
    with store.read() as snapshot:
        columns = {row[1] for row in snapshot.resource.execute(f"PRAGMA table_info({table})")}
    assert columns >= DOCUMENTED[table]


def test_the_index_by_chat_and_time_has_its_documented_name_and_columns(store):
    with store.read() as snapshot:
        sql = snapshot.resource.execute("SELECT sql FROM sqlite_schema WHERE name = 'idx_messages_chat'").get
    assert "messages (chat_id, created_at DESC)" in sql


def test_the_words_agree_with_the_messages(store):
    put_messages(store, make_message(1, "late", id_="x", position=500), make_message(2, "kiln"))
    put_messages(store, make_message(1, "early", id_="x"), make_message(3, "nul \0 ferry"))
    with store.write() as transaction:
        connection = transaction.resource
        words = "CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, messages_fts, row)"
        connection.execute(words)
        assert {row[0] for row in connection.execute("SELECT term FROM words")} == {"earli", "kiln", "nul", "ferri"}
        assert not list(check_messages(connection, ""))
        connection.execute("DELETE FROM messages WHERE content = 'kiln'")
        assert list(check_messages(connection, ""))
        refill_words(connection)
        assert not list(check_messages(connection, ""))
        transaction.messages.purge(CHAT)
        assert not list(check_messages(connection, ""))
        assert connection.execute("SELECT term FROM words").fetchall() == []


def test_words_of_an_earlier_form_are_made_again(store):
    put_messages(store, make_message(1, "Ines"))
    location = store.location
    store.close()
    migration = "0017-names-like-function-words"
    with apsw.Connection(location) as connection:
        connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
        connection.execute("INSERT INTO messages_fts (rowid, content) SELECT key, content FROM messages")
        connection.execute("DELETE FROM klaw_migrations WHERE name = ?", (migration,))
        assert connection.changes() == 1
    with closing(SqliteStore(Path(location))) as again, again.write() as transaction:
        transaction.resource.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, messages_fts, row)")
        words = "SELECT term FROM words"
        assert transaction.resource.execute(words).get == tokenizer().terms(index_text("Ines").encode())[0] != "in"
        transaction.messages.purge(CHAT)
        assert transaction.resource.execute(words).fetchall() == []


def test_keys_survive_a_vacuum_and_are_never_reused(store):
    put_messages(store, make_message(1, "kiln"), make_message(2, "ferry"))
    keys = "SELECT key FROM messages ORDER BY key"
    with store.write() as transaction:
        transaction.messages.purge(CHAT)
    put_messages(store, make_message(3, "anchor"))
    location = store.location
    store.close()
    with apsw.Connection(location) as connection:
        before = connection.execute(keys).fetchall()
    connection.execute("VACUUM")
    assert connection.execute(keys).fetchall() == before == [(3,)]
    connection.close()
    again = SqliteStore(Path(location))
    with again.read() as snapshot:
        assert [message.content for message in snapshot.messages.search("anchor", 5)] == ["anchor"]
    again.close()


def test_purged_messages_leave_no_bytes(tmp_path):
    store = SqliteStore(tmp_path / "klaw.db")
    put_messages(store, make_message(1, "the combination is xyzzyplugh"), make_message(1, "stays", chat="a_b"))
    with store.write() as transaction:
        transaction.messages.purge(CHAT)
    store.close()
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"stays" in left
    assert b"xyzzyplugh" not in left


def test_a_database_from_before_conversations_gets_their_tables(tmp_path):
    path = tmp_path / "klaw.db"
    SqliteStore(path).close()
    with apsw.Connection(str(path)) as old:
        for table in ("messages_fts", "messages", "sessions", "summaries", "message_files"):
            old.execute(f"DROP TABLE {table}")
        old.execute("DELETE FROM klaw_migrations WHERE name IN ('0002-conversations', '0010-words-of-messages')")
    old.close()
    store = SqliteStore(path)
    assert put_messages(store, make_message(1)) == 1
    store.close()
