"""Klaw's memory for Haystack."""

from klaw_haystack.document_store import KlawDocumentStore
from klaw_haystack.retriever import KlawHybridRetriever

__all__ = ["KlawDocumentStore", "KlawHybridRetriever"]
