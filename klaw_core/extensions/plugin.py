"""The hooks of the extensions that ship with the core."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core.hookspecs import API, Component, ComponentContext, NoOptions, hookimpl
from klaw_core.values.collections import DOCS

if TYPE_CHECKING:
    from klaw_core.interfaces.extension import Extension


@hookimpl
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield Klaw's own extensions."""
    yield Component(
        "workspaces",
        NoOptions,
        _workspaces,
        API,
        "directories of notes that `klaw index DIR` added",
        rank=10,
        separate=(DOCS,),
    )


def _workspaces(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_core.extensions.workspaces import WorkspacesExtension
    from klaw_core.files.layout import DataDirectory

    return WorkspacesExtension(DataDirectory(context.data_dir))
