"""An index that keeps up with files by itself: ``klaw watch``, and the same inside a server.

``Watcher`` is what both run, in a ``loop``: ``roots`` knows what is watched, ``files`` hears of changes, ``triggers``
decides which run they ask for, ``state`` tells other processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_watch.watcher import Watcher

__all__ = ["Watcher"]


def __getattr__(name: str) -> object:
    if name != "Watcher":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from klaw_watch.watcher import Watcher

    return Watcher
