"""The source ``workspace``: a directory of Markdown notes.

Everything odd that a directory can hold is a named, counted :class:`Skipped`, never an exception and never
a way out of the directory: links that lead outside, FIFOs, devices, loops, unreadable, binary and huge files.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

from attrs import field, frozen, validators

from klaw_core.errors import WorkspaceError
from klaw_core.values import Document, Entry, Skipped

# The two files that agents' memory conventions read first.
_FIRST = ("MEMORY.md", "memory.md")
# A note named for its day (2026-02-24.md, "2026-02-24 standup.md") is dated by its name: a clone or a
# copy resets the file's own times.
_DATED = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")


@frozen
class WorkspaceOptions:
    """Options of ``[[memory.sources]] type = "workspace"``."""

    path: str
    name: str = ""  # default: the directory's own name
    include: tuple[str, ...] = ("*.md", "*.markdown")
    exclude: tuple[str, ...] = ()
    max_bytes: int = field(default=10 * 1024 * 1024, validator=validators.ge(1))


@frozen
class Workspace:
    """The Markdown files below ``root``, named ``origin/relative/path.md``.

    ``include`` are patterns of file names, ``exclude`` patterns of relative paths; hidden files and
    directories and ``node_modules`` are never entered. Files over ``max_bytes`` are skipped.
    """

    root: Path
    origin: str
    include: tuple[str, ...] = ("*.md", "*.markdown")
    exclude: tuple[str, ...] = ()
    max_bytes: int = 10 * 1024 * 1024

    def scan(self) -> Iterable[Entry | Skipped]:
        """Return MEMORY.md, memory.md, then every other note by path. Raise WorkspaceError if the root is gone."""
        if not self.root.is_dir():
            problem = "is not a directory" if self.root.exists() else "does not exist"
            raise WorkspaceError(
                f"{self.root} {problem}", hint=f"`klaw forget {self.origin}/` forgets what was indexed from it"
            )
        found = list(self._walk())
        files = sorted((item for item in found if isinstance(item, Entry)), key=self._order)
        return [*files, *(item for item in found if isinstance(item, Skipped))]

    def read(self, entry: Entry, /) -> Document | Skipped:
        """Read one note; what cannot be read as text is Skipped with the reason."""
        relative = entry.path.removeprefix(f"{self.origin}/")
        path = self.root / relative
        try:
            data, modified = self._bytes(path)
            text = decode(data)
        except OSError as error:
            gone = error.errno in {errno.ENOENT, errno.ENOTDIR}
            return Skipped(entry.path, "vanished" if gone else f"cannot be read: {error.strerror}", keep=True)
        except _NotANoteError as error:
            return Skipped(entry.path, str(error))
        return Document(entry.path, text, relative, self.origin, _date_in_name(path.name) or modified)

    def _bytes(self, path: Path) -> tuple[bytes, datetime]:
        """Return a file's bytes and when it was modified, to the second. Raise OSError or _NotANoteError."""
        if not self._contains(path):
            raise _NotANoteError("leads out of the workspace")
        # Not blocking: between scan and read a file may have become a FIFO that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _NotANoteError("is not a regular file")
            data = file.read(self.max_bytes + 1)
        if len(data) > self.max_bytes:
            raise _NotANoteError(f"is larger than {self.max_bytes:,} bytes ({status.st_size:,})")
        return data, datetime.fromtimestamp(int(status.st_mtime), UTC)

    def _order(self, entry: Entry) -> tuple[int, str]:
        relative = entry.path.removeprefix(f"{self.origin}/")
        return (_FIRST.index(relative) if relative in _FIRST else len(_FIRST), relative)

    def _contains(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError):  # a loop of links
            return False

    def _walk(self) -> Iterator[Entry | Skipped]:
        """Walk the directories, each real one once, however many links lead to it."""
        pending = [self.root]
        seen_directories = {self.root.resolve()}
        seen_files: set[Path] = set()
        while pending:
            directory = pending.pop()
            try:
                with os.scandir(directory) as listing:
                    children = sorted(listing, key=lambda child: child.name, reverse=True)
            except OSError as error:
                yield Skipped(self._name(directory), f"cannot be read: {error.strerror}", keep=True)
                continue
            for child in children:
                if self._excluded(child):
                    continue
                path = Path(child.path)
                if child.is_dir():
                    if not self._contains(path):
                        yield Skipped(self._name(path), "leads out of the workspace")
                    elif (real := path.resolve()) not in seen_directories:
                        seen_directories.add(real)
                        pending.append(path)
                elif any(fnmatch(child.name, pattern) for pattern in self.include):
                    yield from self._file(child, seen_files)

    def _file(self, child: os.DirEntry[str], seen: set[Path]) -> Iterator[Entry | Skipped]:
        path = Path(child.path)
        name = self._name(path)
        try:
            name.encode()
        except UnicodeEncodeError:
            printable = name.encode("utf-8", "backslashreplace").decode()
            yield Skipped(printable, "has a name that is not valid UTF-8")
            return
        try:
            status = child.stat()
        except OSError as error:
            reason = "is a link to nothing" if error.errno == errno.ENOENT else f"cannot be read: {error.strerror}"
            yield Skipped(name, reason, keep=error.errno != errno.ENOENT)
            return
        if not self._contains(path):
            yield Skipped(name, "leads out of the workspace")
        elif not stat.S_ISREG(status.st_mode):
            yield Skipped(name, "is not a regular file")
        elif (real := path.resolve()) not in seen:
            seen.add(real)
            yield Entry(name, status.st_size)

    def _excluded(self, child: os.DirEntry[str]) -> bool:
        relative = Path(child.path).relative_to(self.root).as_posix()
        return (
            child.name.startswith(".")
            or child.name == "node_modules"
            or any(fnmatch(relative, pattern) for pattern in self.exclude)
        )

    def _name(self, path: Path) -> str:
        relative = path.relative_to(self.root).as_posix()
        return f"{self.origin}/{relative}" if relative != "." else self.origin


class _NotANoteError(Exception):
    """The file holds nothing that can be indexed; the message says why."""


def decode(data: bytes) -> str:
    """Decode a note: UTF-8, or UTF-16 where a byte order mark says so. Raise _NotANoteError for anything else."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data[:8192]:
        raise _NotANoteError("is binary")
    else:
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise _NotANoteError(f"is not valid {name} (byte {error.start:,})") from error
    if not text.strip():
        raise _NotANoteError("is empty")
    return text


def _date_in_name(name: str) -> datetime | None:
    match = _DATED.match(name)
    if match is None:
        return None
    try:
        return datetime(int(match[1]), int(match[2]), int(match[3]), tzinfo=UTC)
    except ValueError:
        return None
