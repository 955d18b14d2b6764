"""The watcher inside a server."""

from __future__ import annotations

from klaw_core import Memory
from klaw_journals import App, lifespan_app
from klaw_watch.watcher import Watcher


def make(memory: Memory, *, read_only: bool = False) -> App:
    """Return the application for a memory. A read-only server watches nothing.

    It does not start if another watcher is running for this data directory.
    """

    def start() -> Watcher | None:
        if read_only:
            return None
        watcher = Watcher(memory)
        watcher.start()
        return watcher

    return lifespan_app(start, Watcher.stop)
