"""Transcripts as a source of documents: each file in parts, so that a line more costs a part and not the file.

Part ``n`` holds the lines that begin in the ``n``-th half MiB of the file. Agents only append, so that all parts but
the last stay as they are, and where they begin is known without reading what comes before.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

import msgspec
from attrs import define, field, frozen

from klaw_core import Document, Entry, KlawError, SkippedEntry, WorkspaceError, parse_ts
from klaw_sessions.agent import Agent, Message
from klaw_sessions.options import SessionOptions

PART_BYTES = 512 * 1024

_PARTS = re.compile(r"(?P<stem>.+?)(?:\.(?P<number>[1-9][0-9]*))?\.jsonl")
_SPEAKERS = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


@frozen
class _Part:
    """A part of a file; the first has the number 1."""

    file: Path
    number: int


@define
class _Reading:
    """What of a part has been read so far."""

    lines: list[str] = field(factory=list)
    times: list[tuple[int, datetime]] = field(factory=list)
    seen: set[str] = field(factory=set)
    directory: str = ""

    def add(self, message: Message) -> None:
        """Take a message, on a line of its own; one that was written twice is taken once."""
        if message.id and message.id in self.seen:
            return
        self.seen.add(message.id)
        self.lines.append(f"{_SPEAKERS[message.role]}: {' '.join(message.text.split())}")
        if (moment := _moment(message.moment)) is not None:
            self.times.append((len(self.lines), moment))


@frozen(eq=False)
class TranscriptSource:
    """The transcripts of one agent. What secrets they hold the core strikes out, as of every source but notes."""

    agent: Agent
    directory: Path
    roles: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    @classmethod
    def of(cls, agent: Agent, options: SessionOptions) -> Self:
        """Return the source that the options ask for."""
        place = Path(options.path).expanduser() if options.path else agent.get_root()
        return cls(agent, place.absolute(), options.roles, options.exclude)

    @property
    def origin(self) -> str:
        """The agent's name."""
        return self.agent.name

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield the parts of every transcript. Raise WorkspaceError if there is no directory of them."""
        if not self.directory.is_dir():
            raise WorkspaceError(f"{self.directory} does not exist: {self.origin} has stored no transcripts there")
        yield from self._below(self.directory, 0)

    def _below(self, directory: Path, depth: int) -> Iterator[Entry | SkippedEntry]:
        try:
            children = sorted(os.scandir(directory), key=lambda child: child.name)
        except OSError as error:
            yield SkippedEntry(self._name(directory), f"cannot be read: {error.strerror}", keep=True)
            return
        for child in children:
            path = Path(child.path)
            if self._is_excluded(path):
                continue
            if child.is_dir():
                if depth < max(self.agent.depths):
                    yield from self._below(path, depth + 1)
            elif depth in self.agent.depths and self.agent.takes(child.name):
                yield from self._file(path)

    def _file(self, file: Path) -> Iterator[Entry | SkippedEntry]:
        if _number(file.name) != 1:
            yield SkippedEntry(self._name(file), "has the path of a part of another transcript", keep=False)
            return
        try:
            status = file.stat()
        except OSError as error:
            yield SkippedEntry(self._name(file), f"cannot be read: {error.strerror}", keep=True)
            return
        if stat.S_ISREG(status.st_mode):
            for number, start in enumerate(range(0, status.st_size, PART_BYTES), start=1):
                yield Entry(self._name(file, number), min(PART_BYTES, status.st_size - start))

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Return the messages of a part, a line each."""
        part = self._part(entry.path)
        if part is None:
            return SkippedEntry(entry.path, "is no transcript", keep=False)
        reading = _Reading()
        try:
            with _open(part.file) as file:
                for line in _lines(file, (part.number - 1) * PART_BYTES):
                    self._take(line, reading)
                if not reading.directory:
                    reading.directory = self._begun(file)
        except FileNotFoundError:
            return SkippedEntry(entry.path, "vanished", keep=False)
        except OSError as error:
            return SkippedEntry(entry.path, f"cannot be read: {error.strerror}", keep=True)
        if not reading.lines:
            return SkippedEntry(entry.path, "contains no messages to index", keep=False)
        return self._document(entry.path, part, reading)

    def _document(self, path: str, part: _Part, reading: _Reading) -> Document:
        project = PurePosixPath(reading.directory.replace("\\", "/")).name or self._project(part.file)
        session = _stem(part.file)
        metadata = {"agent": self.origin, "project": project, "directory": reading.directory, "session": session}
        begun = reading.times[0][1] if reading.times else datetime.fromtimestamp(part.file.stat().st_mtime, UTC)
        return Document(
            path=path,
            text="\n".join(reading.lines),
            source=self.origin,
            origin=self.origin,
            created_at=begun,
            chat_id=session,
            format="transcript",
            heading=(project,) if project else (),
            metadata={name: value for name, value in metadata.items() if value},
            times=tuple(reading.times),
        )

    def _take(self, line: bytes, reading: _Reading) -> None:
        """Take what a line holds; a line of another form holds nothing."""
        try:
            for item in self.agent.read_line(line, self.roles):
                if isinstance(item, Message):
                    reading.add(item)
                elif not reading.directory:
                    reading.directory = item.directory
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return

    def _begun(self, file: BinaryIO) -> str:
        """Return the directory that the first line of a transcript names, empty if it names none."""
        file.seek(0)
        reading = _Reading()
        self._take(file.readline(PART_BYTES), reading)
        return reading.directory

    def locate(self, path: str, /) -> str | None:
        """Return the document of the first part of a file, None if it is none of the transcripts."""
        return next(iter(self.documents_of(path)), None)

    def documents_of(self, path: str, /) -> Sequence[str]:
        """Return the documents that a file makes, none if it is none of the transcripts."""
        try:
            file = Path(path).expanduser().absolute()
            relative = file.relative_to(self.directory)
        except (ValueError, RuntimeError):
            return ()
        if len(relative.parts) - 1 not in self.agent.depths or not self.agent.takes(file.name):
            return ()
        if any(self._is_excluded(place) for place in (file, *file.parents) if place.is_relative_to(self.directory)):
            return ()
        return tuple(item.path for item in self._file(file) if isinstance(item, Entry))

    def file_of(self, path: str, /) -> Path | None:
        """Return the transcript that a document is a part of."""
        part = self._part(path)
        return part.file if part is not None and part.file.is_file() else None

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the messages of a part: what results show the lines of."""
        document = self.read(Entry(path))
        return document if isinstance(document, SkippedEntry) else document.text

    def watch_paths(self) -> Sequence[Path]:
        """Return the directory of the transcripts."""
        return (self.directory,)

    def why_not_forgotten(self, path: str) -> tuple[str, str]:
        """Return why a transcript cannot be forgotten, and what to do instead."""
        part = self._part(path)
        name = path if part is None else part.file.relative_to(self.directory).as_posix()
        return (
            f"{path} is a transcript of {self.origin}, so the next index run would add it again",
            f"add {name!r} to `exclude` of the source {self.origin} in the configuration, then `klaw index`",
        )

    def _is_excluded(self, path: Path) -> bool:
        relative = path.relative_to(self.directory).as_posix()
        return any(fnmatch(relative, pattern.strip("/")) for pattern in self.exclude)

    def _name(self, path: Path, number: int = 1) -> str:
        relative = path.relative_to(self.directory).as_posix().encode("utf-8", "backslashreplace").decode()
        if number > 1:
            relative = f"{relative.removesuffix('.jsonl')}.{number}.jsonl"
        return self.origin if relative == "." else f"{self.origin}/{relative}"

    def _part(self, path: str) -> _Part | None:
        origin, _, relative = path.partition("/")
        place = PurePosixPath(relative)
        if origin != self.origin or ".." in place.parts or len(place.parts) - 1 not in self.agent.depths:
            return None
        name = f"{_stem(place)}.jsonl"
        return _Part(self.directory / place.with_name(name), _number(place.name)) if self.agent.takes(name) else None

    def _project(self, file: Path) -> str:
        return file.parent.name if self.agent.names_project else ""


def _number(name: str) -> int:
    match = _PARTS.fullmatch(name)
    return int(match["number"] or 1) if match else 1


def _stem(file: Path | PurePosixPath) -> str:
    match = _PARTS.fullmatch(file.name)
    return match["stem"] if match else file.stem


def _open(path: Path) -> BinaryIO:
    """Open a regular file, never waiting for a pipe. Raise OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(None, "it is not a regular file")
    return open(descriptor, "rb")  # noqa: PTH123  # a descriptor; the caller closes it


def _lines(file: BinaryIO, start: int) -> Iterator[bytes]:
    """Yield the whole lines that begin in the part of a file that starts at a byte.

    The last line, which the agent may be writing just now, is left for the next run until it has its end.
    """
    end = start + PART_BYTES
    if start:
        file.seek(start - 1)
        file.readline()  # the line that began before, or the end of one that ends just there
    while (begins := file.tell()) < end:
        line = file.readline()
        if not line.endswith(b"\n"):
            return
        if begins < end:
            yield line


def _moment(text: str) -> datetime | None:
    try:
        return parse_ts(text)
    except KlawError:
        return None
