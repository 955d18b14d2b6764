"""Journals: the truth of what people own. Files in the data directory, unless the store keeps them.

There are three kinds: records by id, logs of messages, and single texts. :class:`Journals` gives them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from klaw_core.values.journals import Appendable, LogLine, LogRecord, Replay
    from klaw_core.values.runs import SkippedEntry


class RecordJournal(Protocol):
    """Records by id, in the order in which each id first came. Safe for several threads and processes at once.

    In files it is one of JSON lines.
    """

    @property
    def exists(self) -> bool:
        """Return whether anything was ever written."""

    @property
    def location(self) -> str:
        """Return where the records are, for people."""

    @property
    def version(self) -> Hashable:
        """Return what is equal as long as nobody writes to the journal, without reading its records."""

    def append(self, records: Sequence[Mapping[str, Any]], /) -> Hashable:
        """Keep records, each a JSON object with a string ``id``; they are durable when this returns.

        A record with a known id replaces that one, in its place. Return the version that this write left: while
        :attr:`version` equals it, nobody has written since. Raise RecordError, StoreError.
        """

    def add(
        self,
        records: Sequence[Mapping[str, Any]],
        /,
        is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = ...,
    ) -> frozenset[str]:
        """Keep records as :meth:`append` does, but for those whose id another record has; return the ids of those.

        ``is_same`` (default: equality) tells whether a record that is held may be replaced by one of its id. What is
        held is looked at and written in one step: no other writer comes between. Raise RecordError, StoreError.
        """

    def replay(self) -> Replay:
        """Return what the journal holds. Nothing that it can contain raises."""

    def get(self, ids: Sequence[str], /) -> Mapping[str, Mapping[str, Any]]:
        """Return the records of these ids that there are, without reading all others each time. Nothing raises."""

    def ids(self) -> Collection[str]:
        """Return the ids of the records that there are. Nothing raises."""

    def forget(self, ids: Sequence[str], /) -> int:
        """Forget records; return how many there were. Their bytes are gone when this returns.

        Raise StoreError: forgetting may have taken effect even so, with the bytes left to :meth:`finish`.
        """

    def finish(self) -> None:
        """Remove the bytes of what was forgotten just before a crash. Raise StoreError."""


class Log(Protocol):
    """JSON objects in the order in which they were appended. Safe for several threads and processes at once.

    Each stands at an offset, which ascends, and stays as long as nothing before it is removed. In files the offset is
    that of a byte.
    """

    @property
    def location(self) -> str:
        """Return where the log is, for people."""

    @property
    def exists(self) -> bool:
        """Return whether there is such a log. Raise OSError if that cannot be said."""

    @property
    def size(self) -> int | None:
        """Return the offset at which the next object would stand; None if it cannot be told."""

    def append(self, *records: Appendable) -> tuple[LogRecord, ...]:
        """Add objects at the end, all of them or none; they are durable when this returns.

        Raise RecordError for what cannot be kept, StoreError.
        """

    def read(self, start: int = 0) -> Iterator[LogLine]:
        """Yield the objects from offset ``start`` on, which is 0 or the ``end`` of one read before.

        What holds no object is yielded as a ``BadLine``. Nothing that a log can contain, or be, raises.
        """

    def read_backwards(self) -> Iterator[LogLine]:
        """Yield the objects from the last to the first, as :meth:`read` would; reads no more than is asked for."""

    def remove(self, goes: Callable[[LogRecord], bool]) -> int:
        """Remove objects for good; return how many. Raise StoreError."""

    def delete(self) -> None:
        """Remove the log for good, if there is one. Raise StoreError."""

    def checksum(self, start: int, end: int, before: int = 0, /) -> int | None:
        """Return the CRC-32 of what stands from ``start`` to ``end``, given that of what comes before.

        None if it cannot be told.
        """

    def is_end(self, offset: int, /) -> bool:
        """Return whether an object ends at this offset, or the log begins there; True where that cannot be told."""

    def count_blank(self, start: int, end: int, /) -> int:
        """Return how many lines between two offsets hold nothing at all; there are none but in files edited by hand."""


class LogFolder(Protocol):
    """Logs by name, in groups: the days of a chat, for instance."""

    @property
    def location(self) -> str:
        """Return where the logs are, for people."""

    @property
    def exists(self) -> bool:
        """Return whether anything was ever written."""

    def groups(self) -> Sequence[str | SkippedEntry]:
        """Return the names of the groups, in order, and what lies there without being one. Nothing raises."""

    def names(self, group: str, /) -> Sequence[str | SkippedEntry]:
        """Return the names of the logs of a group, in order, and what lies there without being one. Nothing raises."""

    def log(self, group: str, name: str, /) -> Log:
        """Return a log, whether it exists or not."""


class OwnedText(Protocol):
    """A text that is read and replaced as a whole, and that a person may have written."""

    @property
    def location(self) -> str:
        """Return where the text is, for people."""

    def read(self, most: int, /) -> bytes | None:
        """Return at most so many bytes of the text in UTF-8; None if there is none. Raise StoreError."""

    def changing(self) -> AbstractContextManager[None]:
        """Let nobody else change the text within the block. Raise StoreError."""

    def replace(self, text: str, /) -> None:
        """Replace the text; durable when this returns. Raise StoreError."""

    def keep_aside(self, data: bytes, /) -> str:
        """Keep a copy of a text that cannot be used, once; return where. Raise OSError, StoreError."""


class Journals(Protocol):
    """The journals of one memory, by name. The names of an extension should be its own, or begin with it."""

    def records(self, name: str, /, check: Callable[[Mapping[str, Any]], object] = ...) -> RecordJournal:
        """Return a journal of records. ``check`` raises RecordError for an object that is not a record of it."""

    def logs(self, name: str, /) -> LogFolder:
        """Return logs."""

    def text(self, name: str, /) -> OwnedText:
        """Return a text."""


@runtime_checkable
class JournalingStore(Protocol):
    """A store that keeps the journals as well, so that machines that share it share one memory.

    Optional: without it they are files in the data directory.
    """

    @property
    def journals(self) -> Journals:
        """Return the journals."""
