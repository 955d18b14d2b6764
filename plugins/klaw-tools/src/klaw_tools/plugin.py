"""The hook implementation of klaw-tools: the extension ``tools``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, NoOptions, hookimpl

if TYPE_CHECKING:
    from klaw_tools.extension import ToolsExtension


@hookimpl
def klaw_extensions() -> Iterable[Component[NoOptions, ToolsExtension]]:
    """Yield the extension ``tools``."""
    yield Component("tools", NoOptions, _build, api=2, summary="tools and context for language models", rank=70)


def _build(_options: NoOptions, _context: ComponentContext) -> ToolsExtension:
    from klaw_tools.extension import ToolsExtension

    return ToolsExtension()
