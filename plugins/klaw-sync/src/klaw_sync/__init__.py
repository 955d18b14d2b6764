"""One memory on several machines, which share a folder and no server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_sync.here import SyncReport
    from klaw_sync.keys import MemoryKey
    from klaw_sync.remotes import Folder, Remote
    from klaw_sync.run import Sync

# Loaded when they are used: every index run asks the plugin whether something was forgotten.
_MODULE_OF = {"Folder": "remotes", "MemoryKey": "keys", "Remote": "remotes", "Sync": "run", "SyncReport": "here"}

__all__ = ["Folder", "MemoryKey", "Remote", "Sync", "SyncReport"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
