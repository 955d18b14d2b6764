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
    yield Component("core_memory", NoOptions, _core_memory, API, "the few facts in every call to a model", rank=20)
    yield Component("saved", NoOptions, _saved, API, "texts that `klaw save` keeps", rank=30)
    yield Component("conversations", NoOptions, _conversations, API, "messages and summaries of chats", rank=40)
    yield Component("documents", NoOptions, _documents, API, "texts that programs store under their own ids", rank=50)


def _workspaces(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_core.extensions.workspaces import WorkspacesExtension
    from klaw_core.files.layout import DataDirectory

    return WorkspacesExtension(DataDirectory(context.data_dir))


def _core_memory(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_core.extensions.core_memory import CoreMemoryExtension
    from klaw_core.files.layout import DataDirectory

    return CoreMemoryExtension(DataDirectory(context.data_dir))


def _saved(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_core.extensions.saved import SavedExtension
    from klaw_core.files.journals import FileJournals

    return SavedExtension(FileJournals.at(context.data_dir))


def _conversations(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_core.extensions.conversations import ConversationsExtension
    from klaw_core.files.layout import DataDirectory

    return ConversationsExtension(DataDirectory(context.data_dir))


def _documents(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_core.extensions.documents import DocumentsExtension
    from klaw_core.files.journals import FileJournals

    return DocumentsExtension(FileJournals.at(context.data_dir))
