"""Places that machines share: a folder, a git repository, an object store. None needs a server of Klaw's, or a lock."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from klaw_core import ConfigError, Descriptor, StoreError, sync_directory
from klaw_journals.rewriting import replace_file
from klaw_sync.errors import SegmentError
from klaw_sync.segments import MAX_FILE_BYTES, SUFFIX

#: The file that says which memory a remote belongs to.
MEMORY_FILE = "klaw-memory.json"

#: Why something in the place of a segment or of a directory of segments is not read.
NOT_A_FILE = "it is a link or another special file, so what a machine wrote there is not read"

#: The directory of a machine's segments.
MACHINE = re.compile("[0-9a-f]{16}", re.ASCII)


class Remote(ABC):
    """A set of files that are written once. Names have the form ``MACHINE/NAME``, except :data:`MEMORY_FILE`.

    Every method raises StoreError if the place cannot be reached.
    """

    __slots__ = ()
    #: The place, for people and as the name of its state; no secrets.
    location: str

    def fetch(self) -> None:  # noqa: B027  # most places need no step of their own
        """Get what others have written, where that is a step of its own."""

    def fetch_all(self) -> None:
        """Get everything, also what this machine has already: an examination is of the place, not of a copy."""
        self.fetch()

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the files that may be segments, sorted; also of copies under other names."""

    def unusable(self) -> list[str]:
        """Return the names of segments, and of directories of machines, in whose place is something else, sorted."""
        return []

    @abstractmethod
    def get(self, name: str) -> bytes:
        """Return a file. Raise SegmentError if it is not there, is too large, or is not a regular file."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Write a file that does not exist yet; a second time changes nothing. Durable at :meth:`flush`."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""

    def flush(self) -> None:  # noqa: B027  # as above
        """Make everything durable, and visible to others."""


@frozen
class Folder(Remote):
    """A folder, which Syncthing, Dropbox, a network disk or a stick carries to other machines."""

    root: Path

    @property
    def location(self) -> str:  # type: ignore[override]  # ty: an attribute of the base
        """The path."""
        return str(self.root)

    def names(self) -> list[str]:
        """Return the visible files, one directory deep. Links and other special files are not followed."""
        return sorted(name for name, is_usable in self._listed() if is_usable)

    def unusable(self) -> list[str]:
        """Return links and other special files in the place of segments, and of directories of machines."""
        return sorted(name for name, is_usable in self._listed() if not is_usable)

    def _listed(self) -> Iterator[tuple[str, bool]]:
        try:
            with os.scandir(self.root) as entries:
                machines = {item.name: item.is_dir(follow_symlinks=False) for item in entries}
            for machine in filter(MACHINE.fullmatch, machines):
                if not machines[machine]:
                    yield machine, False
                    continue
                with os.scandir(self.root / machine) as entries:
                    for item in entries:
                        if SUFFIX in item.name and not item.name.startswith("."):
                            yield f"{machine}/{item.name}", item.is_file(follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.root} cannot be read: {error.strerror}") from error

    def get(self, name: str) -> bytes:
        """Return a file."""
        opened = Descriptor(self._path(name), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            with opened as descriptor, open(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise SegmentError(f"{name} cannot be read: {error.strerror}") from error
        if len(data) > MAX_FILE_BYTES:
            raise SegmentError(f"{name} has over {MAX_FILE_BYTES >> 20} MiB")
        return data

    def put(self, name: str, data: bytes) -> None:
        """Write a file: complete under its name, or not at all."""
        path = self._path(name)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.exists():
                return
            replace_file(path, data)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error

    def delete(self, name: str) -> None:
        """Delete a file."""
        path = self._path(name)
        try:
            path.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                sync_directory(path.parent)
        except OSError as error:
            raise StoreError(f"{path} cannot be deleted: {error.strerror}") from error

    def _path(self, name: str) -> Path:
        """Return a path; names from the folder's listing, or made here, have at most one directory."""
        machine, slash, rest = name.rpartition("/")
        if (slash and MACHINE.fullmatch(machine) is None) or not rest or "/" in rest or rest in {".", ".."}:
            raise SegmentError(f"{name} is not the name of a segment")
        return self.root / name


# Addresses of git repositories; so is a path that ends in ".git".
_GIT = ("git+", "git@", "ssh://", "git://")


def open_remote(place: str, data_dir: Path) -> Remote:
    """Return the remote at a place, as a person writes it. Raise ConfigError."""
    if re.match(r"[a-z0-9+]+://", place) and not place.startswith(_GIT):
        from klaw_sync.objects import open_bucket

        return open_bucket(place)
    if place.startswith(_GIT) or place.endswith(".git"):
        from klaw_sync.git import GitRepository, cache_of

        address = place.removeprefix("git+")
        return GitRepository(address, cache_of(data_dir, address))
    root = Path(place).expanduser()
    if not place.strip():
        raise ConfigError(
            ["no place to synchronise with"], hint='klaw sync DIR, or remotes = ["DIR"] in [extensions.sync]'
        )
    folder, own = root.resolve(), data_dir.resolve()
    if folder == own or own in folder.parents or folder in own.parents:
        raise ConfigError(
            [f"{root} and the data directory are in each other: it may not hold klaw.db or the key"],
            hint="choose a folder of its own, such as ~/Sync/klaw",
        )
    return Folder(folder)
