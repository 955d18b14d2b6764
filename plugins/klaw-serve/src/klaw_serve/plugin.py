"""The hook implementations of klaw-serve: the extension ``warm``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, SearchEvent, hookimpl
from klaw_serve.warm.options import WarmOptions

if TYPE_CHECKING:
    from klaw_serve.warm.extension import WarmExtension


def _build(options: WarmOptions, context: ComponentContext) -> WarmExtension:
    from klaw_serve.warm.extension import WarmExtension

    return WarmExtension(context.data_dir, options, is_agents=bool(context.agent))


@hookimpl
def klaw_extensions() -> Iterable[Component[WarmOptions, WarmExtension]]:
    """Yield the extension ``warm``."""
    summary = "the helper that answers `klaw search` quickly"
    yield Component("warm", WarmOptions, _build, api=2, summary=summary, listens=(SearchEvent,))
