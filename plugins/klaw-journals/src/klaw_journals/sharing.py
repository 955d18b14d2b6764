"""The journal of a store in which machines record which sources they index."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Self

from attrs import evolve, frozen

from klaw_core import WorkspaceError
from klaw_core.files.layout import DataDirectory
from klaw_core.interfaces.sharing import Machine, SharedSource, SharedSources
from klaw_journals.interfaces import Journals, RecordJournal
from klaw_journals.machine_id import make_machine_id, read_machine_id

#: The journal of a store in which machines record their sources; it is not exported.
SOURCES_JOURNAL = "sources"


@frozen(eq=False)
class RecordedSources(SharedSources):
    """The records of one store, as one machine sees them. Records of earlier versions have no id of the machine."""

    are_recorded = True
    journal: RecordJournal
    machine: Machine
    id_file: Path
    has_notes: Callable[[SharedSource, Path], bool]

    @classmethod
    def of(cls, journals: Journals, data_dir: Path, has_notes: Callable[[SharedSource, Path], bool]) -> Self:
        """Return the records in these journals, as the machine with this data directory sees them."""
        file = DataDirectory(data_dir).machine_id
        machine = Machine(read_machine_id(file), socket.gethostname(), str(data_dir.resolve()))
        return cls(journals.records(SOURCES_JOURNAL), machine, file, has_notes)

    def all(self) -> dict[str, SharedSource]:
        """Return every recorded source by id. Raise StoreError."""
        return {name: _parse(name, record) for name, record in self.journal.replay().records.items()}

    def _find(self, name: str) -> SharedSource | None:
        found = self.journal.get([name])
        return _parse(name, found[name]) if name in found else None

    def is_own(self, source: SharedSource) -> bool:
        """Return whether this machine has made a record, or the machine that made it is unknown."""
        made_by = source.machine
        same_place = (made_by.host, made_by.data_dir) == (self.machine.host, self.machine.data_dir)
        return not made_by.host or (same_place and made_by.id in {"", self.machine.id})

    def elsewhere(self) -> list[SharedSource]:
        """Return the sources that other machines have recorded. Raise StoreError."""
        return [source for source in self.all().values() if not self.is_own(source)]

    def problem(self, origin: str, collection: str, root: Path | None, /) -> WorkspaceError | None:
        """Return why this machine may not index a source, None if it may. Raise StoreError."""
        held = self._find(self._own(origin, collection, root).id)
        return None if held is None or self._may_replace(root, held) else _taken(origin, root, held)

    def claim(self, origin: str, collection: str, root: Path | None, /) -> None:
        """Record that this machine indexes a source. Raise WorkspaceError, StoreError."""
        own = self._own(origin, collection, root, make_machine_id(self.id_file))
        held = self._find(own.id)
        while held != own:
            if held is not None and not self._may_replace(root, held):
                raise _taken(origin, root, held)
            # Only the record that was read is replaced: if two machines see a free name, the first one gets it.
            if not self.journal.add([_record(own)], partial(_is, held)):
                return
            held = self._find(own.id)

    def remove_own(self, origin: str) -> None:
        """Remove the records that this machine indexes sources of an origin. Raise StoreError."""
        self.remove(one for one in self.all().values() if one.origin == origin and self.is_own(one))

    def remove(self, sources: Iterable[SharedSource]) -> None:
        """Remove the records of sources. Raise StoreError."""
        if ids := [source.id for source in sources]:
            self.journal.forget(ids)

    def _own(self, origin: str, collection: str, root: Path | None, machine_id: str = "") -> SharedSource:
        """Return the record of a source as this machine writes it."""
        machine = evolve(self.machine, id=machine_id or self.machine.id)
        return SharedSource(origin, collection, machine, str(root or ""))

    def _may_replace(self, root: Path | None, held: SharedSource) -> bool:
        """Return whether a record is this machine's, or that of the same notes before a move to this machine."""
        if self.is_own(held):
            return True
        if root is None:  # it has no directory, and is configured in the same way on all machines
            return not held.directory
        moved = held.directory == str(root) or (held.machine.id == self.machine.id != "")
        return moved and self.has_notes(held, root)


def _is(held: SharedSource | None, before: Mapping[str, Any], _new: Mapping[str, Any]) -> bool:
    """Return whether a record is the one that was read before."""
    return held is not None and _parse(held.id, before) == held


def _taken(name: str, root: Path | None, held: SharedSource) -> WorkspaceError:
    """Return the error for a source whose name another machine uses."""
    host = held.machine.host
    other = ", with other files" if held.directory == str(root) else ""
    word = quote(name)
    return WorkspaceError(
        f"{root or name} needs another name: in this memory {name!r} is {held.location}{other}",
        hint=f"`klaw workspace rename {word} NEW`; then, if {host} no longer exists, `klaw forget {word}/`",
    )


def _record(source: SharedSource) -> dict[str, str]:
    machine = {"host": source.machine.host, "data_dir": source.machine.data_dir, "machine": source.machine.id}
    return {"id": source.id, **machine, "directory": source.directory}


def _parse(name: str, record: Mapping[str, Any]) -> SharedSource:
    collection, _, origin = name.partition("/")
    made_by, host, data_dir, directory = (
        str(record.get(key, "")) for key in ("machine", "host", "data_dir", "directory")
    )
    return SharedSource(origin, collection, Machine(made_by, host, data_dir), directory)
