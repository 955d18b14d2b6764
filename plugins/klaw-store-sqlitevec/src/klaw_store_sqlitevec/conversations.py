"""The tables of conversations: ``messages`` with its full-text index, ``sessions``, ``summaries``, ``message_files``.

``messages_fts`` contains the words of ``messages``, normalised like those of chunks. Both are written together, without
triggers, which would take twice the time. A message's key is explicit, because implicit row ids may change on VACUUM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
from attrs import field, frozen

from klaw_core import Migration
from klaw_store_sqlitevec.limits import clamp
from klaw_store_sqlitevec.metadata import parse_object
from klaw_store_sqlitevec.timestamps import from_text, to_text
from klaw_words.query import Term, match_expression, render
from klaw_words.treatment import index_text

if TYPE_CHECKING:
    from klaw_journals import JournalFileState, Session, StoredMessage, Summary

T = TypeVar("T")

# Deleting the words of a message so that no trace is left takes at least as long as adding those of so many again.
_REFILLED_PER_DELETED = 4

_TABLES = """
CREATE TABLE messages (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    channel TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    type TEXT CHECK (type IN ('session_break', 'subagent_result')),
    content TEXT NOT NULL,
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    created_at TEXT NOT NULL,
    day TEXT NOT NULL,          -- of the file that it stands in
    position INTEGER NOT NULL,  -- the byte of that file at which its line begins
    UNIQUE (chat_id, id)
);
CREATE INDEX idx_messages_chat ON messages (chat_id, created_at DESC);
CREATE INDEX messages_place ON messages (chat_id, day, position);
CREATE INDEX messages_break ON messages (chat_id, day, position) WHERE type = 'session_break';

CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = 'messages', content_rowid = 'key', tokenize = 'unicode61 remove_diacritics 2'
);
-- What is removed leaves no trace in the index's pages.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('secure-delete', 1);

CREATE TABLE sessions (
    chat_id TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    segment_start TEXT NOT NULL,
    created_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE summaries (
    id INTEGER PRIMARY KEY,
    chat_id TEXT NOT NULL,
    from_message_id TEXT,
    to_message_id TEXT,
    file_path TEXT NOT NULL,
    created_at TEXT NOT NULL,
    content TEXT NOT NULL
);
CREATE INDEX summaries_chat ON summaries (chat_id, id);

CREATE TABLE message_files (
    chat_id TEXT NOT NULL,
    day TEXT NOT NULL,
    end INTEGER NOT NULL,       -- mirrored up to this byte
    recipe TEXT NOT NULL,
    PRIMARY KEY (chat_id, day)
) WITHOUT ROWID;
"""

# Contentless, because the indexed text is not the message but the result of :func:`index_text`.
_TREATED_WORDS = """
DROP TABLE messages_fts;
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('secure-delete', 1);
"""

_INSERT_WORDS = "INSERT INTO messages_fts (rowid, content) VALUES (?, ?)"

_COLUMNS = "id, channel, chat_id, role, content, created_at, day, position, type, metadata"


def create_tables(connection: apsw.Connection) -> None:
    """Create the tables of conversations."""
    connection.execute(_TABLES)


def treat_words(connection: apsw.Connection) -> None:
    """Create the index of words again, with words normalised like those of chunks."""
    connection.execute(_TREATED_WORDS)
    fill_words(connection)


def refill_words(connection: apsw.Connection) -> None:
    """Clear the word index and index every message again."""
    connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('delete-all')")
    fill_words(connection)


def fill_words(connection: apsw.Connection) -> None:
    """Index the words of every message into an empty index."""
    rows: list[Any] = connection.execute("SELECT key FROM messages").fetchall()
    for (key,) in rows:
        try:
            content = connection.execute("SELECT content FROM messages WHERE key = ?", (key,)).get
        except UnicodeDecodeError:  # a damaged row; the doctor finds it
            continue
        connection.execute(_INSERT_WORDS, (key, index_text(content)))


#: The store's migrations that create these tables.
CONVERSATIONS: Migration[apsw.Connection] = Migration("0002-conversations", create_tables)
WORDS: Migration[apsw.Connection] = Migration("0010-words-of-messages", treat_words)


@frozen(eq=False, repr=False)
class SqliteMessages:
    """The rows of conversations, read and written through one connection's transaction."""

    resource: apsw.Connection
    # Not empty if something must also be erased from the bytes of the files.
    erasing: set[str] = field(factory=set)

    def all(self, chat_id: str, /) -> Sequence[StoredMessage]:
        """Return the messages of a chat in order."""
        return self._rows("chat_id = ? ORDER BY day, position", (chat_id,))

    def get(self, chat_id: str, ids: Sequence[str], /) -> Sequence[StoredMessage]:
        """Return the messages with these ids."""
        found = (self._rows("chat_id = ? AND id = ?", (chat_id, name)) for name in dict.fromkeys(ids))
        return tuple(message for each in found for message in each)

    def search(self, text: str, limit: int, chat_id: str | None = None, /) -> Sequence[StoredMessage]:
        """Return messages with any word of ``text``, ranked by BM25."""
        match = match_expression(text, self._has)
        if not match:
            return ()
        where = (
            "messages_fts MATCH ?1 AND (?2 IS NULL OR messages.chat_id = ?2) "
            "ORDER BY bm25(messages_fts), chat_id, day, position LIMIT ?3"
        )
        joined = "messages_fts JOIN messages ON messages.key = messages_fts.rowid"
        return self._rows(where, (match, chat_id, clamp(limit)), joined)

    def _has(self, term: Term) -> bool:
        sql = "SELECT 1 FROM messages_fts WHERE messages_fts MATCH ? LIMIT 1"
        return self.resource.execute(sql, (render([term]),)).fetchone() is not None

    def chats(self) -> Sequence[str]:
        """Return the names of the chats that have rows, sorted."""
        sql = """SELECT chat_id FROM sessions UNION SELECT chat_id FROM message_files
                 UNION SELECT chat_id FROM summaries ORDER BY 1"""
        return [name for (name,) in self.resource.execute(sql)]

    def session(self, chat_id: str, /) -> Session | None:
        """Return the state of a chat; None if it has no messages, or its row is damaged."""
        from klaw_journals import Session

        row = self.resource.execute(
            "SELECT model, segment_start, created_at FROM sessions WHERE chat_id = ?", (chat_id,)
        ).fetchone()
        try:
            if row is not None:
                _require(row)
                return Session(chat_id, row[0], from_text(row[1]), from_text(row[2]))
        except ValueError:
            return None
        return None

    def summaries(self, chat_id: str, /) -> Sequence[Summary]:
        """Return a chat's summaries, oldest first."""
        from klaw_journals import Summary

        def made(row: Any) -> Summary:
            content, path, created, *between = row
            _require((content, path), (), *between)
            return Summary(chat_id, content, path, from_text(created), *between)

        sql = "SELECT content, file_path, created_at, from_message_id, to_message_id FROM summaries WHERE id = ?"
        keys: list[Any] = self.resource.execute(
            "SELECT id FROM summaries WHERE chat_id = ? ORDER BY id", (chat_id,)
        ).fetchall()
        found = (_readable(made, self.resource, sql, key) for (key,) in keys)
        return tuple(summary for summary in found if summary is not None)

    def files(self, chat_id: str, /) -> Mapping[date, JournalFileState]:
        """Return, by day, how much of each journal file of a chat the rows contain."""
        from klaw_journals import JournalFileState

        sql = "SELECT day, end, recipe, checksum FROM message_files WHERE chat_id = ?"
        rows: list[Any] = self.resource.execute(sql, (chat_id,)).fetchall()
        files = {}
        for day, end, recipe, checksum in rows:
            with suppress(ValueError):  # a damaged row: the file is mirrored again
                _require((day, recipe), (end, 0 if checksum is None else checksum))
                state = JournalFileState(chat_id, date.fromisoformat(day), end, recipe, checksum)
                files[state.day] = state
        return files

    def insert(self, messages: Sequence[StoredMessage], /) -> int:
        """Add messages; return the number of new ones. Of two with the same id in a chat, the earlier place stays."""
        from klaw_journals import changed_rows

        new, removed, added = changed_rows(messages, self._held)
        self._delete(removed)
        for message in added:
            self._add(message)
        for chat_id in dict.fromkeys(message.chat_id for message in messages):
            self._derive_session(chat_id)
        return new

    def _held(self, message: StoredMessage) -> tuple[tuple[int, str], date, int] | None:
        """Return the key and the content, the day and the position of the row with a message's id; None without one."""
        sql = "SELECT key, content, day, position FROM messages WHERE chat_id = ? AND id = ?"
        row: Any = self.resource.execute(sql, (message.chat_id, message.id)).fetchone()
        if row is None:
            return None
        try:
            return row[:2], date.fromisoformat(row[2]), int(row[3])
        except (TypeError, ValueError):  # a damaged row: the message replaces it
            return row[:2], date.max, 0

    def put_file(self, file: JournalFileState, /) -> None:
        """Record how much of a journal file the rows contain."""
        self.resource.execute(
            "INSERT INTO message_files (chat_id, day, end, recipe, checksum) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (chat_id, day) DO UPDATE "
            "SET end = excluded.end, recipe = excluded.recipe, checksum = excluded.checksum",
            (file.chat_id, file.day.isoformat(), file.end, file.recipe, file.checksum),
        )

    def put_summaries(self, chat_id: str, summaries: Sequence[Summary], /) -> None:
        """Replace the chat's summaries; the text of one that is removed is also erased from the bytes of the files."""
        where, values = "FROM summaries WHERE chat_id = ?", (chat_id,)
        held = {content for (content,) in self.resource.execute(f"SELECT CAST(content AS BLOB) {where}", values)}
        if held - {summary.content.encode() for summary in summaries}:
            self.erasing.add("summaries")
        self.resource.execute(f"DELETE {where}", values)
        self.resource.executemany(
            "INSERT INTO summaries (chat_id, from_message_id, to_message_id, file_path, created_at, content) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                (
                    chat_id,
                    summary.from_message_id,
                    summary.to_message_id,
                    summary.file_path,
                    to_text(summary.created_at),
                    summary.content,
                )
                for summary in summaries
            ),
        )

    def purge(self, chat_id: str, /) -> int:
        """Remove all rows of a chat; return the number of messages."""
        self.erasing.add("messages")
        where, values = "WHERE chat_id = ?", (chat_id,)
        rows: list[Any] = self.resource.execute(f"SELECT key FROM messages {where}", values).fetchall()
        (others,) = next(self.resource.execute("SELECT count(*) FROM messages WHERE chat_id <> ?", values))
        try:
            if others > _REFILLED_PER_DELETED * len(rows):
                whole: list[Any] = self.resource.execute(
                    f"SELECT key, content FROM messages {where}", values
                ).fetchall()
                self._delete(whole)
                refill = False
            else:
                refill = bool(rows)
        except UnicodeDecodeError:  # the words of an unreadable message cannot be removed individually
            refill = True
        if refill:
            self.resource.execute(f"DELETE FROM messages {where}", values)
            refill_words(self.resource)
        for table in ("sessions", "summaries", "message_files"):
            self.resource.execute(f"DELETE FROM {table} WHERE chat_id = ?", (chat_id,))
        return len(rows)

    def _add(self, message: StoredMessage) -> None:
        metadata = json.dumps(dict(message.metadata), ensure_ascii=False) if message.metadata else None
        values = (
            message.id,
            message.channel,
            message.chat_id,
            message.role,
            message.content,
            to_text(message.created_at),
            message.day.isoformat(),
            message.position,
            message.type,
            metadata,
        )
        self.resource.execute(f"INSERT INTO messages ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        key = self.resource.last_insert_rowid()
        self.resource.execute(_INSERT_WORDS, (key, index_text(message.content)))

    def _delete(self, rows: Sequence[tuple[int, str]]) -> None:
        """Remove messages, given with the content from which their words were indexed."""
        forget = "INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', ?, ?)"
        self.resource.executemany(forget, ((key, index_text(content)) for key, content in rows))
        self.resource.executemany("DELETE FROM messages WHERE key = ?", ((key,) for key, _ in rows))

    def _derive_session(self, chat_id: str) -> None:
        """Compute the chat's session from its messages."""
        self.resource.execute(
            """
            INSERT INTO sessions (chat_id, model, segment_start, created_at)
            SELECT ?1, COALESCE(spoken.model, ''), COALESCE(break.created_at, first.created_at), first.created_at
            FROM (SELECT created_at FROM messages WHERE chat_id = ?1 ORDER BY day, position LIMIT 1) AS first
            LEFT JOIN (SELECT created_at FROM messages WHERE chat_id = ?1 AND type = 'session_break'
                       ORDER BY day DESC, position DESC LIMIT 1) AS break
            LEFT JOIN (SELECT metadata ->> '$.model' AS model
                       FROM messages WHERE chat_id = ?1 AND role = 'assistant'
                       AND json_type(metadata, '$.model') = 'text' AND metadata ->> '$.model' <> ''
                       ORDER BY day DESC, position DESC LIMIT 1) AS spoken
            WHERE TRUE  -- the parser would take ON for a join's
            ON CONFLICT (chat_id) DO UPDATE SET
                model = excluded.model, segment_start = excluded.segment_start, created_at = excluded.created_at
            """,
            (chat_id,),
        )

    def _rows(self, where: str, values: tuple[object, ...], joined: str = "messages") -> tuple[StoredMessage, ...]:
        """Return messages without damaged ones."""
        sql = f"SELECT {{}} FROM {joined} WHERE {where}"
        columns = ", ".join(f"messages.{name}" for name in _COLUMNS.split(", "))
        try:
            return tuple(_message(row) for row in self.resource.execute(sql.format(columns), values))
        except ValueError:  # one row is damaged; read them one by one
            keys: list[Any] = self.resource.execute(sql.format("messages.key"), values).fetchall()
            alone = f"SELECT {columns} FROM messages WHERE key = ?"
            found = (_readable(_message, self.resource, alone, key) for (key,) in keys)
            return tuple(message for message in found if message is not None)


def _readable(make: Callable[[Any], T], connection: apsw.Connection, sql: str, key: int) -> T | None:
    """Return the value built from one row; None if the row is damaged."""
    try:
        row: Any = connection.execute(sql, (key,)).fetchone()
        return None if row is None else make(row)  # an index may name a row that does not exist
    except ValueError:
        return None


def _require(texts: Sequence[object], numbers: Sequence[object] = (), *optional: object) -> None:
    """Raise ValueError unless these values of a row have their types: text, integers, and text or NULL."""
    texts = [*texts, *(value for value in optional if value is not None)]
    if not all(isinstance(value, str) for value in texts) or not all(isinstance(value, int) for value in numbers):
        raise ValueError("a value of another type")


def _message(row: tuple[Any, ...]) -> StoredMessage:
    from klaw_journals import StoredMessage

    id_, channel, chat_id, role, content, created, day, position, type_, metadata = row
    _require((id_, channel, chat_id, role, content, day), (position,), type_)
    return StoredMessage(
        id_,
        channel,
        chat_id,
        role,
        content,
        from_text(created),
        date.fromisoformat(day),
        position,
        type_,
        parse_object(metadata) if metadata else {},
    )
