"""One memory on several machines, which share a folder and no server."""

from klaw_sync.here import SyncReport
from klaw_sync.keys import MemoryKey
from klaw_sync.remotes import Folder, Remote
from klaw_sync.run import Sync

__all__ = ["Folder", "MemoryKey", "Remote", "Sync", "SyncReport"]
