"""The rows of conversations in the store ``memory``: a dictionary of messages, and plain Python over it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

from attrs import frozen

from klaw_core import StoreError
from klaw_journals import JournalFileState, Session, StoredMessage, Summary, changed_rows
from klaw_testing.memory_tables import Tables
from klaw_words.query import Term, compile_query, select
from klaw_words.treatment import fold, index_text

_BREAK = "session_break"
_ROLES = ("user", "assistant", "system", "tool")
_TYPES = (None, _BREAK, "subagent_result")
_WORD = re.compile(r"[^\W_]+")


@frozen
class MemoryMessages:
    """The messages of a snapshot's or a transaction's tables."""

    tables: Tables

    def all(self, chat_id: str, /) -> Sequence[StoredMessage]:
        """Return every message of a chat, in order of place."""
        own = (message for (chat, _), message in self.tables.messages.items() if chat == chat_id)
        return tuple(sorted(own, key=lambda message: message.place))

    def get(self, chat_id: str, ids: Sequence[str], /) -> Sequence[StoredMessage]:
        """Return the messages with these ids."""
        found = (self.tables.messages.get((chat_id, name)) for name in dict.fromkeys(ids))
        return tuple(message for message in found if message is not None)

    def search(self, text: str, limit: int, chat_id: str | None = None, /) -> Sequence[StoredMessage]:
        """Return the messages with the most words of ``text``."""
        own = [(message, _words(message.content)) for message in self.tables.messages.values()]
        wanted = select(compile_query(text), lambda term: any(_holds(words, term) for _, words in own))
        found = [
            (sum(_holds(words, term) for term in wanted), message)
            for message, words in own
            if chat_id in (None, message.chat_id)
        ]
        found.sort(key=lambda item: (-item[0], item[1].chat_id, item[1].place))
        return tuple(message for words, message in found if words)[: max(limit, 0)]

    def chats(self) -> Sequence[str]:
        """Return the names of the chats that have rows."""
        tables = self.tables
        return sorted(
            {chat for chat, _ in tables.messages}
            | {chat for chat, _ in tables.message_files}
            | {chat for chat, summaries in tables.summaries.items() if summaries}
        )

    def session(self, chat_id: str, /) -> Session | None:
        """Return the state of a chat; None if it has no messages."""
        messages = self.all(chat_id)
        if not messages:
            return None
        breaks = [message for message in messages if message.type == _BREAK]
        models = (message.metadata.get("model") for message in reversed(messages) if message.role == "assistant")
        return Session.of(chat_id, messages[0].created_at, breaks[-1].created_at if breaks else None, models)

    def summaries(self, chat_id: str, /) -> Sequence[Summary]:
        """Return a chat's summaries, oldest first."""
        return self.tables.summaries.get(chat_id, ())

    def files(self, chat_id: str, /) -> Mapping[date, JournalFileState]:
        """Return how much of each journal file of a chat the rows contain."""
        return {day: file for (chat, day), file in self.tables.message_files.items() if chat == chat_id}

    def insert(self, messages: Sequence[StoredMessage], /) -> int:
        """Add messages. Of two messages with the same id in a chat, the one at the earlier place stays."""
        for message in messages:
            if message.role not in _ROLES or message.type not in _TYPES:
                raise StoreError(f"unknown message role or type: {message.role!r}, {message.type!r}")
        held = self.tables.messages

        def row(message: StoredMessage) -> tuple[None, date, int] | None:
            old = held.get((message.chat_id, message.id))
            return None if old is None else (None, *old.place)

        new, _, added = changed_rows(messages, row)
        held.update(((message.chat_id, message.id), message) for message in added)
        return new

    def put_file(self, file: JournalFileState, /) -> None:
        """Record how much of a journal file the rows contain."""
        self.tables.message_files[file.chat_id, file.day] = file

    def put_summaries(self, chat_id: str, summaries: Sequence[Summary], /) -> None:
        """Replace the chat's summaries."""
        self.tables.summaries[chat_id] = tuple(summaries)

    def purge(self, chat_id: str, /) -> int:
        """Remove all rows of a chat."""
        keys = [key for key in self.tables.messages if key[0] == chat_id]
        for key in keys:
            del self.tables.messages[key]
        for file in [key for key in self.tables.message_files if key[0] == chat_id]:
            del self.tables.message_files[file]
        self.tables.summaries.pop(chat_id, None)
        return len(keys)


def _words(text: str) -> str:
    """Return the words of a text, each surrounded by spaces."""
    return f" {' '.join(_WORD.findall(fold(index_text(text))))} "


def _holds(words: str, term: Term) -> bool:
    return f" {' '.join(term.words)}{'' if term.prefix else ' '}" in words
