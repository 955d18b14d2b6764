"""The rows of conversations: messages with their words, summaries, and how far each log is mirrored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from klaw_core import StoreError
from klaw_journals import JournalFileState, StoredMessage, Summary, changed_rows
from klaw_journals import Session as Chat
from klaw_store_postgres.texts import digest, from_milliseconds, from_text, to_milliseconds, to_text
from klaw_store_postgres.words import segments
from klaw_store_postgres.words.search import PostingsSearch
from klaw_store_postgres.words.tables import MESSAGES
from klaw_words.query import MAX_TERMS, compile_query, select
from klaw_words.searching import Weights
from klaw_words.treatment import index_text

if TYPE_CHECKING:
    from klaw_store_postgres.session import Session

_OWN = "tenant = %s AND generation = %s"
_CHAT = f"{_OWN} AND chat_id = %s"
_COLUMNS = "id, channel, chat_id, role, content, created_at, day, position, type, metadata"
_ROLES = ("user", "assistant", "system", "tool")
_TYPES = (None, "session_break", "subagent_result")


@frozen(eq=False, repr=False)
class PostgresMessages:
    """The rows of conversations, read and written in one transaction."""

    resource: Session

    def all(self, chat_id: str, /) -> Sequence[StoredMessage]:
        """Return every message of a chat."""
        return self._rows(f"{_CHAT} ORDER BY day, position", self._of(chat_id))

    def get(self, chat_id: str, ids: Sequence[str], /) -> Sequence[StoredMessage]:
        """Return the messages with these ids."""
        digests, names = [digest(name) for name in ids], [to_text(name) for name in ids]
        return self._rows(f"{_CHAT} AND id_digest = ANY(%s) AND id = ANY(%s)", (*self._of(chat_id), digests, names))

    def search(self, text: str, limit: int, chat_id: str | None = None, /) -> Sequence[StoredMessage]:
        """Return messages that hold any word of ``text``, by BM25."""
        searcher = PostingsSearch(self.resource, MESSAGES, Weights())
        if limit < 1 or not searcher.rows:
            return ()
        terms = select(compile_query(text), searcher.has)[:MAX_TERMS]
        within = None
        if chat_id is not None:
            rows = self.resource.rows(f"SELECT key FROM messages WHERE {_CHAT}", self._of(chat_id))
            within = np.array(sorted(key for (key,) in rows), np.int64)
        # Ties are ordered by chat and position, which the keys do not show.
        top = searcher.top(terms, limit, within, ties=True)
        scores = dict(zip(top.keys.tolist(), top.scores.tolist(), strict=True))
        rows = self.resource.rows(
            f"SELECT key, chat_id, day, position FROM messages WHERE {_OWN} AND key = ANY(%s)",
            (*self.resource.scope, list(scores)),
        )
        best = sorted(rows, key=lambda row: (-scores[row[0]], from_text(row[1]), *row[2:]))[:limit]
        keys = [row[0] for row in best]
        found = self.resource.rows(
            f"SELECT key, {_COLUMNS} FROM messages WHERE {_OWN} AND key = ANY(%s)", (*self.resource.scope, keys)
        )
        by_key = {key: _message(row) for key, *row in found}
        return tuple(by_key[key] for key in keys)

    def chats(self) -> Sequence[str]:
        """Return every chat of which anything is mirrored, in order of name."""
        tables = ("messages", "summaries", "message_files")
        # One step in the index for each chat, instead of a row for each message.
        following = f"SELECT chat_id FROM {{table}} WHERE {_OWN} {{after}} ORDER BY chat_id LIMIT 1"
        sql = " UNION ".join(
            f"""(WITH RECURSIVE found AS (({following.format(table=table, after="")}) UNION ALL
                    SELECT ({following.format(table=table, after="AND chat_id > found.chat_id")}) FROM found
                    WHERE chat_id IS NOT NULL)
                SELECT chat_id FROM found WHERE chat_id IS NOT NULL)"""
            for table in tables
        )
        return sorted(from_text(name) for (name,) in self.resource.rows(sql, self.resource.scope * 6))

    def session(self, chat_id: str, /) -> Chat | None:
        """Return the current session of a chat, or None if it has no messages."""
        first = self._one(chat_id, "created_at", "", "day, position")
        if first is None:
            return None
        last_break = self._one(chat_id, "created_at", "AND type = 'session_break'", "day DESC, position DESC")
        start = None if last_break is None else from_milliseconds(last_break)
        return Chat.of(chat_id, from_milliseconds(first), start, self._models(chat_id))

    def _models(self, chat_id: str) -> Iterator[object]:
        """Yield what the messages of assistants give as their model, latest first."""
        sql = f"""SELECT metadata FROM messages WHERE {_CHAT} AND role = 'assistant' AND metadata LIKE '%%"model"%%'
                  ORDER BY day DESC, position DESC"""
        for limit in ("LIMIT 10", "OFFSET 10"):  # almost always one of the first
            rows = self.resource.rows(f"{sql} {limit}", self._of(chat_id))
            yield from (json.loads(from_text(metadata)).get("model") for (metadata,) in rows)

    def summaries(self, chat_id: str, /) -> Sequence[Summary]:
        """Return a chat's summaries, oldest first."""
        rows = self.resource.rows(
            f"""SELECT content, file_path, created_at, from_message_id, to_message_id FROM summaries
                WHERE {_CHAT} ORDER BY number""",
            self._of(chat_id),
        )
        return tuple(
            Summary(chat_id, from_text(content), from_text(path), from_milliseconds(created), *map(_restored, between))
            for content, path, created, *between in rows
        )

    def files(self, chat_id: str, /) -> Mapping[date, JournalFileState]:
        """Return how far each log of a chat is mirrored, by day."""
        sql = f'SELECT day, "end", recipe, checksum FROM message_files WHERE {_CHAT}'
        rows = self.resource.rows(sql, self._of(chat_id))
        return {day: JournalFileState(chat_id, day, end, from_text(recipe), crc) for day, end, recipe, crc in rows}

    def insert(self, messages: Sequence[StoredMessage], /) -> int:
        """Add messages and return how many are new. Of two with one id in a chat, the earlier in place stays."""
        for message in messages:
            if message.role not in _ROLES or message.type not in _TYPES:
                raise StoreError(f"unknown message role or type: {message.role!r}, {message.type!r}")
        new, removed, added = changed_rows(messages, self._held)
        self._delete(removed)
        self._add(added)
        return new

    def _held(self, message: StoredMessage) -> tuple[int, date, int] | None:
        sql = f"SELECT key, day, position FROM messages WHERE {_CHAT} AND id_digest = %s AND id = %s"
        row = self.resource.row(sql, (*self._of(message.chat_id), digest(message.id), to_text(message.id)))
        return None if row is None else tuple(row)

    def put_file(self, file: JournalFileState, /) -> None:
        """Record how far a log is mirrored."""
        self.resource.run(
            """INSERT INTO message_files (tenant, generation, chat_id, day, "end", recipe, checksum)
               VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (tenant, generation, chat_id, day)
               DO UPDATE SET "end" = excluded."end", recipe = excluded.recipe, checksum = excluded.checksum""",
            (*self._of(file.chat_id), file.day, file.end, to_text(file.recipe), file.checksum),
        )

    def put_summaries(self, chat_id: str, summaries: Sequence[Summary], /) -> None:
        """Make these the chat's summaries."""
        self.resource.run(f"DELETE FROM summaries WHERE {_CHAT}", self._of(chat_id))
        rows = [
            (*self._of(chat_id), number, _escaped(one.from_message_id), _escaped(one.to_message_id),
             to_text(one.file_path), to_milliseconds(one.created_at), to_text(one.content))
            for number, one in enumerate(summaries)
        ]  # fmt: skip
        if rows:
            self.resource.run_many(
                """INSERT INTO summaries (tenant, generation, chat_id, number, from_message_id, to_message_id,
                       file_path, created_at, content) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)""",
                rows,
            )

    def purge(self, chat_id: str, /) -> int:
        """Remove everything of a chat; return how many messages that were."""
        rows = self.resource.rows(f"SELECT key FROM messages WHERE {_CHAT}", self._of(chat_id))
        self._delete([key for (key,) in rows])
        segments.erase(self.resource, MESSAGES)
        for table in ("summaries", "message_files"):
            self.resource.run(f"DELETE FROM {table} WHERE {_CHAT}", self._of(chat_id))
        return len(rows)

    def _of(self, chat_id: str) -> tuple[int, int, str]:
        return (*self.resource.scope, to_text(chat_id))

    def _one(self, chat_id: str, column: str, condition: str, order: str) -> Any:
        sql = f"SELECT {column} FROM messages WHERE {_CHAT} {condition} ORDER BY {order} LIMIT 1"
        return self.resource.value(sql, self._of(chat_id))

    def _add(self, messages: Sequence[StoredMessage]) -> None:
        if not messages:
            return
        sql = "SELECT nextval('message_keys') FROM generate_series(1, %s)"
        keys = sorted(key for (key,) in self.resource.rows(sql, (len(messages),)))
        self.resource.run_many(
            f"""INSERT INTO messages (tenant, generation, key, id_digest, {_COLUMNS})
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)""",
            [
                (*self.resource.scope, key, digest(one.id), to_text(one.id), to_text(one.channel),
                 to_text(one.chat_id), one.role, to_text(one.content), to_milliseconds(one.created_at), one.day,
                 one.position, one.type,
                 to_text(json.dumps(dict(one.metadata), ensure_ascii=False)) if one.metadata else None)
                for key, one in zip(keys, messages, strict=True)
            ],
        )  # fmt: skip
        words = [(key, (index_text(one.content),)) for key, one in zip(keys, messages, strict=True)]
        segments.add(self.resource, MESSAGES, words)

    def _delete(self, keys: Sequence[int]) -> None:
        if keys:
            segments.remove(self.resource, MESSAGES, keys)
            self.resource.run(
                f"DELETE FROM messages WHERE {_OWN} AND key = ANY(%s)", (*self.resource.scope, list(keys))
            )

    def _rows(self, where: str, values: tuple[object, ...]) -> tuple[StoredMessage, ...]:
        rows = self.resource.rows(f"SELECT {_COLUMNS} FROM messages WHERE {where}", values)
        return tuple(_message(row) for row in rows)


def _message(row: Any) -> StoredMessage:
    id_, channel, chat_id, role, content, created, day, position, type_, metadata = row
    return StoredMessage(
        from_text(id_),
        from_text(channel),
        from_text(chat_id),
        role,
        from_text(content),
        from_milliseconds(created),
        day,
        position,
        type_,
        json.loads(from_text(metadata)) if metadata else {},
    )


def _escaped(text: str | None) -> str | None:
    return None if text is None else to_text(text)


def _restored(text: str | None) -> str | None:
    return None if text is None else from_text(text)
