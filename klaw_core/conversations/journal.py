"""The journal of conversations: ``{root}/{channel}_{chat_id}/YYYY-MM-DD.jsonl``."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen

from klaw_core.conversations.chat import Chat
from klaw_core.conversations.message import SESSION_BREAK, Message
from klaw_core.errors import RecordError
from klaw_core.files.journals import as_logs, shown_path
from klaw_core.files.timestamps import as_utc, format_ts
from klaw_core.interfaces.journal import Log, LogFolder
from klaw_core.values.journals import BadLine, LogLine, LogRecord
from klaw_core.values.runs import SkippedEntry
from klaw_core.values.text import text_hash

_SUFFIX = ".jsonl"
_DIGEST_CHARACTERS = 16


@frozen
class ChatFile:
    """The file with the messages of one chat on one day (UTC)."""

    chat: Chat
    day: date
    log: Log

    @property
    def name(self) -> str:
        """The file's name: ``2026-02-24.jsonl``."""
        return f"{self.day.isoformat()}{_SUFFIX}"


@frozen
class Listing:
    """The journal's files, sorted by chat and day, and the entries that are not journal files."""

    files: tuple[ChatFile, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()


@frozen
class JournalEntry:
    """A message and its bytes in a log, from ``offset`` to ``end``.

    It is a ``duplicate`` if a message with the same id came before it in the same read.
    """

    message: Message
    file: ChatFile
    offset: int
    end: int
    duplicate: bool = False


#: The result of reading one line of the journal.
JournalLine: TypeAlias = JournalEntry | BadLine


@frozen
class Journal:
    """The append-only journal of all messages. Safe for concurrent threads and processes.

    The messages of a chat are ordered by day and then by line, so a clock that is set back within a day does not
    change the order. ``logs`` can be given as the path of a directory.
    """

    logs: LogFolder = field(converter=as_logs)

    def append(self, message: Message) -> Message:
        """Write a message to the file of its chat and day; it is on disk when this returns.

        Return the message as written. A message without an id gets a unique one: chat, time, offset in the file and a
        hash of the text. Raise RecordError, also for a message over 1 MiB, or StoreError.
        """
        return self.append_many([message])[0]

    def append_many(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Write messages, grouped by chat and day, and return them as written, in the given order.

        Raise the errors of :meth:`append`; some of the messages may then have been written, each of them completely.
        """
        batch = tuple(messages)
        shares: dict[tuple[Chat, date], list[int]] = {}
        chats = [Chat.of(message.meta) for message in batch]
        for index, (message, chat) in enumerate(zip(batch, chats, strict=True)):
            shares.setdefault((chat, message.ts.date()), []).append(index)
        written: dict[int, Message] = {}
        for share, indices in shares.items():
            records = self.file(*share).log.append(*(_with_id(batch[index], chats[index]) for index in indices))
            written.update(zip(indices, (Message.parse(record.value) for record in records), strict=True))
        return tuple(written[index] for index in range(len(batch)))

    def remove(self, chat: Chat, ids: Collection[str]) -> tuple[ChatFile, ...]:
        """Remove messages permanently; return the changed files. Unknown ids are ignored. Raise StoreError."""
        wanted = frozenset(ids)
        return tuple(
            file for file in self.files(chat).files if file.log.remove(lambda record: record.value.get("id") in wanted)
        )

    def session_break(self, chat: Chat, ts: datetime | None = None) -> Message:
        """Start a new segment of a chat (now, by default), as ``/new`` does. Raise StoreError."""
        return self.append(Message("system", "", ts or datetime.now(UTC), type=SESSION_BREAK, meta=chat.meta))

    def read(self, chat: Chat, since: datetime | None = None, until: datetime | None = None) -> Iterator[JournalLine]:
        """Yield a chat's messages in order, and a :class:`BadLine` for each invalid line.

        ``since`` is inclusive and ``until`` exclusive; both must be timezone-aware. Only the files of those days are
        read. A repeated message is yielded and marked as duplicate. Invalid content is reported, not raised.
        """
        first = None if since is None else as_utc(since)
        last = None if until is None else as_utc(until)
        seen: set[str] = set()
        for file in self.files(chat).files:
            if (first and file.day < first.date()) or (last and file.day > last.date()):
                continue
            for line in self.read_file(file):
                if isinstance(line, JournalEntry):
                    ts = line.message.ts
                    if (first and ts < first) or (last and ts >= last):
                        continue
                    if line.message.id in seen:
                        line = evolve(line, duplicate=True)  # noqa: PLW2901  # the same line, with a mark
                    seen.add(line.message.id)
                yield line

    def read_file(self, file: ChatFile, start: int = 0) -> Iterator[JournalLine]:
        """Yield the lines of one file; ``start`` is 0 or the ``end`` of an earlier line."""
        for line in file.log.read(start):
            yield _entry(file, line)

    def tail(self, chat: Chat, count: int) -> tuple[JournalLine, ...]:
        """Return a chat's last ``count`` messages, oldest first, and the bad lines among and after them."""
        lines: list[JournalLine] = []
        if count > 0:
            for line in self._read_backwards(chat):
                lines.append(line)
                count -= isinstance(line, JournalEntry)
                if count == 0:
                    break
        return tuple(reversed(lines))

    def window(self, chat: Chat, limit: int = 100) -> tuple[Message, ...]:
        """Return the last ``limit`` messages of a chat's current segment, oldest first, for a model's prompt.

        The segment starts after the last session break. The files are read backwards, only as far as necessary. A
        message that was appended twice keeps its first position.
        """
        messages: dict[str, Message] = {}
        if limit > 0:
            for line in self._read_backwards(chat):
                if isinstance(line, BadLine):
                    continue
                if line.message.type == SESSION_BREAK:
                    break
                messages.pop(line.message.id, None)
                messages[line.message.id] = line.message
                if len(messages) == limit:
                    break
        return tuple(reversed(messages.values()))

    def chats(self) -> tuple[Chat, ...]:
        """Return every chat that has a file."""
        return tuple(dict.fromkeys(file.chat for file in self.files().files))

    def files(self, chat: Chat | None = None) -> Listing:
        """Return the files of one chat, or of all, and the skipped entries. An unexpected file is skipped."""
        scan = _Scan(self.logs)
        if chat is not None:
            scan.chat(chat)
        else:
            scan.all()
        files = sorted(scan.files, key=lambda file: (file.chat.name, file.day))
        return Listing(tuple(files), tuple(scan.skipped))

    def file(self, chat: Chat, day: date) -> ChatFile:
        """Return a chat's file of a day, whether it exists or not."""
        return ChatFile(chat, day, self.logs.log(chat.name, day.isoformat()))

    def _read_backwards(self, chat: Chat) -> Iterator[JournalLine]:
        for file in reversed(self.files(chat).files):
            for line in file.log.read_backwards():
                yield _entry(file, line)


@define
class _Scan:
    """Collects the files of a journal."""

    logs: LogFolder
    files: list[ChatFile] = field(factory=list)
    skipped: list[SkippedEntry] = field(factory=list)

    def all(self) -> None:
        """Add the files of every directory with a chat name; skip other directories."""
        for name in self.logs.groups():
            if isinstance(name, SkippedEntry):
                self.skipped.append(name)
                continue
            try:
                chat = Chat.parse(name)
            except RecordError as error:
                self._skip(name, f"is not named like a chat: {error.message}")
            else:
                if chat.name == name:
                    self.chat(chat)
                else:
                    self._skip(name, f"should be named {chat.name}")

    def chat(self, chat: Chat) -> None:
        """Add the files of one chat whose names are days; skip other files."""
        for name in self.logs.names(chat.name):
            if isinstance(name, SkippedEntry):
                self.skipped.append(name)
            elif (day := _day(name)) is None:
                self._skip(f"{chat.name}/{name}{_SUFFIX}", "is not named YYYY-MM-DD.jsonl")
            else:
                self.files.append(ChatFile(chat, day, self.logs.log(chat.name, name)))

    def _skip(self, name: str, reason: str) -> None:
        self.skipped.append(SkippedEntry(shown_path(f"{self.logs.location}/{name}"), reason, keep=False))


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None  # reject other ISO 8601 forms


def _with_id(message: Message, chat: Chat) -> Callable[[int], Mapping[str, Any]] | Mapping[str, Any]:
    """Return a message's record, or a function that makes it from the offset, which is part of a new id."""
    if message.id:
        return message.record()
    stamp = format_ts(message.ts).replace("-", "").replace(":", "").replace(".", "")
    # Removing a message moves later ones, so two messages can have the same offset. The hash keeps their ids unique.
    digest = text_hash(message.content)[:_DIGEST_CHARACTERS]
    return lambda offset: evolve(message, id=f"{chat.name}-{stamp}-{offset}-{digest}").record()


def _entry(file: ChatFile, line: LogLine) -> JournalLine:
    if not isinstance(line, LogRecord):
        return line
    try:
        return JournalEntry(Message.parse(line.value), file, line.offset, line.end)
    except RecordError as error:
        return BadLine(file.log.location, line.offset, line.end, error.message)
