from klaw_core.agents import Agents
from klaw_core.async_memory import AsyncMemory
from klaw_core.builtin.plain_chunker import PlainChunker, PlainOptions
from klaw_core.cli.conditions import parse_condition
from klaw_core.cli.json_forms import to_json
from klaw_core.cli.moments import parse_moment
from klaw_core.config.load import load_config
from klaw_core.embedding.long_texts import embed_in_windows, halves, pool_windows, unit_rows
from klaw_core.embedding.token_estimate import estimate_tokens
from klaw_core.errors import (
    ConfigError,
    ConversionError,
    DatabaseCorruptError,
    EmbedderUnavailableError,
    EmbeddingError,
    KlawError,
    LanguageModelError,
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
    RetryableStoreError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
    VectorSpaceError,
    WorkspaceError,
    quoted,
)
from klaw_core.files.atomic import locked, require_own_link, sync_directory, write_atomically
from klaw_core.files.held import Descriptor, FileLock, try_lock
from klaw_core.files.layout import own_directory
from klaw_core.holds import (
    Closing,
    Flag,
    Hold,
    Notifier,
    ThreadLock,
    held_elsewhere,
    operations,
    shielded,
)
from klaw_core.hookspecs import API, AutoChoice, Component, ComponentContext, NoOptions, hookimpl
from klaw_core.interfaces.components import (
    Chunker,
    Embedder,
    Fusion,
    HeadingChunker,
    Reranker,
    VariantChunker,
)
from klaw_core.interfaces.converter import Converter
from klaw_core.interfaces.extension import (
    AttachedExtension,
    CheckedExtension,
    Extension,
    Host,
    ListeningExtension,
    PreferringExtension,
    SourcedExtension,
    StatusExtension,
    ToolExtension,
)
from klaw_core.interfaces.index import (
    Index,
    Retriever,
)
from klaw_core.interfaces.language_model import LanguageModel
from klaw_core.interfaces.source import (
    Divisible,
    Folder,
    Forgetful,
    Forgettable,
    Located,
    Removable,
    RowSource,
    Shrinking,
    Source,
)
from klaw_core.interfaces.store import RepairableStore, Snapshot, Store, Transaction
from klaw_core.memory import Memory
from klaw_core.plugins.discover import discover
from klaw_core.plugins.installing import install_extras, reinstall_command, uninstall_command, update_command
from klaw_core.plugins.registry import LiveComponent
from klaw_core.values.candidates import Candidate, Preference, RerankScore
from klaw_core.values.collections import check_collection_name
from klaw_core.values.config import Config
from klaw_core.values.documents import Conversion, Document, DocumentRecord, Entry, RecordedDocuments, Replacement
from klaw_core.values.events import CloseEvent, Event, ForgetEvent, IndexEvent, MessageEvent, SearchEvent
from klaw_core.values.findings import Finding
from klaw_core.values.key_digest import KeyDigest
from klaw_core.values.lazy import Lazy
from klaw_core.values.lines import line_starts
from klaw_core.values.metadata import Condition, Metadata, MetadataValue, check_metadata, metadata_part
from klaw_core.values.migrations import Migration
from klaw_core.values.prompts import Completion, Prompt, PromptMessage
from klaw_core.values.runs import Excerpt, ForgetReport, IndexReport, Progress, SkippedEntry, Status
from klaw_core.values.search import (
    ChunkSelection,
    Contribution,
    Filters,
    Hit,
    KeySelection,
    Query,
    Ranking,
    SearchRequest,
    SearchResult,
    SearchResults,
)
from klaw_core.values.text import Chunk, Heading, Span, StoredChunk, TokenCounter
from klaw_core.values.tools import Tool
from klaw_core.values.vectors import Keys, Matrix, SpaceRecord, Vector, VectorSpace
from klaw_journals import Chat as Chat
from klaw_journals import Message as Message
from klaw_journals import NewDocument as NewDocument

__all__ = [
    "API",
    "Agents",
    "AsyncMemory",
    "AttachedExtension",
    "AutoChoice",
    "Candidate",
    "CheckedExtension",
    "Chunk",
    "ChunkSelection",
    "Chunker",
    "CloseEvent",
    "Closing",
    "Completion",
    "Component",
    "ComponentContext",
    "Condition",
    "Config",
    "ConfigError",
    "Contribution",
    "Conversion",
    "ConversionError",
    "Converter",
    "DatabaseCorruptError",
    "Descriptor",
    "Divisible",
    "Document",
    "DocumentRecord",
    "Embedder",
    "EmbedderUnavailableError",
    "EmbeddingError",
    "Entry",
    "Event",
    "Excerpt",
    "Extension",
    "FileLock",
    "Filters",
    "Finding",
    "Flag",
    "Folder",
    "ForgetEvent",
    "ForgetReport",
    "Forgetful",
    "Forgettable",
    "Fusion",
    "Heading",
    "HeadingChunker",
    "Hit",
    "Hold",
    "Host",
    "Index",
    "IndexEvent",
    "IndexReport",
    "KeyDigest",
    "KeySelection",
    "Keys",
    "KlawError",
    "LanguageModel",
    "LanguageModelError",
    "Lazy",
    "ListeningExtension",
    "LiveComponent",
    "Located",
    "Matrix",
    "Memory",
    "MessageEvent",
    "Metadata",
    "MetadataValue",
    "Migration",
    "ModelCorruptError",
    "ModelNotFoundError",
    "NoOptions",
    "NotFoundError",
    "Notifier",
    "PlainChunker",
    "PlainOptions",
    "PluginConflictError",
    "PluginContractError",
    "PluginError",
    "PluginNotFoundError",
    "Preference",
    "PreferringExtension",
    "Progress",
    "Prompt",
    "PromptMessage",
    "Query",
    "QueryError",
    "Ranking",
    "RecordError",
    "RecordedDocuments",
    "Removable",
    "RepairableStore",
    "Replacement",
    "RerankScore",
    "Reranker",
    "RetrievalError",
    "Retriever",
    "RetryableStoreError",
    "RowSource",
    "SearchEvent",
    "SearchRequest",
    "SearchResult",
    "SearchResults",
    "Shrinking",
    "SkippedEntry",
    "Snapshot",
    "Source",
    "SourcedExtension",
    "SpaceRecord",
    "Span",
    "Status",
    "StatusExtension",
    "Store",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreLockedError",
    "StoreReadOnlyError",
    "StoredChunk",
    "ThreadLock",
    "TokenCounter",
    "Tool",
    "ToolExtension",
    "Transaction",
    "VariantChunker",
    "Vector",
    "VectorSpace",
    "VectorSpaceError",
    "WorkspaceError",
    "check_collection_name",
    "check_metadata",
    "discover",
    "embed_in_windows",
    "estimate_tokens",
    "halves",
    "held_elsewhere",
    "hookimpl",
    "install_extras",
    "line_starts",
    "load_config",
    "locked",
    "metadata_part",
    "operations",
    "own_directory",
    "parse_condition",
    "parse_moment",
    "pool_windows",
    "quoted",
    "reinstall_command",
    "require_own_link",
    "shielded",
    "sync_directory",
    "to_json",
    "try_lock",
    "uninstall_command",
    "unit_rows",
    "update_command",
    "write_atomically",
]
