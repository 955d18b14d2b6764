"""Sources of documents, and their optional abilities in addition to scanning and reading.

The optional Protocols are independent of each other and ``runtime_checkable``: a source implements those that make
sense for it. The core wraps every source in one that has them all
(:class:`klaw_core.plugins.isolation.IsolatedSource`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from klaw_core.interfaces.store import Store
    from klaw_core.values.documents import Document, Entry
    from klaw_core.values.runs import ForgetReport, SkippedEntry


class Source(Protocol):
    """A place that documents come from: a directory, a mailbox, an export."""

    @property
    def origin(self) -> str:
        """Return the name that owns this source's documents; documents that a scan no longer finds are removed."""

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield the present entries without reading them. Raise WorkspaceError if the place itself is missing."""

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one entry. Return a SkippedEntry with the reason if it cannot be read.

        With ``keep=True`` its indexed document stays (a server that does not respond), with ``keep=False`` it is
        removed (a file that is empty now).
        """


@runtime_checkable
class DigestingSource(Protocol):
    """A source that can tell from the bytes of a document, before anything is made of them, that it has not changed."""

    def read_changed(self, entry: Entry, digest: str, /) -> Document | SkippedEntry | None:
        """Read one entry as :meth:`Source.read` does; return None if the document would have this ``digest``."""


@runtime_checkable
class StampedSource(Protocol):
    """A source that can tell, without reading its documents, that none of them has changed."""

    @property
    def stamp(self) -> Hashable:
        """Return a value that stays equal as long as no document changes or disappears; None if that is not known.

        An index run does not scan the source if neither the stamp nor the index has changed since the last run.
        """


@runtime_checkable
class CollectedSource(Protocol):
    """A source whose documents belong to a collection other than ``memory``."""

    @property
    def collection(self) -> str:
        """Return the name of the collection."""


@runtime_checkable
class ForgettableSource(Protocol):
    """A source that can forget single documents, so that the next scan does not add them again."""

    def forget(self, paths: Sequence[str], /) -> None:
        """Forget these documents permanently; unknown paths are ignored. Raise StoreError."""


@runtime_checkable
class ForgetfulSource(Protocol):
    """A source whose documents can be forgotten while an index run reads them."""

    def forgotten(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return which of these indexed documents were forgotten, by any process, since this object was made.

        An index run asks at its end: a document that it read before ``forget`` and wrote after it must go again.
        """


@runtime_checkable
class ShrinkingSource(Protocol):
    """A source whose documents can lose a part, such as a message, while an index run reads them."""

    def changed(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return which of these documents no longer have the text that this object has read last.

        An addition to the end is no change. An index run asks in the transaction that writes the documents, so this
        must be quick. It reads these documents again. Raise nothing; a document that is unknown has not changed.
        """


@runtime_checkable
class RetainingSource(Protocol):
    """A source that decides what happens to documents that a scan no longer finds."""

    @property
    def forgets_missing(self) -> bool:
        """Return whether they are forgotten (their vectors leave the cache as well) rather than just removed."""


@runtime_checkable
class WatchableSource(Protocol):
    """A source whose changes can be watched in the file system."""

    def watch_paths(self) -> Sequence[Path]:
        """Return the files and directories to watch; directories are watched recursively."""


@runtime_checkable
class LocatingSource(Protocol):
    """A source whose documents are files."""

    def locate(self, path: str, /) -> str | None:
        """Return the path of the document for a path in the file system, None if it does not belong to this source."""

    def file_of(self, path: str, /) -> Path | None:
        """Return the file of a document, None if this source does not have it now."""

    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the present text of a document's file, including front matter."""


@runtime_checkable
class PartedSource(Protocol):
    """A source whose files contain several documents each."""

    def documents_of(self, path: str, /) -> Sequence[str]:
        """Return the paths of the documents that a file contains now; none if it is not a file of this source."""


@runtime_checkable
class PreparedSource(Protocol):
    """A source that must do something before an index run scans it, but not before other scans."""

    def prepare(self, store: Store[Any], /) -> Sequence[SkippedEntry]:
        """Complete what a crash interrupted; bring rows of this source in ``store`` up to date.

        Return what could not be read.
        """


@runtime_checkable
class RemovableSource(Protocol):
    """A source that a person can remove as a whole, by ``klaw forget ORIGIN/``."""

    def remove(self) -> None:
        """Stop being a source. The files of the source are not changed."""


@runtime_checkable
class RowSource(Protocol):
    """A source with its own rows in the store in addition to its documents, such as messages."""

    def carry_over(self, old: Store[Any], new: Store[Any], skipped: Sequence[SkippedEntry], /) -> None:
        """Copy the rows of documents that a reindex had to skip from the store in use to the new one."""


@runtime_checkable
class DivisibleSource(Protocol):
    """A source whose documents have parts that a person can name, such as the messages of a conversation."""

    def part(self, target: str, /) -> str | None:
        """Return the text of a part; None if this source has none of this name."""

    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget a part of a document for good; None if this source has none of this name. Raise StoreError."""
