"""The hook implementation of klaw-tools: the extension ``tools``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, hookimpl
from klaw_tools.options import ToolsOptions

if TYPE_CHECKING:
    from klaw_tools.extension import ToolsExtension


@hookimpl
def klaw_extensions() -> Iterable[Component[ToolsOptions, ToolsExtension]]:
    """Yield the extension ``tools``."""
    yield Component("tools", ToolsOptions, _build, api=2, summary="tools and context for language models", rank=70)


def _build(options: ToolsOptions, _context: ComponentContext) -> ToolsExtension:
    from klaw_tools.extension import ToolsExtension

    return ToolsExtension(options)
