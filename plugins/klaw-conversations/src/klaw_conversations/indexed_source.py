"""The source of conversations: transcripts and summaries become documents, messages become rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from attrs import define, evolve, field

from klaw_conversations.archive import Conversations
from klaw_conversations.journal import JournalEntry
from klaw_conversations.names import full_name
from klaw_conversations.row_sync import RowSync
from klaw_conversations.source import CONVERSATIONS, ConversationSource
from klaw_conversations.summary_source import SummarySource
from klaw_core import (
    Divisible,
    Document,
    Entry,
    Forgetful,
    ForgetReport,
    RecordError,
    RowSource,
    Shrinking,
    SkippedEntry,
    Source,
    Store,
)
from klaw_journals import Chat, Log, Message
from klaw_journals.file_journals import FileLogs
from klaw_journals.trust import AGENT, FOREIGN


@define(eq=False)
class IndexedConversations(Source, Forgetful, Shrinking, Divisible, RowSource):
    """A source that reads the journal and also updates the rows of messages."""

    archive: Conversations
    roles: tuple[str, ...]
    # The size and the checksum of each log when it was read last, by the path of its document.
    _read: dict[str, tuple[int, int]] = field(factory=dict, init=False, repr=False)

    origin = CONVERSATIONS
    forgets_missing = True

    @property
    def row_sync(self) -> RowSync:
        """The synchronization of the rows with the journal."""
        return self.archive.row_sync

    @property
    def _documents(self) -> ConversationSource:
        return ConversationSource(self.row_sync.journal, self.roles, self.row_sync.redactor)

    @property
    def _summaries(self) -> SummarySource:
        return SummarySource(self.row_sync.summaries, self.row_sync.redactor)

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield the files of every chat, sorted by chat and day, and then the summaries of every chat."""
        yield from self._documents.scan()
        yield from self._summaries.scan()

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Render one file as a transcript, or a chat's summaries."""
        summaries = self._summaries
        log = self._log(entry.path)
        size = None if log is None else log.size
        checksum = None if log is None or size is None else log.checksum(0, size)
        if size is not None and checksum is not None:
            self._read[entry.path] = (size, checksum)
        return self._summary(summaries.read(entry)) if summaries.holds(entry.path) else self._documents.read(entry)

    def _summary(self, found: Document | SkippedEntry) -> Document | SkippedEntry:
        """Return the summaries of a chat, which are an agent's; foreign if anything in the chat is."""
        if isinstance(found, SkippedEntry):
            return found
        lines = self.row_sync.journal.read(Chat.parse(str(found.chat_id)))
        is_foreign = any(isinstance(line, JournalEntry) and line.message.trust == FOREIGN for line in lines)
        return evolve(found, trust=FOREIGN if is_foreign else AGENT)

    def changed(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return the documents whose logs no longer begin with what was read last."""
        return [path for path in paths if path in self._read and not self._is_still_in(path, *self._read[path])]

    def _is_still_in(self, path: str, size: int, checksum: int) -> bool:
        log = self._log(path)
        return log is not None and (log.size or 0) >= size and log.checksum(0, size) == checksum

    def _log(self, path: str) -> Log | None:
        """Return the log of a document; None if the path is not that of one."""
        if not self._summaries.holds(path):
            return self._documents.log(path)
        with suppress(IndexError, RecordError):
            return self.row_sync.summaries.log(Chat.parse(path.split("/")[1]))
        return None

    def prepare(self, store: Store[Any], /) -> Sequence[SkippedEntry]:
        """Bring the rows of messages in a store up to date; return what is wrong in the files. Raise StoreError.

        That is broken lines and repeated ids; and which listeners failed, and may have kept what was removed.
        """
        report = evolve(self.row_sync, store=store).sync()
        failed = (SkippedEntry(CONVERSATIONS, str(failure), keep=True) for failure in report.failures)
        return (*report.bad, *report.renamed, *failed)

    def carry_over(self, old: Store[Any], new: Store[Any], skipped: Sequence[SkippedEntry], /) -> None:
        """Copy the rows and the sync state of files that cannot be read now from the old store to the new one."""
        with old.read() as snapshot, new.write() as transaction:
            before, after = snapshot.messages, transaction.messages
            for name in before.chats():
                synced = after.files(name)
                for day, file in before.files(name).items():
                    path = f"{CONVERSATIONS}/{name}/{day.isoformat()}.jsonl"
                    if day not in synced and any(item.keep and _is_below(path, item.path) for item in skipped):
                        after.insert([message for message in before.all(name) if message.day == day])
                        after.put_file(file)

    def forgotten(self, paths: Iterable[str], /) -> Sequence[str]:
        """Return the documents that no longer exist, or none if some files cannot be read."""
        now = list(self.scan())
        if any(isinstance(item, SkippedEntry) and item.keep for item in now):
            return ()
        kept = {item.path for item in now}
        return [path for path in paths if path not in kept]

    def part(self, target: str, /) -> str | None:
        """Return the text of a message (``telegram_1/msg_001``) or of a chat (``conversations/telegram_1/``)."""
        if (chat := self._chat(target)) is not None:
            return "\n".join(line.message.content for line in self._said(chat))
        found = self._message(target)
        return None if found is None else found[1].content

    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget a message, given as chat and id, or a chat; return None if there is neither. Raise StoreError.

        The messages of a chat are forgotten first, so that other machines forget them, and then what is left of it.
        """
        if (chat := self._chat(target)) is not None:
            self.archive.remove(chat, {full_name(line.written) for line in self._said(chat)})
            self.archive.purge(chat)
            return ForgetReport((target,), 0)
        found = self._message(target)
        if found is None:
            return None
        chat, message = found
        self.archive.forget(chat, target.partition("/")[2])
        return ForgetReport((f"{chat.name}/{message.id}",), 0)

    def _chat(self, target: str) -> Chat | None:
        """Return the chat that ``conversations/telegram_123456/`` names; None if it has no files.

        ``telegram_123456/`` names none: it may be a message whose id a script has left empty.
        """
        name = target.removeprefix(f"{CONVERSATIONS}/").removesuffix("/")
        if target != f"{CONVERSATIONS}/{name}/":
            return None
        try:
            chat = Chat.parse(name)
        except RecordError:
            return None
        return chat if self.row_sync.journal.files(chat).files or self.row_sync.summaries.log(chat).exists else None

    def _said(self, chat: Chat) -> list[JournalEntry]:
        return [line for line in self.row_sync.journal.read(chat) if isinstance(line, JournalEntry)]

    def _message(self, target: str) -> tuple[Chat, Message] | None:
        name, _, message_id = target.partition("/")
        try:
            chat = Chat.parse(name)
        except RecordError:
            return None
        message = self.archive.find(chat, message_id) if message_id else None
        return None if message is None else (chat, message)

    def watch_paths(self) -> Sequence[Path]:
        """Return the directories of the journal and of the summaries, if they are stored in files."""
        logs = (self.row_sync.journal.logs, self.row_sync.summaries.logs)
        return [one.root for one in logs if isinstance(one, FileLogs)]

    def why_not_forgotten(self, path: str) -> tuple[str, str]:
        """Return why a day of a conversation cannot be forgotten, and what to do instead."""
        is_summary = self._summaries.holds(path)
        what = "the summaries" if is_summary else "a day"
        chat = quote(path.split("/")[1])
        all_of_it = quote(f"{CONVERSATIONS}/{path.split('/')[1]}/")
        return (
            f"{path} is {what} of a conversation, so the next `klaw index` would add it again",
            f"`klaw forget {chat}/MESSAGE` forgets one message, `klaw forget {all_of_it}` the chat with its summaries",
        )


def _is_below(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")
