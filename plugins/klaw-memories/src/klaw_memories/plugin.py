"""The hook implementations of klaw-memories: three extensions, with the ranks that they have among Klaw's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import Component, ComponentContext, NoOptions, hookimpl
from klaw_journals import FileJournals

if TYPE_CHECKING:
    from klaw_core import Extension

_API = 2


@hookimpl
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield the extensions."""
    summary = "the few facts in every call to a model"
    yield Component("core_memory", NoOptions, _core_memory, _API, summary, rank=20)
    yield Component("saved", NoOptions, _saved, _API, "texts that `klaw save` keeps", rank=30)
    yield Component("documents", NoOptions, _documents, _API, "texts that programs store under their own ids", rank=50)


def _core_memory(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_memories.core_extension import CoreMemoryExtension

    return CoreMemoryExtension(FileJournals(context.data_dir))


def _saved(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_memories.saved_extension import SavedExtension

    return SavedExtension(FileJournals(context.data_dir))


def _documents(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_memories.documents import DocumentsExtension

    return DocumentsExtension(FileJournals(context.data_dir))
