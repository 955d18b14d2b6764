"""The extension ``sync_erasing``: takes what was forgotten out of ``sync/state.db``, without a synchronisation."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import define, field

from klaw_core import Event, ListeningExtension, StoreLockedError

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
        from klaw_sync.run import Sync

        try:
            Sync(self.data_dir).erase(limit_seconds=_WAIT_SECONDS)
        except StoreLockedError:
            return
        self._erased = size
