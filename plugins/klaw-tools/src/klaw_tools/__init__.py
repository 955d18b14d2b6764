"""Tools for language models, and the context of a prompt."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klaw_tools.interfaces import (
        ArrangingExtension,
        Context,
        ContextExtension,
        ContextItem,
        ContextNotice,
        ContextQuestion,
        GatingExtension,
    )
    from klaw_tools.tools import run_tool

__all__ = [
    "ArrangingExtension",
    "Context",
    "ContextExtension",
    "ContextItem",
    "ContextNotice",
    "ContextQuestion",
    "GatingExtension",
    "run_tool",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("klaw_tools.tools" if name == "run_tool" else "klaw_tools.interfaces"), name)
