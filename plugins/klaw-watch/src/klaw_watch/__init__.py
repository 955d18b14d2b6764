"""Keep the index up to date: ``klaw watch``, and the same inside a server.

Both run a ``Watcher``. Its ``loop`` asks ``roots`` for the paths to watch, ``files`` for changes, and ``triggers`` for
the index runs that these require; ``state`` informs other processes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_watch.background import BackgroundIndexer, BackgroundRun
    from klaw_watch.watcher import Watcher

_MODULE_OF = {"BackgroundIndexer": "background", "BackgroundRun": "background", "Watcher": "watcher"}

__all__ = ["BackgroundIndexer", "BackgroundRun", "Watcher"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
