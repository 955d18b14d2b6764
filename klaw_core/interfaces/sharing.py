"""Which machine indexes which source, in a store that several machines share.

A machine knows only its own directories. So an index run records the sources that it reads, and another machine
neither takes their documents for leftovers nor gives their name to other notes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import frozen

from klaw_core.errors import WorkspaceError


@frozen
class Machine:
    """A data directory on a machine. ``id`` is its random id, empty if it has none yet."""

    id: str
    host: str
    data_dir: str


@frozen
class SharedSource:
    """A source, the machine that indexes it, and its own directory (empty if it has none)."""

    origin: str
    collection: str
    machine: Machine
    directory: str

    @property
    def id(self) -> str:
        """The id of its record."""
        return f"{self.collection}/{self.origin}"

    @property
    def location(self) -> str:
        """The machine and the directory, for people."""
        return f"{self.machine.host}:{self.directory or self.machine.data_dir}"


class SharedSources:
    """The recorded sources of a store, as one machine sees them; here none, for a store of one machine.

    Methods raise StoreError.
    """

    __slots__ = ()
    #: Whether machines record their sources.
    are_recorded = False

    def all(self) -> Mapping[str, SharedSource]:
        """Return every recorded source by id."""
        return {}

    def elsewhere(self) -> Iterable[SharedSource]:
        """Return the sources that other machines have recorded."""
        return ()

    def problem(self, _origin: str, _collection: str, _root: Path | None, /) -> WorkspaceError | None:
        """Return why this machine may not index a source: another one uses its name for other notes. Else None."""
        return None

    def claim(self, origin: str, collection: str, root: Path | None, /) -> None:
        """Record that this machine indexes a source. Raise the error of :meth:`problem`."""

    def remove_own(self, origin: str, /) -> None:
        """Remove the records that this machine indexes sources of an origin."""

    def remove(self, sources: Iterable[SharedSource], /) -> None:
        """Remove the records of sources."""


class SharingStore:
    """A store that several machines may use at once."""

    __slots__ = ()

    @abstractmethod
    def shared_sources(self, data_dir: Path, has_notes: Callable[[SharedSource, Path], bool], /) -> SharedSources:
        """Return the records of sources, as the machine with this data directory sees them.

        ``has_notes`` returns whether a directory has most of the documents that are indexed under a record's name.
        """
