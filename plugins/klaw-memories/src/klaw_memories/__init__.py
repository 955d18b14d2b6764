"""Klaw extensions ``core_memory``, ``saved`` and ``documents``: what people, models and programs store."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_memories.core_memory import CoreFacts, CoreMemory

__all__ = ["CoreFacts", "CoreMemory"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("klaw_memories.core_memory"), name)
