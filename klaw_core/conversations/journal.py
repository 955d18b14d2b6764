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
    """What one chat said on one day (of UTC)."""

    chat: Chat
    day: date
    log: Log

    @property
    def name(self) -> str:
        """The file's name: ``2026-02-24.jsonl``."""
        return f"{self.day.isoformat()}{_SUFFIX}"


@frozen
class Listing:
    """The journal's files, by chat and then by day, and what lies among them without being one."""

    files: tuple[ChatFile, ...] = ()
    skipped: tuple[SkippedEntry, ...] = ()


@frozen
class JournalEntry:
    """A message and its place: from ``offset`` to ``end`` of a log.

    ``duplicate``: another message with this id came before it in the same reading.
    """

    message: Message
    file: ChatFile
    offset: int
    end: int
    duplicate: bool = False


#: What one line of the journal gives.
JournalLine: TypeAlias = JournalEntry | BadLine


@frozen
class Journal:
    """Everything that was said, append-only; the order of a chat is that of its files' days, then of the lines.

    A clock that goes backwards changes nothing within a day. Safe for several threads and processes at once.
    ``logs`` can be given as the path of a directory.
    """

    logs: LogFolder = field(converter=as_logs)

    def append(self, message: Message) -> Message:
        """Write a message to its chat's file of that day; it is on the disk when this returns.

        Return it as it was written, with the id it was given if it had none: chat, time, place in the file and
        a hash of its text, which no other message shares. Raise RecordError (also for a message over 1 MiB) or
        StoreError.
        """
        return self.append_many([message])[0]

    def append_many(self, messages: Iterable[Message]) -> tuple[Message, ...]:
        """Write messages in their order, each chat and day at once, and return them as written, in that order.

        Raise as :meth:`append`; then whole messages at the beginning of a file's share may have been written.
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
        """Remove messages for good; return the files that held them. Unknown ids are ignored. Raise StoreError."""
        wanted = frozenset(ids)
        return tuple(
            file for file in self.files(chat).files if file.log.remove(lambda record: record.value.get("id") in wanted)
        )

    def session_break(self, chat: Chat, ts: datetime | None = None) -> Message:
        """Begin a new segment of a chat (now, by default), as ``/new`` does. Raise StoreError."""
        return self.append(Message("system", "", ts or datetime.now(UTC), type=SESSION_BREAK, meta=chat.meta))

    def read(self, chat: Chat, since: datetime | None = None, until: datetime | None = None) -> Iterator[JournalLine]:
        """Yield a chat's messages in order, and what is wrong with the lines that hold none.

        ``since`` is inclusive and ``until`` exclusive, both aware; only the files of those days are read.
        A message whose id was seen before is yielded and marked. Nothing that a file can contain raises.
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
                        line = evolve(line, duplicate=True)  # noqa: PLW2901  # the same line, marked
                    seen.add(line.message.id)
                yield line

    def read_file(self, file: ChatFile, start: int = 0) -> Iterator[JournalLine]:
        """Yield the lines of one file from ``start`` on, which is 0 or the ``end`` of a line read before."""
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
        """Return the last ``limit`` messages of a chat's current segment, oldest first: what a model is shown.

        The segment begins after the last session break. Reads backwards, and no further than it must. A message that
        was appended twice stands where it was said first.
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
        """Return the files of one chat, or of all, and what had to be left out: never raises for what lies there."""
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
    """What a look through the journal has found so far."""

    logs: LogFolder
    files: list[ChatFile] = field(factory=list)
    skipped: list[SkippedEntry] = field(factory=list)

    def all(self) -> None:
        """Take the files of every group that is named as a chat; any other is skipped."""
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
        """Take the files of one chat that are named as days."""
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
    return day if day.isoformat() == text else None  # not the other forms of ISO 8601


def _with_id(message: Message, chat: Chat) -> Callable[[int], Mapping[str, Any]] | Mapping[str, Any]:
    """Return a message's record, or what makes it once its place is known: the place is part of the id it gets."""
    if message.id:
        return message.record()
    stamp = format_ts(message.ts).replace("-", "").replace(":", "").replace(".", "")
    # The text as well: where a message was removed, another may come to the place of one that has moved.
    digest = text_hash(message.content)[:_DIGEST_CHARACTERS]
    return lambda offset: evolve(message, id=f"{chat.name}-{stamp}-{offset}-{digest}").record()


def _entry(file: ChatFile, line: LogLine) -> JournalLine:
    if not isinstance(line, LogRecord):
        return line
    try:
        return JournalEntry(Message.parse(line.value), file, line.offset, line.end)
    except RecordError as error:
        return BadLine(file.log.location, line.offset, line.end, error.message)
