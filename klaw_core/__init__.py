"""Klaw: memory for agents in one SQLite file.

This is the one import path, for users and for plugin authors; whatever is not in ``__all__`` may change.
``Memory`` is imported at first use, so that a plugin's ``from klaw_core import hookimpl`` stays cheap.
"""

from typing import TYPE_CHECKING

from klaw_core.errors import (
    ConfigError,
    EmbedderUnavailableError,
    EmbeddingError,
    KlawError,
    ModelCorruptError,
    ModelNotFoundError,
    NotFoundError,
    PluginConflictError,
    PluginContractError,
    PluginError,
    PluginNotFoundError,
    QueryError,
    RecordError,
    RetrievalError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
    VectorSpaceError,
    WorkspaceError,
)
from klaw_core.findings import Diagnosis, Finding
from klaw_core.hookspecs import API, Component, Place, hookimpl
from klaw_core.interfaces import (
    CheckedIndex,
    Chunker,
    Embedder,
    ErasingIndex,
    Fusion,
    Index,
    MessageReader,
    MessageWriter,
    Reranker,
    Retriever,
    Snapshot,
    Source,
    Store,
    Transaction,
)
from klaw_core.mirror import MirroredFile, Session, StoredMessage, Summary
from klaw_core.tokens import estimate_tokens
from klaw_core.values import (
    Chunk,
    Contribution,
    Document,
    DocumentRecord,
    Entry,
    Filters,
    Forgotten,
    Hit,
    IndexReport,
    Keys,
    Matrix,
    Migration,
    Passage,
    Progress,
    Query,
    Ranking,
    Replacement,
    SearchResult,
    SearchResults,
    Skipped,
    SpaceRecord,
    Span,
    Status,
    StoredChunk,
    TokenCounter,
    Vector,
    VectorSpace,
)

if TYPE_CHECKING:
    from klaw_core.background import BackgroundIndexer
    from klaw_core.memory import Memory

__all__ = [
    "API",
    "BackgroundIndexer",
    "CheckedIndex",
    "Chunk",
    "Chunker",
    "Component",
    "ConfigError",
    "Contribution",
    "Diagnosis",
    "Document",
    "DocumentRecord",
    "Embedder",
    "EmbedderUnavailableError",
    "EmbeddingError",
    "Entry",
    "ErasingIndex",
    "Filters",
    "Finding",
    "Forgotten",
    "Fusion",
    "Hit",
    "Index",
    "IndexReport",
    "Keys",
    "KlawError",
    "Matrix",
    "Memory",
    "MessageReader",
    "MessageWriter",
    "Migration",
    "MirroredFile",
    "ModelCorruptError",
    "ModelNotFoundError",
    "NotFoundError",
    "Passage",
    "Place",
    "PluginConflictError",
    "PluginContractError",
    "PluginError",
    "PluginNotFoundError",
    "Progress",
    "Query",
    "QueryError",
    "Ranking",
    "RecordError",
    "Replacement",
    "Reranker",
    "RetrievalError",
    "Retriever",
    "SearchResult",
    "SearchResults",
    "Session",
    "Skipped",
    "Snapshot",
    "Source",
    "SpaceRecord",
    "Span",
    "Status",
    "Store",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreLockedError",
    "StoreReadOnlyError",
    "StoredChunk",
    "StoredMessage",
    "Summary",
    "TokenCounter",
    "Transaction",
    "Vector",
    "VectorSpace",
    "VectorSpaceError",
    "WorkspaceError",
    "estimate_tokens",
    "hookimpl",
]


def __getattr__(name: str) -> object:
    if name == "Memory":
        from klaw_core.memory import Memory

        return Memory
    if name == "BackgroundIndexer":
        from klaw_core.background import BackgroundIndexer

        return BackgroundIndexer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
