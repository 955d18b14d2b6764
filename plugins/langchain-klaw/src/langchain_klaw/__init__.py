"""Klaw's memory for LangChain and LangGraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_klaw.chat_message_histories import KlawChatMessageHistory
    from langchain_klaw.embeddings import KlawEmbeddings
    from langchain_klaw.retrievers import KlawRetriever
    from langchain_klaw.stores import KlawStore
    from langchain_klaw.vectorstores import KlawVectorStore

__all__ = ["KlawChatMessageHistory", "KlawEmbeddings", "KlawRetriever", "KlawStore", "KlawVectorStore"]

_MODULES = {
    "KlawChatMessageHistory": "chat_message_histories",
    "KlawEmbeddings": "embeddings",
    "KlawRetriever": "retrievers",
    "KlawStore": "stores",
    "KlawVectorStore": "vectorstores",
}


def __getattr__(name: str) -> Any:
    """Import a class at its first use: only ``KlawStore`` needs LangGraph."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
