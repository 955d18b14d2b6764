"""The hook implementation of klaw-tools: the extensions ``tools`` and ``ask``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import Component, ComponentContext, hookimpl
from klaw_tools.options import AskOptions, ToolsOptions

if TYPE_CHECKING:
    from klaw_core import Extension
    from klaw_tools.asking import AskExtension
    from klaw_tools.extension import ToolsExtension


@hookimpl
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield the extensions ``tools`` and ``ask``."""
    yield Component("tools", ToolsOptions, _build, api=2, summary="tools and context for language models", rank=70)
    yield Component("ask", AskOptions, _ask, api=2, summary="answers with sources, by the language model", rank=71)


def _ask(options: AskOptions, _context: ComponentContext) -> AskExtension:
    from klaw_tools.asking import AskExtension

    return AskExtension(options)


def _build(options: ToolsOptions, _context: ComponentContext) -> ToolsExtension:
    from klaw_tools.extension import ToolsExtension

    return ToolsExtension(options)
