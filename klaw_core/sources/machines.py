"""Which machine indexes which source, in a store that several machines share.

A machine knows only its own directories. So a store that is shared records which machine reads which source, and the
core asks it before it takes documents for leftovers, indexes a source or forgets one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_core.errors import WorkspaceError
    from klaw_core.plugins.isolation import IsolatedSource
    from klaw_core.sources.catalogue import Sources


class Machines:
    """The machines that index the sources of a store: here this one alone. Methods raise StoreError."""

    __slots__ = ()

    def elsewhere(self) -> Mapping[tuple[str, str], str]:
        """Return the (origin, collection) that another machine indexes and this one does not, and where, for people."""
        return {}

    def unrecorded(self) -> Collection[tuple[str, str]]:
        """Return the (origin, collection) of documents that may belong to a machine, or have no source any more."""
        return ()

    def free_elsewhere(self) -> Mapping[str, Collection[str]]:
        """Return the names that other machines use, with the directories of this machine that have the same notes."""
        return {}

    def problem(self, _source: IsolatedSource, /) -> WorkspaceError | None:
        """Return why this machine may not index a source: another one uses its name for other notes. Else None."""
        return None

    def claim(self, source: IsolatedSource, /) -> None:
        """Record that this machine indexes a source. Raise the error of :meth:`problem`."""

    def check_own(self, path: str, origin: str, collection: str, /) -> None:
        """Raise NotFoundError if a document cannot be forgotten on this machine, because its file is on another one."""

    def forget(self, origin: str, collections: Collection[str], /) -> None:
        """Forget which machine indexes an origin in these collections, so that its name is free."""


class SharingStore:
    """A store that several machines may use at once."""

    __slots__ = ()

    @abstractmethod
    def machines(self, sources: Sources, /) -> Machines:
        """Return which machines index what, for the machine that has these sources."""
