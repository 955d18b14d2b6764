"""The journal of conversations: ``{root}/{channel}_{chat_id}/YYYY-MM-DD.jsonl``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen

from klaw_conversations.names import Names, full_name, may_be_full
from klaw_core import RecordError, SkippedEntry, operations
from klaw_core.values.text import text_hash
from klaw_journals import BadLine, Chat, Log, LogFolder, LogRecord, Message, format_ts
from klaw_journals.contents import LogLine
from klaw_journals.file_journals import FileLogs, shown_path
from klaw_journals.messages import SESSION_BREAK
from klaw_journals.timestamps import as_utc

_SUFFIX = ".jsonl"
_DIGEST_CHARACTERS = 16


def as_logs(place: Any) -> Any:
    """Return the logs for a directory given as a path; return anything else unchanged."""
    return FileLogs(place) if isinstance(place, Path) else place


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

    It is a ``duplicate`` if an equal message came before it in the same read. ``id`` is the id in the line; the id of
    the message is its name in the chat (see :mod:`klaw_conversations.names`), except from ``read_file``.
    """

    message: Message
    file: ChatFile
    offset: int
    end: int
    duplicate: bool = False
    id: str = field(default="", kw_only=True)

    @property
    def place(self) -> Place:
        """The day of the file, and the offset."""
        return self.file.day, self.offset

    @property
    def written(self) -> Message:
        """The message as it is in the line."""
        return self.message if self.message.id == self.id else evolve(self.message, id=self.id)

    def is_called(self, name: str) -> bool:
        """Return whether this is the name of the message in its chat, or its full name."""
        return self.message.id == name or (may_be_full(name) and full_name(self.written) == name)

    @property
    def is_renamed(self) -> bool:
        """Whether another message of the chat has the id of the line, so that this one has another name."""
        return self.message.id != self.id


#: The place of a message in its chat.
Place: TypeAlias = tuple[date, int]
#: The result of reading one line of the journal.
JournalLine: TypeAlias = JournalEntry | BadLine
#: Returns the places of the first messages with some ids before a place of a chat.
FindFirst: TypeAlias = Callable[[Chat, Place, Collection[str]], Mapping[str, Place]]


@operations
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
        return tuple(entry.message for entry in self.append_entries(messages))

    def append_entries(self, messages: Iterable[Message]) -> tuple[JournalEntry, ...]:
        """Write messages as :meth:`append_many` does; return them with their places."""
        batch = tuple(messages)
        shares: dict[tuple[Chat, date], list[int]] = {}
        chats = [Chat.of(message.meta) for message in batch]
        for index, (message, chat) in enumerate(zip(batch, chats, strict=True)):
            shares.setdefault((chat, message.ts.date()), []).append(index)
        written: dict[int, JournalEntry] = {}
        for share, indices in shares.items():
            file = self.file(*share)
            records = file.log.append(*(_with_id(batch[index], chats[index]) for index in indices))
            for index, record in zip(indices, records, strict=True):
                message = Message.parse(record.value)
                written[index] = JournalEntry(message, file, record.offset, record.end, id=message.id)
        return tuple(written[index] for index in range(len(batch)))

    def remove(self, chat: Chat, ids: Collection[str]) -> tuple[ChatFile, ...]:
        """Remove messages permanently; return the changed files. Unknown ids are ignored. Raise StoreError.

        ``ids`` are names or full names of messages. An invalid line goes with them if it has their id, unless another
        message with this id stays.
        """
        entries = [line for line in self.read(chat) if isinstance(line, JournalEntry)]
        going = chosen(entries, ids)
        written = {*ids, *(entry.id for entry in going)}
        full = {full_name(entry.written) for entry in going}
        staying = {entry.id for entry in entries if entry.id in written and full_name(entry.written) not in full}

        def goes(record: LogRecord) -> bool:
            name = record.value.get("id")
            if name not in written:
                return False
            try:
                return full_name(Message.parse(record.value)) in full
            except RecordError:
                return name not in staying

        return tuple(file for file in self.files(chat).files if file.log.remove(goes))

    def session_break(self, chat: Chat, ts: datetime | None = None) -> Message:
        """Start a new segment of a chat (now, by default), as ``/new`` does. Raise StoreError."""
        return self.append(Message("system", "", ts or datetime.now(UTC), type=SESSION_BREAK, meta=chat.meta))

    def read(self, chat: Chat, since: datetime | None = None, until: datetime | None = None) -> Iterator[JournalLine]:
        """Yield a chat's messages in order, and a :class:`BadLine` for each invalid line.

        ``since`` is inclusive and ``until`` exclusive; both must be timezone-aware. Earlier days are read too, because
        a message is named after those before it. A repeated message is yielded and marked as duplicate. Invalid content
        is reported, not raised.
        """
        first = None if since is None else as_utc(since)
        last = None if until is None else as_utc(until)
        names = self.names(chat)
        seen: set[str] = set()
        for file in self.files(chat).files:
            if last and file.day > last.date():
                return
            is_early = first is not None and file.day < first.date()
            for line in self.read_file(file):
                if isinstance(line, JournalEntry):
                    line = named(line, names)  # noqa: PLW2901  # the same line, with its name
                    ts = line.message.ts
                    if is_early or (first and ts < first) or (last and ts >= last):
                        continue
                    if line.message.id in seen:
                        line = evolve(line, duplicate=True)  # noqa: PLW2901  # the same line, with a mark
                    seen.add(line.message.id)
                elif is_early:
                    continue
                yield line

    def read_file(self, file: ChatFile, start: int = 0) -> Iterator[JournalLine]:
        """Yield the lines of one file as they are written; ``start`` is 0 or the ``end`` of an earlier line.

        Two messages may have one id here: :meth:`with_names` gives them their names.
        """
        for line in file.log.read(start):
            yield _entry(file, line)

    def read_day(self, file: ChatFile) -> tuple[JournalLine, ...]:
        """Return the lines of one file, with the names of the messages in their chat."""
        return self.with_names(file.chat, tuple(self.read_file(file)))

    def tail(self, chat: Chat, count: int, find_first: FindFirst | None = None) -> tuple[JournalLine, ...]:
        """Return a chat's last ``count`` messages, oldest first, and the bad lines among and after them.

        For ``find_first`` see :meth:`with_names`.
        """
        lines: list[JournalLine] = []
        if count > 0:
            for line in self._read_backwards(chat):
                lines.append(line)
                count -= isinstance(line, JournalEntry)
                if count == 0:
                    break
        return self.with_names(chat, lines[::-1], find_first)

    def window(self, chat: Chat, limit: int = 100, find_first: FindFirst | None = None) -> tuple[Message, ...]:
        """Return the last ``limit`` messages of a chat's current segment, oldest first, for a model's prompt.

        The segment starts after the last session break. A message that was appended twice keeps its first position. For
        ``find_first`` see :meth:`with_names`.
        """
        kept: dict[Place, JournalEntry] = {}
        by_id: dict[str, list[JournalEntry]] = {}
        for line in self._read_backwards(chat) if limit > 0 else ():
            if isinstance(line, BadLine):
                continue
            if line.message.type == SESSION_BREAK:
                break
            same = by_id.setdefault(line.id, [])
            if same:
                name = full_name(line.message)
                for later in [entry for entry in same if full_name(entry.message) == name]:
                    same.remove(later)
                    del kept[later.place]
            same.append(line)
            kept[line.place] = line
            if len(kept) == limit:
                break
        lines = self.with_names(chat, list(kept.values())[::-1], find_first)
        return tuple(line.message for line in lines if isinstance(line, JournalEntry))

    def names(self, chat: Chat, first: Mapping[str, Place] = MappingProxyType({})) -> Names[Place]:
        """Return what names the messages of a chat in order, after those at the places ``first``, by id."""
        return Names(lambda place: self._written_at(chat, place), dict(first))

    def with_names(
        self, chat: Chat, lines: Sequence[JournalLine], find_first: FindFirst | None = None
    ) -> tuple[JournalLine, ...]:
        """Return lines of a chat, in order, with the names of the messages, which depend on those before them.

        ``find_first`` finds the earlier messages with the same ids; without it, every file up to the lines is read.
        """
        entries = [line for line in lines if isinstance(line, JournalEntry)]
        if not entries:
            return tuple(lines)
        find = self.find_first if find_first is None else find_first
        names = self.names(chat, find(chat, entries[0].place, {entry.id for entry in entries}))
        return tuple(named(line, names) if isinstance(line, JournalEntry) else line for line in lines)

    def find_first(self, chat: Chat, before: Place, ids: Collection[str]) -> Mapping[str, Place]:
        """Return the places of the first messages with some ids before a place. Reads every file up to it."""
        found: dict[str, Place] = {}
        for file in self.files(chat).files:
            if file.day > before[0]:
                break
            for line in self.read_file(file):
                if isinstance(line, JournalEntry) and line.id in ids and line.place < before:
                    found.setdefault(line.id, line.place)
        return found

    def is_at(self, chat: Chat, place: Place, name: str) -> bool:
        """Return whether there is a message with an id at a place."""
        message = self._written_at(chat, place)
        return message is not None and message.id == name

    def _written_at(self, chat: Chat, place: Place) -> Message | None:
        line = next(self.read_file(self.file(chat, place[0]), place[1]), None)
        return line.message if isinstance(line, JournalEntry) and line.offset == place[1] else None

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
        message = Message.parse(line.value)
    except RecordError as error:
        return BadLine(file.log.location, line.offset, line.end, error.message)
    return JournalEntry(message, file, line.offset, line.end, id=message.id)


def named(entry: JournalEntry, names: Names[Place]) -> JournalEntry:
    """Return the next entry of a chat with the name of its message."""
    name = names.name(entry.written, entry.place)
    return entry if name == entry.message.id else evolve(entry, message=evolve(entry.message, id=name))


def chosen(entries: Iterable[JournalEntry], names: Collection[str]) -> list[JournalEntry]:
    """Return the entries that have one of these names, or full names."""
    wanted = frozenset(names)
    full = [name for name in wanted if may_be_full(name)]
    return [entry for entry in entries if entry.message.id in wanted or any(map(entry.is_called, full))]
