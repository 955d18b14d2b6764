"""Klaw: memory for agents in one SQLite file.

This is the one import path, for users and for plugin authors; what is not in ``__all__`` may change. Each name is
imported from its module at its first use, so that ``klaw --help`` and a plugin's ``from klaw_core import hookimpl``
stay cheap. ``__init__.pyi`` tells type checkers the same; a test compares the two, and both with
``docs/reference/python.md``.
"""

from importlib import import_module

# The public names, by the module that defines them.
_MODULES = {
    "background": "BackgroundIndexer",
    "config.load": "load_config",
    "config.model": "Config",
    "conversations.chat": "Chat",
    "conversations.message": "Message",
    "embedding.long_texts": "cut_windows embed_in_windows halves pool_windows unit_rows",
    "embedding.token_estimate": "estimate_tokens",
    "errors": (
        "ConfigError EmbedderUnavailableError EmbeddingError KlawError ModelCorruptError ModelNotFoundError "
        "NotFoundError PluginConflictError PluginContractError PluginError PluginNotFoundError QueryError "
        "RecordError RetrievalError StoreCorruptError StoreError StoreFullError StoreLockedError "
        "StoreReadOnlyError VectorSpaceError WorkspaceError"
    ),
    "files.atomic": "locked write_atomically",
    "hookspecs": "API Component ComponentContext hookimpl",
    "interfaces.components": "Chunker Embedder Fusion Reranker",
    "interfaces.index": "CheckedIndex ErasingIndex Index KeyDigestIndex OutdatedIndex Retriever",
    "interfaces.messages": "MessageReader MessageWriter",
    "interfaces.source": "Source",
    "interfaces.store": "Snapshot Store Transaction",
    "memory": "Memory",
    "values.candidates": "Candidate RerankScore has_clear_winner",
    "values.chat_rows": "JournalFileState Session StoredMessage Summary",
    "values.documents": "Document DocumentRecord Entry Replacement",
    "values.findings": "Diagnosis Finding",
    "values.key_digest": "KeyDigest",
    "values.lazy": "Lazy",
    "values.lines": "line_starts",
    "values.migrations": "Migration",
    "values.runs": "Excerpt ForgetReport IndexReport Progress SkippedEntry Status",
    "values.search": "Contribution Filters Hit Query Ranking SearchResult SearchResults",
    "values.text": "Chunk Span StoredChunk TokenCounter",
    "values.vectors": "Keys Matrix SpaceRecord Vector VectorSpace",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605  # a list; type checkers read the stub


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"klaw_core.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
