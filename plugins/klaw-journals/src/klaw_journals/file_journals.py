"""The journals of a data directory: files that people own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import StoreError, operations
from klaw_core.files.atomic import locked, open_regular, read_regular, require_own_link, write_atomically
from klaw_core.values.runs import SkippedEntry
from klaw_journals.contents import JournalName, LogRecord, is_journal_name
from klaw_journals.jsonl import JsonLines
from klaw_journals.record_journal import FileJournal
from klaw_journals.rewriting import write_new
from klaw_journals.timestamps import require_clock
from klaw_journals.traces import Traces

_SUFFIX = ".jsonl"


@operations
@frozen
class FileJournals:
    """The journals in a data directory; implements ``Journals``."""

    root: Path

    def records(self, name: str, /, check: Callable[[Mapping[str, Any]], object] = lambda _record: None) -> FileJournal:
        """Return the journal ``NAME.jsonl``."""
        return FileJournal(self.root / f"{name}{_SUFFIX}", check)

    def logs(self, name: str, /) -> FileLogs:
        """Return the logs in the directory ``NAME``."""
        return FileLogs(self.root / name)

    def text(self, name: str, /) -> FileText:
        """Return the text ``NAME.json``."""
        return FileText(self.root / f"{name}.json")

    def names(self) -> Sequence[JournalName]:
        """Return the journals: files and directories with the names of journals. Raise StoreError."""
        found = []
        try:
            for path in sorted(self.root.iterdir()) if self.root.is_dir() else ():
                if path.suffix in {_SUFFIX, ".json"} and path.is_file():
                    found.append(JournalName(path.stem, "records" if path.suffix == _SUFFIX else "text"))
                elif path.is_dir() and any(self.logs(path.name).files()):
                    found.append(JournalName(path.name, "log"))
        except OSError as error:
            raise StoreError(f"{self.root} cannot be read: {error.strerror}") from error
        return [name for name in found if is_journal_name(name)]


@frozen
class FileLogs:
    """The logs ``GROUP/NAME.jsonl`` in a directory; implements ``LogFolder``."""

    root: Path

    @property
    def location(self) -> str:
        """The path of the directory."""
        return str(self.root)

    @property
    def exists(self) -> bool:
        """Whether there is a directory."""
        return self.root.exists()

    def groups(self) -> Sequence[str | SkippedEntry]:
        """Return the names of the directories, except hidden ones, and report files among them."""
        found: list[str | SkippedEntry] = []
        for path in self._listed(self.root):
            if isinstance(path, SkippedEntry):
                found.append(path)
                continue
            try:
                if path.is_dir():
                    found.append(path.name)
                elif path.suffix == _SUFFIX or not path.is_file():
                    found.append(_skipped(path, "is not a chat directory"))
            except OSError as error:
                found.append(_skipped(path, f"cannot be accessed: {error.strerror}", keep=True))
        return found

    def names(self, group: str, /) -> Sequence[str | SkippedEntry]:
        """Return the names of the files of a directory that are logs, without ``.jsonl``."""
        found: list[str | SkippedEntry] = []
        for path in self._listed(self.root / group):
            if isinstance(path, SkippedEntry):
                found.append(path)
            elif path.suffix == _SUFFIX:
                try:
                    found.append(path.stem if path.is_file() else _skipped(path, "is not a regular file"))
                except OSError as error:
                    found.append(_skipped(path, f"cannot be accessed: {error.strerror}", keep=True))
        return found

    def log(self, group: str, name: str, /) -> JsonLines:
        """Return the log in a file."""
        path = self.root / group / f"{name}{_SUFFIX}"
        return JsonLines(path, below=self.root.parent, on_removal=partial(self._note, group))

    def _note(self, group: str, gone: Sequence[LogRecord] | None) -> None:
        """Write down for other machines what is about to be removed."""
        traces = Traces(self.root.parent)
        traces.note_group(self.root.name, group) if gone is None else traces.note_lines(self.root.name, group, gone)

    def files(self) -> Iterator[Path]:
        """Yield every file that is a log."""
        for group in self.groups():
            if isinstance(group, str):
                yield from (self.log(group, name).path for name in self.names(group) if isinstance(name, str))

    def _listed(self, directory: Path) -> Sequence[Path | SkippedEntry]:
        """Return the sorted entries of a directory, except hidden ones; none if it does not exist."""
        try:
            require_own_link(directory, self.root.parent)
            return sorted(path for path in directory.iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return ()
        except OSError as error:
            return (_skipped(directory, f"cannot be read: {error.strerror}", keep=True),)


@frozen
class FileText:
    """A text in a file; implements ``OwnedText``. The file never contains a part of the text."""

    path: Path

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self.path)

    def read(self, most: int, /) -> bytes | None:
        """Return at most ``most`` bytes of the file; None if it does not exist. Raise StoreError."""
        try:
            with open_regular(self.path) as file:
                return file.read(most)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error

    def changing(self) -> AbstractContextManager[None]:
        """Hold the lock of the directory. Raise StoreError."""
        return locked(self.path.parent)

    def replace(self, text: str, forgotten: Iterable[str] = (), /) -> None:
        """Replace the file atomically, after the names of what is forgotten were written down. Raise StoreError."""
        require_clock()
        if forgotten:
            Traces(self.path.parent).note_records(self.path.stem, forgotten)
        write_atomically(self.path, text)

    def keep_aside(self, data: bytes, /) -> str:
        """Create a copy ``NAME.broken-1`` (``-2`` …) of ``data`` atomically; return its path. Raise OSError."""
        for number in count(1):
            copy = self.path.with_name(f"{self.path.name}.broken-{number}")
            try:
                if read_regular(copy) == data:
                    break
            except FileNotFoundError:
                try:
                    write_new(copy, data)
                    break
                except FileExistsError:  # another process was faster
                    continue
        return str(copy)

    def remove_copies(self) -> None:
        """Remove the copies of invalid contents. Raise StoreError."""
        name = re.compile(re.escape(self.path.name) + r"\.broken-[1-9][0-9]*")
        try:
            for copy in [each for each in self.path.parent.iterdir() if name.fullmatch(each.name)]:
                copy.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"a copy of {self.path} cannot be removed: {error.strerror}") from error


def _skipped(path: Path, reason: str, *, keep: bool = False) -> SkippedEntry:
    return SkippedEntry(shown_path(path), reason, keep=keep)


def shown_path(path: str | Path) -> str:
    """Return a path as a string that can be printed and stored, even if it contains invalid bytes."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")
