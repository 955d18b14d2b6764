"""Klaw extensions ``core_memory``, ``saved`` and ``documents``: what people, models and programs store."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_memories.core_memory import CoreFacts, CoreMemory, ReplacedFact
    from klaw_memories.journal_extension import JournalExtension

_MODULE_OF = {
    **dict.fromkeys(("CoreFacts", "CoreMemory", "ReplacedFact"), "core_memory"),
    "JournalExtension": "journal_extension",
}

__all__ = ["CoreFacts", "CoreMemory", "JournalExtension", "ReplacedFact"]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
