"""Journals: the primary data that people own. They are files in the data directory, unless the store keeps them.

There are three kinds: records by id, logs of messages, and single texts. :class:`Journals` gives them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from klaw_core.sources.machines import SharingStore

if TYPE_CHECKING:
    from klaw_core.sources.catalogue import Sources
    from klaw_core.sources.machines import Machines
    from klaw_core.values.runs import SkippedEntry
    from klaw_journals.contents import Appendable, JournalName, LogLine, LogRecord, Replay


class RecordJournal(Protocol):
    """Records by id, in the order in which each id first occurred. Safe for several threads and processes at once.

    In files it is JSON Lines.
    """

    @property
    def exists(self) -> bool:
        """Return whether anything was ever written."""

    @property
    def location(self) -> str:
        """Return where the records are, for people."""

    @property
    def version(self) -> Hashable:
        """Return a value that stays equal as long as nobody writes to the journal; reads no records."""

    def append(self, records: Sequence[Mapping[str, Any]], /) -> Hashable:
        """Append records, each a JSON object with a string ``id``; they are durable when this returns.

        A record with a known id replaces the old one in its position. Return the version after this write; the journal
        is unchanged as long as :attr:`version` equals it. Raise RecordError, StoreError.
        """

    def add(
        self,
        records: Sequence[Mapping[str, Any]],
        /,
        is_same: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = ...,
        ask: Callable[[], object] = ...,
    ) -> frozenset[str]:
        """Append records, except those whose id another record has; return the ids of those.

        ``is_same`` (default: equality) decides whether an existing record may be replaced by a new one with the same
        id. ``ask`` is called first, and may read the journal; what it raises is raised, and nothing is written. The
        checks and the write are one step: no other writer can come between them. Raise RecordError, StoreError.
        """

    def replay(self) -> Replay:
        """Return the content of the journal. No content raises."""

    def get(self, ids: Sequence[str], /) -> Mapping[str, Mapping[str, Any]]:
        """Return the existing records with these ids, without reading all others each time. Nothing raises."""

    def ids(self) -> Collection[str]:
        """Return the ids of all records. Nothing raises."""

    def forget(self, ids: Sequence[str], /) -> int:
        """Forget records; return how many there were. Their bytes are gone when this returns.

        Raise StoreError; the records may be forgotten nevertheless, and :meth:`finish` then removes their bytes.
        """

    def finish(self) -> None:
        """Remove the bytes of records that were forgotten just before a crash. Raise StoreError."""


class Log(Protocol):
    """JSON objects in the order in which they were appended. Safe for several threads and processes at once.

    Each object has an ascending offset, which stays the same as long as nothing before it is removed. In files it is a
    byte offset.
    """

    @property
    def location(self) -> str:
        """Return where the log is, for people."""

    @property
    def exists(self) -> bool:
        """Return whether the log exists. Raise OSError if that cannot be determined."""

    @property
    def size(self) -> int | None:
        """Return the offset of the next object to be appended; None if it is not known."""

    def append(self, *records: Appendable) -> tuple[LogRecord, ...]:
        """Add objects at the end, all of them or none; they are durable when this returns.

        Raise RecordError for an invalid object, StoreError.
        """

    def read(self, start: int = 0) -> Iterator[LogLine]:
        """Yield the objects from offset ``start`` on, which is 0 or the ``end`` of one read before.

        A line without an object is yielded as a ``BadLine``. No content or state of a log raises.
        """

    def read_backwards(self) -> Iterator[LogLine]:
        """Yield the objects from the last to the first, in the form of :meth:`read`; reads no more than is iterated."""

    def remove(self, goes: Callable[[LogRecord], bool]) -> int:
        """Remove objects permanently; return how many. Raise StoreError."""

    def delete(self) -> None:
        """Remove the log permanently, if it exists. Raise StoreError."""

    def drop_empty(self) -> None:
        """Remove what is left of a log that has no content. Raise StoreError."""

    def checksum(self, start: int, end: int, before: int = 0, /) -> int | None:
        """Return the CRC-32 of the content from ``start`` to ``end``, continued from that of the content before.

        None if it is not known.
        """

    def is_end(self, offset: int, /) -> bool:
        """Return whether an object ends at this offset, or the log begins there; True if that is not known."""

    def count_blank(self, start: int, end: int, /) -> int:
        """Return the number of empty lines between two offsets; they occur only in files edited by hand."""


class LogFolder(Protocol):
    """Logs by name, in groups: the days of a chat, for instance."""

    @property
    def location(self) -> str:
        """Return where the logs are, for people."""

    @property
    def exists(self) -> bool:
        """Return whether anything was ever written."""

    def groups(self) -> Sequence[str | SkippedEntry]:
        """Return the names of the groups, in order, and other entries found there. Nothing raises."""

    def names(self, group: str, /) -> Sequence[str | SkippedEntry]:
        """Return the names of the logs of a group, in order, and other entries found there. Nothing raises."""

    def log(self, group: str, name: str, /) -> Log:
        """Return a log, whether it exists or not."""


class OwnedText(Protocol):
    """A text that is read and replaced as a whole, and that a person may have written."""

    @property
    def location(self) -> str:
        """Return where the text is, for people."""

    def read(self, most: int, /) -> bytes | None:
        """Return at most this many bytes of the text in UTF-8; None if there is none. Raise StoreError."""

    def changing(self) -> AbstractContextManager[None]:
        """Lock the text against other writers within the block. Raise StoreError."""

    def replace(self, text: str, forgotten: Iterable[str] = (), /) -> None:
        """Replace the text; durable when this returns. Raise StoreError.

        ``forgotten`` names parts that are forgotten with it: other machines that have a copy of them forget them, too.
        """

    def keep_aside(self, data: bytes, /) -> str:
        """Store a copy of an invalid text, once; return its place. Raise OSError, StoreError."""

    def remove_copies(self) -> None:
        """Remove these copies, which may contain what is being forgotten. Raise StoreError."""


class Journals(Protocol):
    """The journals of one memory, by name. The names of an extension should be its own, or begin with it."""

    def records(self, name: str, /, check: Callable[[Mapping[str, Any]], object] = ...) -> RecordJournal:
        """Return a journal of records. ``check`` raises RecordError for an object that is not a record of it."""

    def logs(self, name: str, /) -> LogFolder:
        """Return logs."""

    def text(self, name: str, /) -> OwnedText:
        """Return a text."""

    def names(self) -> Sequence[JournalName]:
        """Return the journals that have content, of all extensions, in any order."""


class JournalingStore(SharingStore):
    """A store that keeps the journals as well, so that machines that share it share one memory.

    Optional: without it they are files in the data directory.
    """

    __slots__ = ()

    def machines(self, sources: Sources, /) -> Machines:
        """Return the records of sources, which are a journal."""
        from klaw_journals.sharing import RecordedSources

        return RecordedSources.of(self.journals, sources)

    if TYPE_CHECKING:  # an attribute or a property

        @property
        def journals(self) -> Journals:
            """Return the journals."""
