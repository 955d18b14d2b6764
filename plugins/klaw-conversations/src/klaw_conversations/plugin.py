"""The hook implementations of klaw-conversations: the extension, and the reranker of messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import CloseEvent, Component, ComponentContext, NoOptions, hookimpl

if TYPE_CHECKING:
    from klaw_core import Extension, Reranker

_API = 2


@hookimpl
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield the extension ``conversations``."""
    summary = "messages and summaries of chats"
    yield Component("conversations", NoOptions, _conversations, _API, summary, rank=40, listens=(CloseEvent,))


@hookimpl
def klaw_rerankers() -> Iterable[Component[Any, Reranker]]:
    """Yield ``chat``, which is used for messages unless ``[[memory.reranking]]`` is configured."""
    yield Component("chat", NoOptions, _chat, _API, "messages that answer come before those that ask")


def _chat(_options: NoOptions, _context: ComponentContext) -> Reranker:
    from klaw_conversations.reranker import ChatReranker

    return ChatReranker()


def _conversations(_options: NoOptions, context: ComponentContext) -> Extension:
    from klaw_conversations.extension import ConversationsExtension
    from klaw_journals import FileJournals

    return ConversationsExtension(FileJournals(context.data_dir))
