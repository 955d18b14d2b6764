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

    def is_taken_by(self, other: SharedSource) -> bool:
        """Return whether another machine indexes another directory under this name."""
        same_machine = (self.host, self.data_dir) == (other.host, other.data_dir)
        return not same_machine and self.directory != other.directory


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

    def elsewhere(self) -> list[SharedSource]:
        """Return the sources that other machines have recorded. Raise StoreError."""
        here = (self.host, self.data_dir)
        return [source for source in self.all().values() if (source.host, source.data_dir) != here]

    def record(self, source: IsolatedSource) -> None:
        """Record that this machine indexes a source.

        Raise WorkspaceError if another machine indexes another directory under this name, StoreError.
        """
        if self.journal is None:
            return
        own = SharedSource(source.origin, source.collection, self.host, self.data_dir, str(source.root or ""))
        found = self.journal.get([own.id]).get(own.id)
        held = None if found is None else _parse(own.id, found)
        if held == own:
            return
        if held is not None and own.is_taken_by(held):
            raise WorkspaceError(
                f"{own.directory} needs another name: in this memory {own.origin!r} is {held.location}",
                hint=f"`klaw workspace rename {own.origin} NEW`, or `klaw forget {own.origin}/` if that one is gone",
            )
        self.journal.append([{"id": own.id, "host": own.host, "data_dir": own.data_dir, "directory": own.directory}])

    def remove_own(self, origin: str) -> None:
        """Remove the records that this machine indexes sources of an origin. Raise StoreError."""
        others = {source.id for source in self.elsewhere()}
        self.remove(one for one in self.all().values() if one.origin == origin and one.id not in others)

    def remove(self, sources: Iterable[SharedSource]) -> None:
        """Remove the records of sources. Raise StoreError."""
        if self.journal is not None and (ids := [source.id for source in sources]):
            self.journal.forget(ids)


def _parse(name: str, record: Any) -> SharedSource:
    collection, _, origin = name.partition("/")
    host, data_dir, directory = (str(record.get(key, "")) for key in ("host", "data_dir", "directory"))
    return SharedSource(origin, collection, host, data_dir, directory)
