"""Transcripts as a source of documents. A file is split into parts, so that a new line changes only the last part.

Part ``n`` contains the lines that start in the ``n``-th half MiB of the file. Agents only append, so all parts except
the last stay the same, and a part can be read without the preceding ones.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import datetime
from fnmatch import fnmatch
from glob import escape
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

import msgspec
from attrs import frozen

from klaw_core import Descriptor, Document, Entry, Located, SkippedEntry, Source, WorkspaceError
from klaw_sessions.agent import Agent
from klaw_sessions.content import Content
from klaw_sessions.options import SessionOptions

PART_BYTES = 512 * 1024
# How far before a part the last message is looked for.
_LOOK_BACK_BYTES = 64 * 1024

_PARTS = re.compile(r"(?P<stem>.+?)(?:\.(?P<number>[1-9][0-9]*))?\.jsonl")


@frozen
class _Part:
    """A part of a file; the first part has the number 1."""

    file: Path
    number: int


@frozen(eq=False)
class TranscriptSource(Source, Located):
    """The transcripts of one agent. klaw_core redacts secrets in them, as in all sources except notes."""

    agent: Agent
    directory: Path
    roles: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    collection: str = "memory"

    @classmethod
    def of(cls, agent: Agent, options: SessionOptions) -> Self:
        """Return the source with these options."""
        directory = Path(options.path).expanduser() if options.path else agent.get_root()
        return cls(agent, directory.absolute(), options.roles, options.exclude, options.collection)

    @property
    def origin(self) -> str:
        """The agent's name."""
        return self.agent.name

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield the parts of every transcript. Raise WorkspaceError if the directory does not exist."""
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
            elif self._is_transcript(path):
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
        """Return the messages of a part, one per line."""
        part = self._part(entry.path)
        if part is None:
            return SkippedEntry(entry.path, "is not a transcript", keep=False)
        reading, is_empty = Content(), True
        try:
            with _open(part.file) as file:
                start = (part.number - 1) * PART_BYTES
                for line in _lines(file, start):
                    is_empty = False
                    self._take(line, reading)
                if start and reading.until(self._last_moment(file, start)):
                    reading.leave_out(self._ids_before(file, start))
                if not reading.directory:
                    reading.directory = self._first_directory(file)
        except FileNotFoundError:
            return SkippedEntry(entry.path, "vanished", keep=False)
        except OSError as error:
            return SkippedEntry(entry.path, f"cannot be read: {error.strerror}", keep=True)
        if is_empty:
            return SkippedEntry(entry.path, "is empty", keep=False)  # the line of an earlier part is longer than a part
        if not reading.messages:
            return SkippedEntry(entry.path, reading.why_empty(self.origin), keep=not reading.is_known)
        return reading.document(entry.path, self.origin, self._session(part.file), part.file, self._project(part.file))

    def _last_moment(self, file: BinaryIO, start: int) -> datetime | None:
        """Return the time of the last message shortly before a part; None if there is none.

        An agent that resumes a session writes its history again, with the ids and times that it had. Messages that are
        newer than those before them are no copies, so most parts are read without the parts before them.
        """
        reading = Content()
        for line in _lines_between(file, max(0, start - _LOOK_BACK_BYTES), start):
            self._take(line, reading)
        return max((moment for _, moment in reading.times), default=None)

    def _ids_before(self, file: BinaryIO, start: int) -> Container[str]:
        """Return the ids of all messages before a part."""
        reading = Content()
        for line in _lines_between(file, 0, start):
            self._take(line, reading)
        return reading.seen - {""}

    def _take(self, line: bytes, reading: Content) -> None:
        """Add the contents of a line; an invalid line has none."""
        try:
            for item in self.agent.read_line(line, self.roles):
                reading.take(item)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return

    def _first_directory(self, file: BinaryIO) -> str:
        """Return the working directory in the first line of a transcript; empty if it has none."""
        file.seek(0)
        reading = Content()
        self._take(file.readline(PART_BYTES), reading)
        return reading.directory

    def locate(self, path: str, /) -> str | None:
        """Return the document of the first part of a file; None if the file is not one of the transcripts."""
        return next(iter(self.documents_of(path)), None)

    def documents_of(self, path: str, /) -> Sequence[str]:
        """Return the documents of a file; none if the file is not one of the transcripts."""
        try:
            file = Path(path).expanduser().absolute()
            relative = file.relative_to(self.directory)
        except (ValueError, RuntimeError):
            return ()
        if ".." in relative.parts or not self._is_transcript(file):
            return ()
        if any(self._is_excluded(place) for place in (file, *file.parents) if place.is_relative_to(self.directory)):
            return ()
        return tuple(item.path for item in self._file(file) if isinstance(item, Entry))

    def file_of(self, path: str, /) -> Path | None:
        """Return the transcript that contains a document."""
        part = self._part(path)
        return part.file if part is not None and part.file.is_file() else None

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the messages of a part, to which the line numbers of results refer."""
        document = self.read(Entry(path))
        return document if isinstance(document, SkippedEntry) else document.text

    def watch_paths(self) -> Sequence[Path]:
        """Return the directory of the transcripts."""
        return (self.directory,)

    def why_not_forgotten(self, path: str) -> tuple[str, str]:
        """Return why a transcript cannot be forgotten, and what the user can do instead."""
        part = self._part(path)
        name = path if part is None else part.file.relative_to(self.directory).as_posix()
        return (
            f"{path} is a transcript of {self.origin}, so the next index run would add it again",
            f"add {escape(name)!r} to `exclude` of the source {self.origin} in the configuration, then `klaw index`",
        )

    def _is_excluded(self, path: Path) -> bool:
        relative = path.relative_to(self.directory).as_posix()
        return any(fnmatch(relative, pattern) for pattern in self.exclude)

    def _name(self, path: Path, number: int = 1) -> str:
        relative = path.relative_to(self.directory).as_posix().encode("utf-8", "backslashreplace").decode()
        if number > 1:
            relative = f"{relative.removesuffix('.jsonl')}.{number}.jsonl"
        return self.origin if relative == "." else f"{self.origin}/{relative}"

    def _part(self, path: str) -> _Part | None:
        origin, _, relative = path.partition("/")
        place = PurePosixPath(relative)
        if origin != self.origin or ".." in place.parts or not place.name:
            return None
        file = self.directory / place.with_name(f"{_stem(place)}.jsonl")
        return _Part(file, _number(place.name)) if self._is_transcript(file) else None

    def _is_transcript(self, file: Path) -> bool:
        parts = file.relative_to(self.directory).parts
        return (
            len(parts) - 1 in self.agent.depths
            and self.agent.is_transcript(file.name)
            and set(self.agent.below) <= set(parts[:-1])
        )

    def _project(self, file: Path) -> str:
        return file.relative_to(self.directory).parts[0] if self.agent.names_project else ""

    def _session(self, file: Path) -> str:
        return file.parent.name if self.agent.names_session and file.parent != self.directory else _stem(file)


def _number(name: str) -> int:
    match = _PARTS.fullmatch(name)
    return int(match["number"] or 1) if match else 1


def _stem(file: Path | PurePosixPath) -> str:
    match = _PARTS.fullmatch(file.name)
    return match["stem"] if match else file.stem


def _open(path: Path) -> BinaryIO:
    """Open a regular file without blocking on a pipe. Raise OSError."""
    opened = Descriptor(path, os.O_RDONLY)
    with opened as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(None, "it is not a regular file")
        return opened.into_file()


def _lines(file: BinaryIO, start: int) -> Iterator[bytes]:
    """Yield the complete lines that start in the part of a file that begins at ``start``.

    An incomplete last line, which the agent may be writing, is left for the next run.
    """
    yield from _lines_between(file, start, start + PART_BYTES)


def _lines_between(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Yield the complete lines that start between two positions of a file."""
    file.seek(start)
    if start:
        file.seek(start - 1)
        file.readline()  # skip the rest of the line that started before this part
    while (begins := file.tell()) < end:
        line = file.readline()
        if not line.endswith(b"\n"):
            return
        if begins < end:
            yield line
