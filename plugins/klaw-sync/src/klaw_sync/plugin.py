"""The hook implementations of klaw-sync: the extension ``sync``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, hookimpl
from klaw_sync.options import SyncOptions

if TYPE_CHECKING:
    from klaw_sync.extension import SyncExtension


def _build(options: SyncOptions, context: ComponentContext) -> SyncExtension:
    from klaw_sync.extension import SyncExtension

    return SyncExtension(context.data_dir, options)


@hookimpl
def klaw_extensions() -> Iterable[Component[SyncOptions, SyncExtension]]:
    """Yield the extension ``sync``."""
    yield Component("sync", SyncOptions, _build, api=2, summary="one memory on several machines, through a folder")
