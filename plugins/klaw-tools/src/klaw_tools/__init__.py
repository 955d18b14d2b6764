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
    from klaw_tools.tools import answer_to_model, run_tool

__all__ = [
    "ArrangingExtension",
    "Context",
    "ContextExtension",
    "ContextItem",
    "ContextNotice",
    "ContextQuestion",
    "GatingExtension",
    "answer_to_model",
    "run_tool",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "tools" if name in {"answer_to_model", "run_tool"} else "interfaces"
    return getattr(import_module(f"klaw_tools.{module}"), name)
