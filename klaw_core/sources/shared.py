"""Which machine indexes which source, if several machines use one store.

A machine knows only its own directories. In a store that keeps the journals, an index run records the sources that it
reads, so that another machine neither takes their documents for leftovers nor gives their name to other notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from klaw_core.errors import WorkspaceError
from klaw_core.files.layout import DataDirectory
from klaw_core.files.machine_id import make_machine_id, read_machine_id
from klaw_core.interfaces.journal import JournalingStore

if TYPE_CHECKING:
    from klaw_core.interfaces.journal import RecordJournal
    from klaw_core.interfaces.store import Store
    from klaw_core.plugins.isolation import IsolatedSource

#: The journal of a store in which machines record their sources; it is not exported.
SOURCES_JOURNAL = "sources"


@frozen
class Machine:
    """A data directory on a machine. ``id`` is its random id, empty if it has none yet."""

    id: str
    host: str
    data_dir: str


@frozen
class SharedSource:
    """A source, the machine that indexes it, and its own directory (empty if it has none).

    Records of earlier versions have no id of the machine.
    """

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

    def record(self) -> dict[str, str]:
        """Return the JSON object of the record."""
        machine = {"host": self.machine.host, "data_dir": self.machine.data_dir, "machine": self.machine.id}
        return {"id": self.id, **machine, "directory": self.directory}


@frozen(eq=False)
class SharedSources:
    """The records of one store, as one machine sees them. Without a store that keeps the journals there are none.

    ``has_notes`` returns whether a directory has most of the documents that are indexed under a record's name.
    """

    journal: RecordJournal | None
    machine: Machine
    id_file: Path
    has_notes: Callable[[SharedSource, Path], bool]

    @classmethod
    def of(cls, store: Store[Any], data_dir: Path, has_notes: Callable[[SharedSource, Path], bool]) -> SharedSources:
        """Return the records of a store, as the machine with this data directory sees them."""
        file = DataDirectory(data_dir).machine_id
        if not isinstance(store, JournalingStore):
            return cls(None, Machine("", "", ""), file, has_notes)
        import socket

        machine = Machine(read_machine_id(file), socket.gethostname(), str(data_dir.resolve()))
        return cls(store.journals.records(SOURCES_JOURNAL), machine, file, has_notes)

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
        """Return whether this machine has made a record, or the machine that made it is unknown."""
        made_by = source.machine
        same_place = (made_by.host, made_by.data_dir) == (self.machine.host, self.machine.data_dir)
        return not made_by.host or (same_place and made_by.id in {"", self.machine.id})

    def elsewhere(self) -> list[SharedSource]:
        """Return the sources that other machines have recorded. Raise StoreError."""
        return [source for source in self.all().values() if not self.is_own(source)]

    def holder(self, source: IsolatedSource) -> SharedSource | None:
        """Return the record of another machine that uses this source's name for other notes, or None."""
        held = self.find(source)
        return None if held is None or self._may_replace(source, held) else held

    def claim(self, source: IsolatedSource) -> None:
        """Record that this machine indexes a source.

        Raise WorkspaceError if another machine uses its name for other notes, StoreError.
        """
        if self.journal is None:
            return
        own = self._own(source, make_machine_id(self.id_file))
        held = self.find(source)
        while held != own:
            if held is not None and not self._may_replace(source, held):
                raise taken(source, held)
            # Only the record that was read is replaced: if two machines see a free name, the first one gets it.
            if not self.journal.add([own.record()], partial(_is, held)):
                return
            held = self.find(source)

    def remove_own(self, origin: str) -> None:
        """Remove the records that this machine indexes sources of an origin. Raise StoreError."""
        self.remove(one for one in self.all().values() if one.origin == origin and self.is_own(one))

    def remove(self, sources: Iterable[SharedSource]) -> None:
        """Remove the records of sources. Raise StoreError."""
        if self.journal is not None and (ids := [source.id for source in sources]):
            self.journal.forget(ids)

    def _own(self, source: IsolatedSource, machine_id: str = "") -> SharedSource:
        """Return the record of a source as this machine writes it."""
        machine = evolve(self.machine, id=machine_id or self.machine.id)
        return SharedSource(source.origin, source.collection, machine, str(source.root or ""))

    def _may_replace(self, source: IsolatedSource, held: SharedSource) -> bool:
        """Return whether a record is this machine's, or that of the same notes before a move to this machine."""
        if self.is_own(held):
            return True
        if source.root is None:  # it has no directory, and is configured in the same way on all machines
            return not held.directory
        moved = held.directory == str(source.root) or (held.machine.id == self.machine.id != "")
        return moved and self.has_notes(held, source.root)


def _is(held: SharedSource | None, before: Mapping[str, Any], _new: Mapping[str, Any]) -> bool:
    """Return whether a record is the one that was read before."""
    return held is not None and _parse(held.id, before) == held


def taken(source: IsolatedSource, held: SharedSource) -> WorkspaceError:
    """Return the error for a source whose name another machine uses."""
    name, host = source.origin, held.machine.host
    other = ", with other files" if held.directory == str(source.root) else ""
    return WorkspaceError(
        f"{source.root or name} needs another name: in this memory {name!r} is {held.location}{other}",
        hint=f"`klaw workspace rename {name} NEW`; then, if {host} no longer exists, `klaw forget {name}/`",
    )


def _parse(name: str, record: Mapping[str, Any]) -> SharedSource:
    collection, _, origin = name.partition("/")
    made_by, host, data_dir, directory = (
        str(record.get(key, "")) for key in ("machine", "host", "data_dir", "directory")
    )
    return SharedSource(origin, collection, Machine(made_by, host, data_dir), directory)
