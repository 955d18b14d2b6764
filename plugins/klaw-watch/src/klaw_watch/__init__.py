"""Keep the index up to date: ``klaw watch``, and the same inside a server.

Both run a ``Watcher``. Its ``loop`` asks ``roots`` for the paths to watch, ``files`` for changes, and ``triggers`` for
the index runs that these require; ``state`` informs other processes.
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
