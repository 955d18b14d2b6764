"""Klaw: memory for agents in one SQLite file.

This is the one import path, for users and for plugin authors; whatever is not in ``__all__`` may change.
Each name is imported from where it lives at its first use, so that ``klaw --help`` and a plugin's
``from klaw_core import hookimpl`` stay cheap.
"""

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it: to import `typing` takes as long as all of `klaw --help`
if TYPE_CHECKING:
    from klaw_core.background import BackgroundIndexer
    from klaw_core.candidates import Candidate, Scored, has_clear_winner
    from klaw_core.config import Config, load_config
    from klaw_core.conversations import Chat, Message
    from klaw_core.documents import (
        Document,
        DocumentRecord,
        Entry,
        Forgotten,
        IndexReport,
        Passage,
        Progress,
        Replacement,
        Skipped,
        Status,
    )
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
    from klaw_core.files import locked, write_atomically
    from klaw_core.findings import Diagnosis, Finding
    from klaw_core.hookspecs import (
        API,
        Component,
        Place,
        hookimpl,
    )
    from klaw_core.interfaces import (
        CheckedIndex,
        Chunker,
        Embedder,
        ErasingIndex,
        Fusion,
        Index,
        LaggingIndex,
        MessageReader,
        MessageWriter,
        Reranker,
        Retriever,
        Snapshot,
        Source,
        Store,
        TalliedIndex,
        Transaction,
    )
    from klaw_core.memory import Memory
    from klaw_core.mirror import (
        MirroredFile,
        Session,
        StoredMessage,
        Summary,
    )
    from klaw_core.tally import Tally
    from klaw_core.tokens import estimate_tokens
    from klaw_core.values import (
        Chunk,
        Contribution,
        Filters,
        Hit,
        Keys,
        Matrix,
        Migration,
        Query,
        Ranking,
        SearchResult,
        SearchResults,
        SpaceRecord,
        Span,
        StoredChunk,
        TokenCounter,
        Vector,
        VectorSpace,
    )
    from klaw_core.windows import (
        cut_windows,
        embed_in_windows,
        halves,
        pool_windows,
        unit_rows,
    )

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
    "load_config",
    "locked",
    "pool_windows",
    "unit_rows",
    "write_atomically",
]

# The same names once more, by the module that each lives in; a test compares the three lists.
_NAMES = {
    "background": "BackgroundIndexer",
    "candidates": "Candidate Scored has_clear_winner",
    "config": "Config load_config",
    "conversations": "Chat Message",
    "documents": ("Document DocumentRecord Entry Forgotten IndexReport Passage Progress Replacement Skipped Status"),
    "errors": (
        "ConfigError EmbedderUnavailableError EmbeddingError KlawError ModelCorruptError ModelNotFoundError "
        "NotFoundError PluginConflictError PluginContractError PluginError PluginNotFoundError QueryError "
        "RecordError RetrievalError StoreCorruptError StoreError StoreFullError StoreLockedError "
        "StoreReadOnlyError VectorSpaceError WorkspaceError"
    ),
    "files": "locked write_atomically",
    "findings": "Diagnosis Finding",
    "hookspecs": "API Component Place hookimpl",
    "interfaces": (
        "CheckedIndex Chunker Embedder ErasingIndex Fusion Index LaggingIndex MessageReader MessageWriter Reranker "
        "Retriever Snapshot Source Store TalliedIndex Transaction"
    ),
    "memory": "Memory",
    "mirror": "MirroredFile Session StoredMessage Summary",
    "tally": "Tally",
    "tokens": "estimate_tokens",
    "values": (
        "Chunk Contribution Filters Hit Keys Matrix Migration Query Ranking SearchResult SearchResults "
        "SpaceRecord Span StoredChunk TokenCounter Vector VectorSpace"
    ),
    "windows": "cut_windows embed_in_windows halves pool_windows unit_rows",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # or every name would be one for a type checker

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"klaw_core.{_HOMES[name]}"), name)
        globals()[name] = value  # found without this function from now on
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
