from klaw_core.agents import Agents
from klaw_core.async_memory import AsyncMemory
from klaw_core.background import BackgroundIndexer, BackgroundRun
from klaw_core.builtin.plain_chunker import PlainChunker, PlainOptions
from klaw_core.config.load import load_config
from klaw_core.embedding.long_texts import cut_windows, embed_in_windows, halves, pool_windows, unit_rows
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
from klaw_core.extensions.json_forms import to_json
from klaw_core.extensions.owned import JournalExtension
from klaw_core.extensions.owned_files import check_lines, check_private, make_private
from klaw_core.files.atomic import locked, require_own_link, sync_directory, write_atomically
from klaw_core.files.held import Descriptor, FileLock, try_lock
from klaw_core.files.journals import FileJournals
from klaw_core.files.jsonl import parse_json
from klaw_core.files.layout import own_directory
from klaw_core.files.messages import Message
from klaw_core.files.new_documents import NewDocument
from klaw_core.files.timestamps import format_ts, parse_ts
from klaw_core.holds import (
    Closing,
    Flag,
    Hold,
    Notifier,
    ThreadLock,
    held_elsewhere,
    operation,
    operations,
    shielded,
)
from klaw_core.hookspecs import API, AutoChoice, Component, ComponentContext, NoOptions, hookimpl
from klaw_core.interfaces.components import (
    BatchingEmbedder,
    Chunker,
    Embedder,
    Fusion,
    HeadingChunker,
    NamedEmbedder,
    RemoteEmbedder,
    Reranker,
    VariantChunker,
)
from klaw_core.interfaces.converter import Converter, Converters
from klaw_core.interfaces.extension import (
    ArrangingExtension,
    AttachedExtension,
    CheckedExtension,
    ConsentExtension,
    ContextExtension,
    Extension,
    GatingExtension,
    Host,
    ListeningExtension,
    RecordedExtension,
    SourcedExtension,
    StatusExtension,
    TabledExtension,
    ToolExtension,
)
from klaw_core.interfaces.index import (
    Index,
    Retriever,
)
from klaw_core.interfaces.journal import JournalingStore, Journals, Log, LogFolder, OwnedText, RecordJournal
from klaw_core.interfaces.language_model import LanguageModel
from klaw_core.interfaces.messages import MessageReader, MessageWriter
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
from klaw_core.kinds import Kind
from klaw_core.memory import Memory
from klaw_core.plugins.discover import discover
from klaw_core.plugins.installing import install_extras, reinstall_command, uninstall_command, update_command
from klaw_core.plugins.registry import LiveComponent, Registry
from klaw_core.redaction import FILLER, REDACTED, Redactor
from klaw_core.values.candidates import Candidate, RerankScore, has_clear_winner
from klaw_core.values.chat_rows import JournalFileState, Session, StoredMessage, Summary
from klaw_core.values.chats import Chat
from klaw_core.values.collections import check_collection_name
from klaw_core.values.config import Config
from klaw_core.values.context import Context, ContextItem, ContextNotice, ContextQuestion
from klaw_core.values.conversions import Conversion
from klaw_core.values.documents import Document, DocumentRecord, Entry, RecordedDocuments, Replacement
from klaw_core.values.environment import child_environment
from klaw_core.values.events import CloseEvent, Event, ForgetEvent, IndexEvent, MessageEvent, SearchEvent
from klaw_core.values.findings import Diagnosis, Finding
from klaw_core.values.frames import framed, item_text, one_line
from klaw_core.values.journals import BadLine, BrokenRecord, JournalName, LogRecord, Replay
from klaw_core.values.key_digest import KeyDigest
from klaw_core.values.lazy import Lazy
from klaw_core.values.lines import line_starts
from klaw_core.values.listings import ListedDocument, ListedWorkspace
from klaw_core.values.metadata import Condition, Metadata, MetadataValue, check_metadata, metadata_part, parse_condition
from klaw_core.values.migrations import Migration
from klaw_core.values.moments import parse_moment
from klaw_core.values.prompts import Completion, Prompt, PromptMessage
from klaw_core.values.records import ImportCounts, Record
from klaw_core.values.runs import Excerpt, ForgetReport, IndexReport, Progress, SkippedEntry, SourceStatus, Status
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

__all__ = [
    "API",
    "FILLER",
    "REDACTED",
    "Agents",
    "ArrangingExtension",
    "AsyncMemory",
    "AttachedExtension",
    "AutoChoice",
    "BackgroundIndexer",
    "BackgroundRun",
    "BadLine",
    "BatchingEmbedder",
    "BrokenRecord",
    "Candidate",
    "Chat",
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
    "ConsentExtension",
    "Context",
    "ContextExtension",
    "ContextItem",
    "ContextNotice",
    "ContextQuestion",
    "Contribution",
    "Conversion",
    "ConversionError",
    "Converter",
    "Converters",
    "DatabaseCorruptError",
    "Descriptor",
    "Diagnosis",
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
    "FileJournals",
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
    "GatingExtension",
    "Heading",
    "HeadingChunker",
    "Hit",
    "Hold",
    "Host",
    "ImportCounts",
    "Index",
    "IndexEvent",
    "IndexReport",
    "JournalExtension",
    "JournalFileState",
    "JournalName",
    "JournalingStore",
    "Journals",
    "KeyDigest",
    "KeySelection",
    "Keys",
    "Kind",
    "KlawError",
    "LanguageModel",
    "LanguageModelError",
    "Lazy",
    "ListedDocument",
    "ListedWorkspace",
    "ListeningExtension",
    "LiveComponent",
    "Located",
    "Log",
    "LogFolder",
    "LogRecord",
    "Matrix",
    "Memory",
    "Message",
    "MessageEvent",
    "MessageReader",
    "MessageWriter",
    "Metadata",
    "MetadataValue",
    "Migration",
    "ModelCorruptError",
    "ModelNotFoundError",
    "NamedEmbedder",
    "NewDocument",
    "NoOptions",
    "NotFoundError",
    "Notifier",
    "OwnedText",
    "PlainChunker",
    "PlainOptions",
    "PluginConflictError",
    "PluginContractError",
    "PluginError",
    "PluginNotFoundError",
    "Progress",
    "Prompt",
    "PromptMessage",
    "Query",
    "QueryError",
    "Ranking",
    "Record",
    "RecordError",
    "RecordJournal",
    "RecordedDocuments",
    "RecordedExtension",
    "Redactor",
    "Registry",
    "RemoteEmbedder",
    "Removable",
    "RepairableStore",
    "Replacement",
    "Replay",
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
    "Session",
    "Shrinking",
    "SkippedEntry",
    "Snapshot",
    "Source",
    "SourceStatus",
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
    "StoredMessage",
    "Summary",
    "TabledExtension",
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
    "check_lines",
    "check_metadata",
    "check_private",
    "child_environment",
    "cut_windows",
    "discover",
    "embed_in_windows",
    "estimate_tokens",
    "format_ts",
    "framed",
    "halves",
    "has_clear_winner",
    "held_elsewhere",
    "hookimpl",
    "install_extras",
    "item_text",
    "line_starts",
    "load_config",
    "locked",
    "make_private",
    "metadata_part",
    "one_line",
    "operation",
    "operations",
    "own_directory",
    "parse_condition",
    "parse_json",
    "parse_moment",
    "parse_ts",
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
