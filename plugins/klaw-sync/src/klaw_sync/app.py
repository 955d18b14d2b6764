"""Synchronisation inside a server."""

from __future__ import annotations

from klaw_core import Memory
from klaw_journals import App, lifespan_app
from klaw_sync.extension import SyncExtension


def make(memory: Memory, *, read_only: bool = False) -> App:
    """Return the application for a memory. A read-only server, or one without configured places, does nothing."""
    return lifespan_app(
        lambda: None if read_only else memory.extension(SyncExtension).start(),
        lambda stop: stop(),
    )
