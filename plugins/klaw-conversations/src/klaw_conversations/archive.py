"""``Conversations``, the class of ``Memory.conversations``: messages are written to the journal, then to the store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial
from shlex import quote
from typing import Any

from attrs import field, frozen

from klaw_conversations.journal import Journal, JournalEntry, JournalLine, chosen
from klaw_conversations.names import full_name
from klaw_conversations.row_sync import RowSync
from klaw_conversations.row_values import SyncReport
from klaw_conversations.source import CONVERSATIONS, document_path
from klaw_conversations.summaries import summaries_path
from klaw_conversations.writing_behind import WriteBehind
from klaw_core import NotFoundError, QueryError, Store, StoreError, StoreLockedError, operations, quoted
from klaw_journals import Chat, Message, MessageReader, Session, StoredMessage, Summary
from klaw_journals.checked_names import check_name
from klaw_journals.messages import SESSION_BREAK
from klaw_redaction import Redactor

_LOG = logging.getLogger("klaw")
# Messages in an error message.
_MAX_LISTED = 5
_MAX_DOCUMENTS = 1_000_000  # of a chat; it has one a day


@frozen
class ListedChat:
    """A chat, the first and the last day (UTC) with messages, and the number of such days."""

    name: str
    first_day: date
    last_day: date
    days: int


def names_of(chat: Chat, *ids: str | None) -> Iterator[tuple[str, str]]:
    """Yield what each name of a chat and of messages in it is called, and the name: none may contain a secret."""
    yield "the name of a chat", f"{chat.channel}:{chat.chat_id}"
    yield "the name of a chat", chat.name
    yield "the id of a message", " ".join(filter(None, ids))


@operations
@frozen
class Conversations:
    """The messages of all chats. Safe for concurrent threads and processes.

    A message is written to the journal on disk before it becomes a row. If a rebuild blocks writers, the next append or
    index run adds the row; nothing is lost, because rows are derived from the journal. Messages are read unchanged from
    the journal; secrets are redacted in rows.
    """

    row_sync: RowSync
    forget_documents: Callable[[Sequence[str]], object] = lambda _paths: None
    on_append: Callable[[Message], None] = lambda _message: None
    on_removal: Callable[[], object] = lambda: None
    #: Writes messages for callers that do not wait; the memory waits for it when it closes.
    behind: WriteBehind = field(factory=WriteBehind, eq=False, repr=False)

    @property
    def journal(self) -> Journal:
        """The journal files."""
        return self.row_sync.journal

    @property
    def redactor(self) -> Redactor:
        """Redacts messages before they are indexed or given to a model."""
        return self.row_sync.redactor

    def append(self, message: Message) -> Message:
        """Append a message and return it with its id. Raise RecordError or StoreError.

        Once the message is in the journal, an error of the database raises nothing: the next index run makes the
        message findable.
        """
        return self.append_many([message])[0]

    def append_many(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Append messages in order and return them with their ids. Raise the errors of :meth:`append`.

        A message whose id another message of the chat has is returned with a longer one, by which all readers know it.
        """
        given = tuple(messages)
        for message in given:
            self._check_names(Chat.of(message.meta), message.id)
        entries = self.journal.append_entries(given)
        for chat, day in dict.fromkeys((entry.file.chat, entry.file.day) for entry in entries):
            self._mirror(chat, partial(self.row_sync.sync_file, chat, day))
        written = tuple(
            self._named(entry) if message.id else entry.message for message, entry in zip(given, entries, strict=True)
        )
        for message in written:
            self.on_append(message)
        return written

    def _check_names(self, chat: Chat, *ids: str | None) -> None:
        """Raise RecordError if the name of a chat, or the id of a message, contains a secret."""
        for what, name in names_of(chat, *ids):
            check_name(self.redactor, what, name)

    def _shown(self, chat: Chat) -> str:
        """Return the name of a chat for an error. Its escapes would hide a secret."""
        plain = f"{chat.channel}:{chat.chat_id}"
        redacted = self.redactor.text(plain)
        return chat.name if redacted == plain else redacted

    def _named(self, entry: JournalEntry) -> Message:
        """Return the message of an entry with its name. A new id needs no other name."""
        named: Sequence[JournalLine] = (entry,)
        with self._later(entry.file.chat):
            named = self.journal.with_names(entry.file.chat, [entry], self.row_sync.names.find_first)
        (line,) = named
        return line.message if isinstance(line, JournalEntry) else entry.message

    def _mirror(self, chat: Chat, sync: Callable[[], SyncReport]) -> None:
        """Update rows. A warning names each failure to remove what had left the files, which no later run repeats."""
        with self._later(chat):
            for failure in sync().failures:
                _LOG.warning("text that was removed from %s may be left: %s", self._shown(chat), failure)

    @contextmanager
    def _later(self, chat: Chat) -> Iterator[None]:
        """Leave to the next index run what the database refuses; a warning says so, except during a lock.

        The journal has the record already: after an exception, the caller would write it again.
        """
        try:
            yield
        except StoreLockedError:
            pass
        except StoreError as error:
            what = "what was said in %s is in the journal, and will be found after the next `klaw index`: %s"
            _LOG.warning(what, self._shown(chat), error)

    def session_break(self, chat: Chat, ts: datetime | None = None) -> Message:
        """Start a new segment of a chat (now, by default), as ``/new`` does. Raise StoreError."""
        return self.append(Message("system", "", ts or datetime.now(UTC), type=SESSION_BREAK, meta=chat.meta))

    def window(self, chat: Chat, limit: int = 100) -> tuple[Message, ...]:
        """Return the last messages of a chat's current segment, oldest first, for a model's prompt."""
        return self.journal.window(chat, limit, self.row_sync.names.find_first)

    def tail(self, chat: Chat, count: int) -> tuple[JournalLine, ...]:
        """Return a chat's last messages, oldest first, and the bad lines among and after them."""
        return self.journal.tail(chat, count, self.row_sync.names.find_first)

    def read(self, chat: Chat, since: datetime | None = None, until: datetime | None = None) -> Iterator[JournalLine]:
        """Yield a chat's messages in order, and a description of each invalid line."""
        return self.journal.read(chat, since, until)

    def search(self, text: str, limit: int = 10, chat: Chat | None = None) -> Sequence[StoredMessage]:
        """Return messages that contain any word of ``text``, best first; ``Memory.search`` searches chunks instead."""
        with self._store.read() as snapshot:
            rows: MessageReader = snapshot.messages
            return rows.search(text, limit, None if chat is None else chat.name)

    def chats(self) -> tuple[ListedChat, ...]:
        """Return every chat, the most recently active first. Only the names of the journal's files are read."""
        days: dict[str, list[date]] = {}
        for file in self.journal.files().files:
            days.setdefault(file.chat.name, []).append(file.day)
        listed = (ListedChat(name, min(known), max(known), len(known)) for name, known in days.items())
        return tuple(sorted(listed, key=lambda chat: (-chat.last_day.toordinal(), chat.name)))

    def session(self, chat: Chat) -> Session | None:
        """Return the state of a chat, or None if it has no messages."""
        with self._store.read() as snapshot:
            rows: MessageReader = snapshot.messages
            return rows.session(chat.name)

    def add_summary(
        self,
        chat: Chat,
        content: str,
        *,
        from_message_id: str | None = None,
        to_message_id: str | None = None,
        created_at: datetime | None = None,
    ) -> Summary:
        """Store a summary of a chat, in addition to its earlier ones. Raise RecordError or StoreError."""
        self._check_names(chat, from_message_id, to_message_id)
        files = self.row_sync.summaries
        moment = created_at or datetime.now(UTC)
        summary = files.summary(chat, content, moment, from_message_id, to_message_id)
        files.append(chat, summary)
        self._mirror(chat, partial(self.row_sync.sync_summaries, chat))
        return summary

    def summaries(self, chat: Chat) -> tuple[Summary, ...]:
        """Return a chat's summaries, oldest first."""
        return self.row_sync.summaries.read(chat)

    def sync(self) -> SyncReport:
        """Update the rows from the journal. Raise StoreError."""
        return self.row_sync.sync()

    def find(self, chat: Chat, message_id: str) -> Message | None:
        """Return the unredacted message with an id or a full name, or None."""
        said = (line for line in self.journal.read(chat) if isinstance(line, JournalEntry))
        found = chosen(said, [message_id])
        return found[0].message if found else None

    def forget(self, chat: Chat, ids: str | Collection[str]) -> int:
        """Delete single messages permanently, as :meth:`remove` does; return the number of deleted messages.

        Raise NotFoundError, with nothing deleted, if the journal lacks one of the ids, and QueryError if different
        messages have one of them: afterwards the id would name another one, so they are named by their full names.
        Raise StoreError.
        """
        wanted = {ids} if isinstance(ids, str) else set(ids)
        said = [line for line in self.journal.read(chat) if isinstance(line, JournalEntry)]
        for name in sorted(wanted):
            if not chosen(said, [name]):
                raise NotFoundError(
                    f"{self._shown(chat)} has no message {quoted(name, 200)}", hint="`klaw logs --json` shows ids"
                )
            same = dict.fromkeys(full_name(line.written) for line in said if line.id == name)
            if len(same) > 1:
                named = [f"{chat.name}/{each}" for each in list(same)[:_MAX_LISTED]]
                listed = " or ".join(f"`klaw forget {quote(each)}`" for each in named)
                raise QueryError(
                    f"{len(same):,} messages of {self._shown(chat)} have the id {quoted(name, 200)}",
                    hint=f"forget one of them: {listed}; `klaw logs --json` shows them",
                )
        going = chosen(said, wanted)
        self.remove(chat, wanted)
        return len(going)

    def remove(self, chat: Chat, ids: Collection[str]) -> int:
        """Remove single messages permanently: from the files, the rows, the chunks and the cache.

        Return the number of removed rows. The summaries of these messages are removed first, because they can only be
        found while the messages exist. After a crash the next index run removes the rest. Raise StoreError.
        """
        said = [line for line in self.journal.read(chat) if isinstance(line, JournalEntry)]
        going = frozenset(line.message.id for line in chosen(said, ids))
        if not going:
            return 0
        with self._store.read() as snapshot:
            before = len(snapshot.messages.all(chat.name))
        self.row_sync.summaries.forget(chat, [line.message.id for line in said], going)
        changed = self.journal.remove(chat, ids)
        report = self.row_sync.mirror_again(chat, going)
        self.on_removal()
        for file in changed:
            file.log.drop_empty()  # or there would be one more for each day of a chat that forgets everything
        for failure in report.failures:
            raise failure
        with self._store.read() as snapshot:
            return before - len(snapshot.messages.all(chat.name))

    def purge(self, chat: Chat) -> int:
        """Remove a chat permanently: its files, rows, chunks and summaries; return the number of removed rows.

        The files are removed first, that of the summaries before those of the messages: it can only be found while
        there is a chat. After a crash this or the next index run removes the rest. Raise StoreError.
        """
        files = self.journal.files(chat).files
        self.row_sync.summaries.remove(chat)
        for file in files:
            file.log.delete()
        with self._store.write() as transaction:
            removed: int = transaction.messages.purge(chat.name)
        paths = [*(document_path(file) for file in files), summaries_path(chat), *self._indexed(chat)]
        self.forget_documents(list(dict.fromkeys(paths)))
        return removed

    def _indexed(self, chat: Chat) -> Iterator[str]:
        """Yield the documents of a chat in the index; some have no file if a crash interrupted a purge."""
        with self._store.read() as snapshot:
            for collection in snapshot.collections():
                found = snapshot.documents(collection, f"{CONVERSATIONS}/{chat.name}/", "", _MAX_DOCUMENTS)
                yield from (record.path for record in found)

    @property
    def _store(self) -> Store[Any]:
        return self.row_sync.store
