"""The hook implementations of klaw-watch: the extension ``watch``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, IndexEvent, hookimpl
from klaw_watch.options import WatchOptions

if TYPE_CHECKING:
    from klaw_watch.extension import WatchExtension


def _build(options: WatchOptions, context: ComponentContext) -> WatchExtension:
    from klaw_watch.extension import WatchExtension
    from klaw_watch.state import WatchDirectory

    return WatchExtension(WatchDirectory.of(context.data_dir), options)


@hookimpl
def klaw_extensions() -> Iterable[Component[WatchOptions, WatchExtension]]:
    """Yield the extension ``watch``."""
    summary = "the watcher of files, and its last runs"
    yield Component("watch", WatchOptions, _build, api=2, summary=summary, listens=(IndexEvent,))
