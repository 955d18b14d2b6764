"""Which machine indexes which source, if several machines use one store.

A machine knows only its own directories. In a store that keeps the journals, an index run records the sources that it
reads, so that another machine neither takes their documents for leftovers nor gives their name to other notes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core.errors import WorkspaceError
from klaw_core.interfaces.journal import JournalingStore

if TYPE_CHECKING:
    from klaw_core.interfaces.journal import RecordJournal
    from klaw_core.interfaces.store import Store
    from klaw_core.plugins.isolation import IsolatedSource

_JOURNAL = "sources"


@frozen
class SharedSource:
    """A source, the machine and the data directory that index it, and its own directory (empty if it has none)."""

    origin: str
    collection: str
    host: str
    data_dir: str
    directory: str

    @property
    def id(self) -> str:
        """The id of its record."""
        return f"{self.collection}/{self.origin}"

    @property
    def location(self) -> str:
        """The machine and the directory, for people."""
        return f"{self.host}:{self.directory or self.data_dir}"


@frozen(eq=False)
class SharedSources:
    """The records of one store. Without a store that keeps the journals there are none."""

    journal: RecordJournal | None
    host: str
    data_dir: str

    @classmethod
    def of(cls, store: Store[Any], data_dir: Path) -> SharedSources:
        """Return the records of a store, as the machine with this data directory sees them."""
        if not isinstance(store, JournalingStore):
            return cls(None, "", "")
        import socket

        return cls(store.journals.records(_JOURNAL), socket.gethostname(), str(data_dir.resolve()))

    def all(self) -> dict[str, SharedSource]:
        """Return every recorded source by id. Raise StoreError."""
        if self.journal is None:
            return {}
        return {name: _parse(name, record) for name, record in self.journal.replay().records.items()}

    def find(self, source: IsolatedSource) -> SharedSource | None:
        """Return the record of a source's name, None if there is none. Raise StoreError."""
        name = self._own(source).id
        found = {} if self.journal is None else self.journal.get([name])
        return _parse(name, found[name]) if name in found else None

    def is_own(self, source: SharedSource) -> bool:
        """Return whether this machine has made a record, or nobody is known to have made it."""
        return not source.host or (source.host, source.data_dir) == (self.host, self.data_dir)

    def elsewhere(self) -> list[SharedSource]:
        """Return the sources that other machines have recorded. Raise StoreError."""
        return [source for source in self.all().values() if not self.is_own(source)]

    def holder(self, source: IsolatedSource) -> SharedSource | None:
        """Return the record of another machine that uses this source's name for another directory, or None."""
        held = self.find(source)
        return None if held is None or self._may_replace(source, held) else held

    def claim(self, source: IsolatedSource) -> None:
        """Record that this machine indexes a source.

        Raise WorkspaceError if another machine uses its name for another directory, StoreError.
        """
        if self.journal is None:
            return
        own = self._own(source)
        if self.find(source) == own:
            return
        if (held := self.holder(source)) is not None:
            raise taken(source, held)
        record = {"id": own.id, "host": own.host, "data_dir": own.data_dir, "directory": own.directory}
        # Two machines may see at the same moment that nobody uses the name: the first of them gets it.
        if self.journal.add([record], lambda before, _: self._may_replace(source, _parse(own.id, before))):
            held = self.find(source)
            if held is not None:
                raise taken(source, held)

    def _may_replace(self, source: IsolatedSource, held: SharedSource) -> bool:
        return self.is_own(held) or held.directory == self._own(source).directory

    def remove_own(self, origin: str) -> None:
        """Remove the records that this machine indexes sources of an origin. Raise StoreError."""
        self.remove(one for one in self.all().values() if one.origin == origin and self.is_own(one))

    def remove(self, sources: Iterable[SharedSource]) -> None:
        """Remove the records of sources. Raise StoreError."""
        if self.journal is not None and (ids := [source.id for source in sources]):
            self.journal.forget(ids)

    def _own(self, source: IsolatedSource) -> SharedSource:
        """Return the record of a source as this machine writes it."""
        return SharedSource(source.origin, source.collection, self.host, self.data_dir, str(source.root or ""))


def taken(source: IsolatedSource, held: SharedSource) -> WorkspaceError:
    """Return the error for a source whose name another machine uses."""
    name = source.origin
    return WorkspaceError(
        f"{source.root or name} needs another name: in this memory {name!r} is {held.location}",
        hint=f"`klaw workspace rename {name} NEW`; then, if {held.host} no longer exists, `klaw forget {name}/`",
    )


def _parse(name: str, record: Any) -> SharedSource:
    collection, _, origin = name.partition("/")
    host, data_dir, directory = (str(record.get(key, "")) for key in ("host", "data_dir", "directory"))
    return SharedSource(origin, collection, host, data_dir, directory)
