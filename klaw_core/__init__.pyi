from klaw_core.background import BackgroundIndexer
from klaw_core.config.load import load_config
from klaw_core.config.model import Config
from klaw_core.conversations.chat import Chat
from klaw_core.conversations.message import Message
from klaw_core.embedding.long_texts import cut_windows, embed_in_windows, halves, pool_windows, unit_rows
from klaw_core.embedding.token_estimate import estimate_tokens
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
from klaw_core.files.atomic import locked, write_atomically
from klaw_core.hookspecs import API, Component, ComponentContext, hookimpl
from klaw_core.interfaces.components import Chunker, Embedder, Fusion, Reranker
from klaw_core.interfaces.index import CheckedIndex, ErasingIndex, Index, KeyDigestIndex, OutdatedIndex, Retriever
from klaw_core.interfaces.messages import MessageReader, MessageWriter
from klaw_core.interfaces.source import Source
from klaw_core.interfaces.store import Snapshot, Store, Transaction
from klaw_core.memory import Memory
from klaw_core.values.candidates import Candidate, RerankScore, has_clear_winner
from klaw_core.values.chat_rows import JournalFileState, Session, StoredMessage, Summary
from klaw_core.values.documents import Document, DocumentRecord, Entry, Replacement
from klaw_core.values.findings import Diagnosis, Finding
from klaw_core.values.key_digest import KeyDigest
from klaw_core.values.lazy import Lazy
from klaw_core.values.lines import line_starts
from klaw_core.values.migrations import Migration
from klaw_core.values.runs import Excerpt, ForgetReport, IndexReport, Progress, SkippedEntry, Status
from klaw_core.values.search import Contribution, Filters, Hit, Query, Ranking, SearchResult, SearchResults
from klaw_core.values.text import Chunk, Span, StoredChunk, TokenCounter
from klaw_core.values.vectors import Keys, Matrix, SpaceRecord, Vector, VectorSpace

__all__ = [
    "API",
    "BackgroundIndexer",
    "Candidate",
    "Chat",
    "CheckedIndex",
    "Chunk",
    "Chunker",
    "Component",
    "ComponentContext",
    "Config",
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
    "Excerpt",
    "Filters",
    "Finding",
    "ForgetReport",
    "Fusion",
    "Hit",
    "Index",
    "IndexReport",
    "JournalFileState",
    "KeyDigest",
    "KeyDigestIndex",
    "Keys",
    "KlawError",
    "Lazy",
    "Matrix",
    "Memory",
    "Message",
    "MessageReader",
    "MessageWriter",
    "Migration",
    "ModelCorruptError",
    "ModelNotFoundError",
    "NotFoundError",
    "OutdatedIndex",
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
    "RerankScore",
    "Reranker",
    "RetrievalError",
    "Retriever",
    "SearchResult",
    "SearchResults",
    "Session",
    "SkippedEntry",
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
    "cut_windows",
    "embed_in_windows",
    "estimate_tokens",
    "halves",
    "has_clear_winner",
    "hookimpl",
    "line_starts",
    "load_config",
    "locked",
    "pool_windows",
    "unit_rows",
    "write_atomically",
]
