"""Contents of journals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

#: Names of files and directories of a data directory that are not journals.
RESERVED_JOURNALS = frozenset({"agents", "locks", "workspaces", "skipped", "server", "language_model_usage", "sync"})
_MAX_NAME_BYTES = 200


@frozen
class JournalName:
    """The name of a journal, and its form: ``records``, ``log`` or ``text``."""

    name: str
    form: str


def is_file_name(name: str) -> bool:
    """Return whether a file or a directory can have this name, and is visible."""
    is_short = len(name.encode("utf-8", "surrogatepass")) <= _MAX_NAME_BYTES
    return is_short and bool(name) and name.isprintable() and "/" not in name and not name.startswith(".")


def is_journal_name(journal: JournalName) -> bool:
    """Return whether a journal in files can have this name. The name of logs is that of a directory, without a dot."""
    is_free = journal.name not in RESERVED_JOURNALS and (journal.form != "log" or "." not in journal.name)
    return is_free and is_file_name(journal.name)


@frozen
class BrokenRecord:
    """A part of a journal that is not a record, and the reason.

    ``location`` and ``position`` are its place: for a journal in a file, the file and a byte offset. ``torn``: a crash
    truncated it, so it was never acknowledged.
    """

    location: str
    position: int
    reason: str
    torn: bool = False

    def __str__(self) -> str:
        return f"{self.location}, byte {self.position:,}: {self.reason}"


@frozen
class Replay:
    """The records of a journal by id, without forgotten ones, in the order in which their ids first occurred.

    ``unfinished`` are forgotten ids whose bytes are still there because of a crash.
    """

    records: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    broken: tuple[BrokenRecord, ...] = ()
    unfinished: tuple[str, ...] = ()


@frozen
class LogRecord:
    """An object of a log and the place of its line: bytes ``offset`` (included) to ``end`` (excluded)."""

    offset: int
    end: int
    value: dict[str, Any]


@frozen
class BadLine:
    """A line without a record, or (if ``offset == end``) a log that cannot be read from ``offset`` on.

    ``torn``: the last line has no newline yet. Another process may be writing it, so it is not consumed: ``end`` is
    ``offset``. Reading continues at ``end``, as after a :class:`LogRecord`.
    ``cut``: the line ends before its JSON does, like a torn line that a later append has ended.
    """

    location: str
    offset: int
    end: int
    reason: str
    torn: bool = False
    cut: bool = False

    @property
    def ends_reading(self) -> bool:
        """Whether the log could not be read any further, so that nothing is known about the lines after it."""
        return self.offset == self.end and not self.torn

    def __str__(self) -> str:
        return f"{self.location}, byte {self.offset:,}: {self.reason}"


#: The result of reading one line.
LogLine: TypeAlias = LogRecord | BadLine
#: A record, or a function that returns it for the offset of its line.
Appendable: TypeAlias = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]
