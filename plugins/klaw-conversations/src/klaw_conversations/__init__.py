"""Klaw extension ``conversations``: append-only JSON Lines files, one per chat and day, from which rows are derived."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_conversations.archive import Conversations, ListedChat
    from klaw_conversations.history import HistoryStore
    from klaw_conversations.journal import Journal, JournalEntry

_MODULE_OF = {
    "Conversations": "archive",
    "HistoryStore": "history",
    "Journal": "journal",
    "JournalEntry": "journal",
    "ListedChat": "archive",
}

__all__ = ["Conversations", "HistoryStore", "Journal", "JournalEntry", "ListedChat"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"klaw_conversations.{_MODULE_OF[name]}"), name)
