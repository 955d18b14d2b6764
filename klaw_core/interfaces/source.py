"""Sources of documents. A source inherits :class:`Source`, and the abilities that it has in addition.

    class Mailbox(Source, Forgettable): ...

An ability that a class does not inherit does not exist, whatever its methods are called. These are ordinary classes, so
that ``isinstance`` is fast. The core asks each source through :class:`klaw_core.plugins.isolation.IsolatedSource`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klaw_core.values.collections import MEMORY

if TYPE_CHECKING:
    from klaw_core.interfaces.store import Store
    from klaw_core.values.documents import Document, Entry
    from klaw_core.values.runs import ForgetReport, SkippedEntry


class Source:
    """A place that documents come from: a directory, a mailbox, an export."""

    __slots__ = ()

    if TYPE_CHECKING:  # a subclass may define these as attributes or as properties

        @property
        def origin(self) -> str:
            """Return the name that owns this source's documents; those that a scan no longer finds are removed."""

        @property
        def collection(self) -> str:
            """Return the collection of its documents."""

        @property
        def forgets_missing(self) -> bool:
            """Return whether documents that a scan no longer finds are forgotten, rather than just removed."""

        @property
        def stamp(self) -> Hashable:
            """Return a value that stays equal as long as no document changes or disappears; None if not known.

            An index run does not scan the source if neither the stamp nor the index has changed since the last run.
            """

    else:
        collection = MEMORY
        forgets_missing = False
        stamp = None

    @abstractmethod
    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Yield the present entries without reading them. Raise WorkspaceError if the place itself is missing."""

    @abstractmethod
    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one entry. Return a SkippedEntry with the reason if it cannot be read.

        With ``keep=True`` its indexed document stays (a server that does not respond), with ``keep=False`` it is
        removed (a file that is empty now).
        """

    def read_changed(self, entry: Entry, _digest: str, /) -> Document | SkippedEntry | None:
        """Read one entry as :meth:`read` does; return None if the document would have this ``digest``."""
        return self.read(entry)

    def prepare(self, _store: Store[Any], /) -> Sequence[SkippedEntry]:
        """Complete what a crash interrupted before an index run scans; return what could not be read."""
        return ()

    def watch_paths(self) -> Sequence[Path]:
        """Return the files and directories to watch for changes; directories are watched recursively."""
        return ()

    def why_not_forgotten(self, _path: str, /) -> tuple[str, str] | None:
        """Return why a document cannot be forgotten, and what to do instead; None if there is nothing to add."""
        return None


class Forgettable:
    """A source that can forget single documents, so that the next scan does not add them again."""

    __slots__ = ()

    @abstractmethod
    def forget(self, paths: Sequence[str], /) -> None:
        """Forget these documents permanently; unknown paths are ignored. Raise StoreError."""


class Forgetful:
    """A source whose documents can be forgotten while an index run reads them."""

    __slots__ = ()

    @abstractmethod
    def forgotten(self, paths: Iterable[str], /) -> Sequence[str]:
        """Return which of these indexed documents were forgotten, by any process, since this object was made.

        Their list can be long; it is read when the first of them is, and can be iterated over once.
        An index run asks at its end: a document that it read before ``forget`` and wrote after it must go again.
        """


class Shrinking:
    """A source whose documents can lose a part, such as a message, while an index run reads them."""

    __slots__ = ()

    @abstractmethod
    def changed(self, paths: Sequence[str], /) -> Sequence[str]:
        """Return which of these documents no longer have the text that this object has read last.

        An addition to the end is no change. An index run asks in the transaction that writes the documents, so this
        must be quick. It reads these documents again. Raise nothing; a document that is unknown has not changed.
        """


class Located:
    """A source whose documents are files, or parts of files."""

    __slots__ = ()

    @abstractmethod
    def locate(self, path: str, /) -> str | None:
        """Return the path of the document for a path in the file system, None if it does not belong to this source."""

    @abstractmethod
    def file_of(self, path: str, /) -> Path | None:
        """Return the file of a document, None if this source does not have it now."""

    @abstractmethod
    def file_text(self, path: str, /) -> str | SkippedEntry:
        """Return the present text of a document's file, including front matter."""

    def documents_of(self, path: str, /) -> Sequence[str]:
        """Return the paths of the documents that a file contains now; none if it is not a file of this source."""
        located = self.locate(path)
        return () if located is None else (located,)


class Folder(Located):
    """A source whose documents are the files of a directory, which a person chose by patterns."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def root(self) -> Path:
            """Return the directory."""

        @property
        def include(self) -> Sequence[str]:
            """Return the patterns of the names of its files."""

        @property
        def exclude(self) -> Sequence[str]:
            """Return the patterns of paths that are left out."""

        @property
        def version(self) -> str:
            """Return the version of the software that its documents describe; empty if there is none."""

    def why_left_out(self, _path: str, /) -> str:
        """Return why the source leaves out an existing file; empty if it cannot say."""
        return ""


class Removable:
    """A source that a person can remove as a whole, by ``klaw forget ORIGIN/``."""

    __slots__ = ()

    @abstractmethod
    def remove(self) -> None:
        """Stop being a source. The files of the source are not changed."""


class RowSource:
    """A source with its own rows in the store in addition to its documents, such as messages."""

    __slots__ = ()

    @abstractmethod
    def carry_over(self, old: Store[Any], new: Store[Any], skipped: Sequence[SkippedEntry], /) -> None:
        """Copy the rows of documents that a reindex had to skip from the store in use to the new one."""


class Divisible:
    """A source whose documents have parts that a person can name, such as the messages of a conversation."""

    __slots__ = ()

    @abstractmethod
    def part(self, target: str, /) -> str | None:
        """Return the text of a part; None if this source has none of this name."""

    @abstractmethod
    def forget_part(self, target: str, /) -> ForgetReport | None:
        """Forget a part of a document for good; None if this source has none of this name. Raise StoreError."""
