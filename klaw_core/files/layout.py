"""The layout of the data directory. All paths in it are defined here."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from klaw_core.errors import StoreReadOnlyError
from klaw_core.files.atomic import require_own_link


@frozen(eq=False, repr=False)
class DataDirectory:
    """The files of one memory.

    Everything except the store's file and ``skipped.json`` is primary data, which cannot be derived.
    """

    root: Path

    @property
    def skipped(self) -> Path:
        """The entries that the last index runs skipped; derived, like the store's file."""
        return self.root / "skipped.json"

    @property
    def server(self) -> Path:
        """The file that a server writes while it has this memory open, for the command line."""
        return self.root / "server.json"

    @property
    def machine_id(self) -> Path:
        """The random id of this data directory, in a store of several machines."""
        return self.root / "machine-id"

    @property
    def agents(self) -> Path:
        """The directory with the data directory of each agent."""
        return self.root / "agents"

    def agent(self, name: str) -> Path:
        """Return the data directory of an agent. Raise StoreReadOnlyError as :func:`own_directory` does."""
        return own_directory(self.root, self.agents.name, name)


def own_directory(data_dir: Path, *names: str) -> Path:
    """Return a directory below a data directory, whether it exists or not.

    Raise StoreReadOnlyError if a part of it is a link that another user may have created. A user's own link, in a
    directory that nobody else may write to, is followed: a part of the data may be on another disk.
    """
    path = data_dir.joinpath(*names)
    try:
        require_own_link(path, data_dir)
    except OSError as error:
        raise StoreReadOnlyError(
            f"{path} cannot be used: {error.strerror}",
            hint="check where it leads and remove it, or let only yourself write to its directory (chmod go-w)",
        ) from error
    return path
