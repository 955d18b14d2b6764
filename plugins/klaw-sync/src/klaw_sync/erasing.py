"""The extension ``sync_erasing``: takes what was forgotten out of ``sync/state.db``, without a synchronisation."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from attrs import define, field

from klaw_core import Event, ListeningExtension, StoreLockedError

#: Names in the ``meta`` of ``state.db``: of the mark that a text was dropped, and of the size of the list of what was
#: forgotten, when everything in it was erased.
SCRUB, ERASED = "scrub", "erased"
_WAIT_SECONDS = 1  # for a running synchronisation, which erases at its end what was forgotten meanwhile


@define(eq=False)
class Erasing(ListeningExtension):
    """Listens to forgetting, and to index runs, which complete a forgetting that was interrupted."""

    data_dir: Path
    #: The size of the list of what was forgotten, when everything in it was erased; the list only grows.
    _erased: int = field(default=-1, init=False)
    name = "sync_erasing"

    def on(self, _event: Event, /) -> None:
        """Erase what was forgotten since the last time; without anything it costs one look at a file."""
        directory = self.data_dir / "sync"
        try:
            size = (directory / "forgotten.jsonl").stat().st_size
        except OSError:  # no other machine shares this memory, or nothing was forgotten
            return
        if size == self._erased or not os.access(directory, os.W_OK):
            return
        if not _is_due(directory / "state.db", size):
            self._erased = size
            return
        from klaw_sync.run import Sync  # slow, and most processes have nothing to erase

        try:
            Sync(self.data_dir).erase(limit_seconds=_WAIT_SECONDS)
        except StoreLockedError:
            return
        self._erased = size


def _is_due(database: Path, size: int) -> bool:
    """Return whether a database may have texts that are in a list of this size. One that cannot be read now may."""
    if not database.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            meta = dict(connection.execute("SELECT name, value FROM meta"))
    except sqlite3.Error:
        return True
    return bool(meta.get(SCRUB)) or meta.get(ERASED) != str(size)
