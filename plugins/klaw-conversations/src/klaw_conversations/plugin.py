"""The hook implementation of klaw-conversations: the extension, with the rank that it has among Klaw's own."""

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
    """Yield the extension ``conversations``."""
    yield Component("conversations", NoOptions, _conversations, _API, "messages and summaries of chats", rank=40)


def _conversations(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_conversations.extension import ConversationsExtension

    return ConversationsExtension(FileJournals(context.data_dir))
