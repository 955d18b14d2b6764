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
from klaw_core.hookspecs import API, Component, Place, hookimpl
from klaw_core.interfaces.components import Chunker, Embedder, Fusion, Reranker
from klaw_core.interfaces.index import CheckedIndex, ErasingIndex, Index, LaggingIndex, Retriever, TalliedIndex
from klaw_core.interfaces.messages import MessageReader, MessageWriter
from klaw_core.interfaces.source import Source
from klaw_core.interfaces.store import Snapshot, Store, Transaction
from klaw_core.memory import Memory
from klaw_core.values.candidates import Candidate, Scored, has_clear_winner
from klaw_core.values.chat_rows import MirroredFile, Session, StoredMessage, Summary
from klaw_core.values.documents import Document, DocumentRecord, Entry, Replacement
from klaw_core.values.findings import Diagnosis, Finding
from klaw_core.values.key_digest import Tally
from klaw_core.values.lines import line_starts
from klaw_core.values.migrations import Migration
from klaw_core.values.runs import Forgotten, IndexReport, Passage, Progress, Skipped, Status
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
    "Filters",
    "Finding",
    "Forgotten",
    "Fusion",
    "Hit",
    "Index",
    "IndexReport",
    "Keys",
    "KlawError",
    "LaggingIndex",
    "Matrix",
    "Memory",
    "Message",
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
    "Scored",
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
    "TalliedIndex",
    "Tally",
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
