"""The journal of a store in which machines record which sources they index."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Self

from attrs import evolve, frozen

from klaw_core import NotFoundError, WorkspaceError
from klaw_core.files.layout import DataDirectory
from klaw_core.sources.machines import Machines
from klaw_journals.interfaces import Journals, RecordJournal
from klaw_journals.machine_id import make_machine_id, read_machine_id

if TYPE_CHECKING:
    from klaw_core.plugins.isolation import IsolatedSource
    from klaw_core.sources.catalogue import Sources

# Files that are compared to decide whether two directories have the same notes.
_MAX_COMPARED_PATHS = 1000
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


@frozen(eq=False)
class RecordedSources(Machines):
    """The records of one store, as one machine sees them. Records of earlier versions have no id of the machine."""

    sources: Sources
    journal: RecordJournal
    machine: Machine
    id_file: Path

    @classmethod
    def of(cls, journals: Journals, sources: Sources) -> Self:
        """Return the records in these journals, as the machine that has these sources sees them."""
        data_dir = sources.assembly.config.data_dir
        file = DataDirectory(data_dir).machine_id
        machine = Machine(read_machine_id(file), socket.gethostname(), str(data_dir.resolve()))
        return cls(sources, journals.records(SOURCES_JOURNAL), machine, file)

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

    def _elsewhere(self) -> Iterator[SharedSource]:
        """Yield the sources that other machines have recorded, and this one does not index.

        A source of this machine whose name another machine uses for other notes is one of them.
        """
        others = [source for source in self.all().values() if not self.is_own(source)]
        known = self.sources.all() if others else ()
        here = {(source.origin, source.collection) for source in known if self.problem(source) is None}
        return (other for other in others if (other.origin, other.collection) not in here)

    def elsewhere(self) -> Mapping[tuple[str, str], str]:
        """Return the sources that other machines index and this one does not, with the place. Raise StoreError."""
        return {(other.origin, other.collection): other.location for other in self._elsewhere()}

    def unrecorded(self) -> set[tuple[str, str]]:
        """Return the indexed documents without a source that no machine has recorded. Raise StoreError.

        They may belong to a machine whose version of Klaw records nothing yet, or to an extension that only other
        machines have, so only `klaw forget` removes them.
        """
        indexed = {(origin, name) for name, each in self.sources.counts().items() for origin in each}
        recorded = {(source.origin, source.collection) for source in self.all().values()}
        known = {(source.origin, source.collection) for source in self.sources.all()}
        return {each for each in indexed - recorded - known if each[0] not in self.sources.reserved}

    def free_elsewhere(self) -> Mapping[str, Collection[str]]:
        """Return the names that other machines use, with the directories of this machine that have the same notes."""
        free: dict[str, list[str]] = {}
        for other in self._elsewhere():
            directories = free.setdefault(other.origin, [])
            # The list of indexed files is long, so it is read only for a directory that exists here.
            if other.directory and Path(other.directory).is_dir() and self._has_notes(other, Path(other.directory)):
                directories.append(other.directory)
        return free

    def problem(self, source: IsolatedSource, /) -> WorkspaceError | None:
        """Return why this machine may not index a source, None if it may. Raise StoreError."""
        if source.origin in self.sources.reserved:  # the sources of an extension are those of all machines
            return None
        held = self._find(self._own(source).id)
        return None if held is None or self._may_replace(source.root, held) else _taken(source, held)

    def claim(self, source: IsolatedSource, /) -> None:
        """Record that this machine indexes a source. Raise WorkspaceError, StoreError."""
        if source.origin in self.sources.reserved:
            return
        own = self._own(source, make_machine_id(self.id_file))
        held = self._find(own.id)
        while held != own:
            if held is not None and not self._may_replace(source.root, held):
                raise _taken(source, held)
            # Only the record that was read is replaced: if two machines see a free name, the first one gets it.
            if not self.journal.add([_record(own)], partial(_is, held)):
                return
            held = self._find(own.id)

    def check_own(self, path: str, origin: str, collection: str, /) -> None:
        """Raise NotFoundError if a document cannot be forgotten here: another machine has its file."""
        for other in self._elsewhere():
            if (other.origin, other.collection) == (origin, collection):
                there = f"`klaw forget {quote(path)}` on {other.machine.host}"
                raise NotFoundError(
                    f"{path} is a note of {other.location}, whose next index run would add it again",
                    hint=f"{there}; if that machine no longer exists: `klaw forget {quote(origin)}/`",
                )

    def forget(self, origin: str, collections: Collection[str], /) -> None:
        """Remove the records of an origin in these collections. Raise StoreError."""
        found = (one.id for one in self.all().values() if one.origin == origin and one.collection in collections)
        if ids := list(found):
            self.journal.forget(ids)

    def _own(self, source: IsolatedSource, machine_id: str = "") -> SharedSource:
        """Return the record of a source as this machine writes it."""
        machine = evolve(self.machine, id=machine_id or self.machine.id)
        return SharedSource(source.origin, source.collection, machine, str(source.root or ""))

    def _may_replace(self, root: Path | None, held: SharedSource) -> bool:
        """Return whether a record is this machine's, or that of the same notes before a move to this machine."""
        if self.is_own(held):
            return True
        if root is None:  # it has no directory, and is configured in the same way on all machines
            return not held.directory
        moved = held.directory == str(root) or (held.machine.id == self.machine.id != "")
        return moved and self._has_notes(held, root)

    def _has_notes(self, held: SharedSource, root: Path) -> bool:
        """Return whether a directory has at least half of the files that are indexed under a record's name.

        Two machines often have different notes in directories with the same path, such as /root/notes.
        """
        paths = self.sources.paths(held.origin, held.collection)
        compared = paths[:: len(paths) // _MAX_COMPARED_PATHS + 1]
        own = (os.path.join(root, path.removeprefix(f"{held.origin}/")) for path in compared)  # noqa: PTH118  # fast
        return 2 * sum(map(os.path.exists, own)) >= len(compared)


def _is(held: SharedSource | None, before: Mapping[str, Any], _new: Mapping[str, Any]) -> bool:
    """Return whether a record is the one that was read before."""
    return held is not None and _parse(held.id, before) == held


def _taken(source: IsolatedSource, held: SharedSource) -> WorkspaceError:
    """Return the error for a source whose name another machine uses."""
    name, root = source.origin, source.root
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
