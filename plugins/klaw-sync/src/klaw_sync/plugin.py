"""The hook implementations of klaw-sync: the extensions ``sync`` and ``sync_erasing``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, ForgetEvent, IndexEvent, NoOptions, hookimpl
from klaw_sync.options import SyncOptions

if TYPE_CHECKING:
    from klaw_sync.erasing import Erasing
    from klaw_sync.extension import SyncExtension


def _build(options: SyncOptions, context: ComponentContext) -> SyncExtension:
    from klaw_sync.extension import SyncExtension

    return SyncExtension(context.data_dir, options)


def _build_erasing(_options: NoOptions, context: ComponentContext) -> Erasing:
    from klaw_sync.erasing import Erasing

    return Erasing(context.data_dir)


@hookimpl
def klaw_extensions() -> Iterable[Component[SyncOptions, SyncExtension] | Component[NoOptions, Erasing]]:
    """Yield the extensions."""
    yield Component("sync", SyncOptions, _build, api=2, summary="one memory on several machines, through a folder")
    summary = "erases forgotten texts from what `klaw sync` keeps"
    yield Component(
        "sync_erasing", NoOptions, _build_erasing, api=2, summary=summary, listens=(ForgetEvent, IndexEvent)
    )
