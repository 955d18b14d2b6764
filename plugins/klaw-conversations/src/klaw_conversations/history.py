"""``HistoryStore``: the messages of an agent's conversations by key, across sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from attrs import field, frozen, validators

from klaw_conversations.archive import Conversations, names_of
from klaw_conversations.journal import JournalEntry
from klaw_core import RecordError, operations
from klaw_journals import Chat, Message
from klaw_journals.checked_names import check_name
from klaw_journals.messages import SESSION_BREAK

_SUMMARY = "Summary of the conversation so far:"


def chat_of(key: str) -> Chat:
    """Return the chat of a key ``channel:chat`` or ``channel:chat:thread``. Raise RecordError."""
    channel, separator, rest = key.partition(":")
    if not separator:
        raise RecordError(f"invalid history key {key!r}", hint="a key has the form channel:chat:thread")
    return Chat(channel, rest.removesuffix(":"))


@operations
@frozen
class HistoryStore:
    """Messages by the key ``channel:chat:thread``, which stays the same when a new session starts.

    ``max_recent`` limits the result of :meth:`recent`; older messages are kept. Safe for concurrent threads and
    processes.

    ``compactor`` summarises all but the last messages of a chat, given its name and the number of messages to keep
    (``memory.extension(Facts).compact``). It is called in a thread behind :meth:`append` once more than
    ``compact_above`` messages are not in the summary (0: only by :meth:`compact`), and keeps ``keep`` of them.
    """

    conversations: Conversations
    max_recent: int = field(default=100)
    compactor: Callable[[str, int], object] | None = field(default=None, repr=False)
    compact_above: int = field(default=0, validator=validators.ge(0))
    keep: int = field(default=10, validator=validators.ge(0))

    def append(
        self,
        key: str,
        role: str,
        content: str,
        *,
        tool_calls: Sequence[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        ts: datetime | None = None,
    ) -> Message:
        """Append a message, dated now by default, and return it. Raise RecordError or StoreError."""
        chat = chat_of(key)
        meta: dict[str, Any] = {**(metadata or {}), **chat.meta}
        if tool_calls:
            meta["tool_calls"] = [dict(call) for call in tool_calls]
        message = self.conversations.append(Message(role, content, ts or datetime.now(UTC), meta=meta))
        if self.compactor is not None and self.compact_above:
            self.conversations.behind.submit(f"the summary of {chat.name}", partial(self._compact_if_due, chat))
        return message

    def append_nowait(self, key: str, role: str, content: str, **details: Any) -> None:
        """Append a message later, in the order of these calls, and return at once; the date is that of the call.

        ``details`` are those of :meth:`append`. This promises less: a message that is not written yet is in no answer
        and is lost if the process crashes, and an error (a full disk) is logged (logger ``klaw``) instead of raised.
        :meth:`flush`, and closing the memory, wait for it. Raise RecordError for an invalid key, or one with a secret.
        """
        chat = chat_of(key)
        for what, name in names_of(chat):  # now, because the name is in the message about an error
            check_name(self.conversations.redactor, what, name)
        later = partial(self.append, key, role, content, **{"ts": datetime.now(UTC), **details})
        self.conversations.behind.submit(f"a message of {chat.name} is lost", later)

    def flush(self, timeout_seconds: float | None = None) -> bool:
        """Wait for :meth:`append_nowait` and for summaries; return whether everything is written in time."""
        return self.conversations.behind.flush(timeout_seconds)

    def compact(self, key: str, keep: int | None = None) -> None:
        """Summarise all but the last ``keep`` messages now, as when a model's window is full.

        Raise RecordError if the store has no compactor, and the errors of the compactor.
        """
        if self.compactor is None:
            raise RecordError("this history has no compactor", hint="HistoryStore(..., compactor=facts.compact)")
        self.compactor(chat_of(key).name, self.keep if keep is None else keep)

    def prompt(self, key: str, count: int | None = None) -> tuple[Message, ...]:
        """Return the conversation for a model: the summary as a system message, then the messages after it.

        At most ``count`` messages (default: ``max_recent``) follow the summary. If it does not say which messages it
        covers, as after :meth:`set_summary`, they may be among them.
        """
        chat = chat_of(key)
        summaries = self.conversations.summaries(chat)
        recent = self.recent(key, count)
        if not summaries:
            return recent
        last = summaries[-1]
        covered = [number for number, message in enumerate(recent, 1) if message.id == last.to_message_id]
        text = f"{_SUMMARY}\n\n{self.conversations.redactor.text(last.content)}"
        return (Message("system", text, last.created_at, meta=chat.meta), *recent[sum(covered[-1:]) :])

    def _compact_if_due(self, chat: Chat) -> None:
        """Summarise a chat if it has more messages after the summary than allowed. Only the last ones are read."""
        lines = self.conversations.tail(chat, self.compact_above + 1)
        said = _said([line for line in lines if isinstance(line, JournalEntry)])
        summaries = self.conversations.summaries(chat)
        covered = summaries[-1].to_message_id if summaries else None
        if len(said) > self.compact_above and all(message.id != covered for message in said):
            self.compact(f"{chat.channel}:{chat.chat_id}")

    def recent(self, key: str, count: int | None = None) -> tuple[Message, ...]:
        """Return the last ``count`` messages (at most ``max_recent``), oldest first, to start a new session with."""
        wanted = min(self.max_recent if count is None else count, self.max_recent)
        asked = wanted
        while wanted > 0:
            lines = self.conversations.tail(chat_of(key), asked)
            entries = [line for line in lines if isinstance(line, JournalEntry)]
            said = _said(entries)
            if len(said) >= wanted or len(entries) < asked:
                return said[-wanted:]
            asked *= 2  # some of the entries were session breaks
        return ()

    def all(self, key: str) -> tuple[Message, ...]:
        """Return every message, oldest first."""
        return _said([line for line in self.conversations.read(chat_of(key)) if isinstance(line, JournalEntry)])

    def length(self, key: str) -> int:
        """Return the number of messages."""
        return len(self.all(key))

    def set_summary(self, key: str, text: str) -> None:
        """Replace the summary. Raise RecordError or StoreError."""
        self.conversations.add_summary(chat_of(key), text)

    def summary(self, key: str) -> str:
        """Return the summary, or ``""``."""
        summaries = self.conversations.summaries(chat_of(key))
        return summaries[-1].content if summaries else ""

    def purge(self, key: str) -> None:
        """Remove the history and the summary permanently, also from the files. Raise StoreError."""
        self.conversations.purge(chat_of(key))


def _said(entries: Sequence[JournalEntry]) -> tuple[Message, ...]:
    """Return the messages without session breaks and duplicates; a writer may have appended a message twice."""
    found: dict[str, Message] = {}
    for entry in entries:
        if entry.message.type != SESSION_BREAK:
            found.setdefault(entry.message.id, entry.message)
    return tuple(found.values())
