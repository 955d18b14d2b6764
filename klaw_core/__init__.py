"""Klaw: memory for agents in one SQLite file.

This is the one import path, for users and for plugin authors; what is not in ``__all__`` may change. Each name is
imported from its module at its first use, so that ``klaw --help`` and a plugin's ``from klaw_core import hookimpl``
stay cheap. ``__init__.pyi`` tells type checkers the same; a test compares the two, and both with
``docs/reference/python.md``.
"""

from importlib import import_module

# The public names, by the module that defines them.
_MODULES = {
    "agents": "Agents",
    "async_memory": "AsyncMemory",
    "config.load": "load_config",
    "builtin.plain_chunker": "PlainChunker PlainOptions",
    "embedding.long_texts": "embed_in_windows halves pool_windows unit_rows",
    "embedding.token_estimate": "estimate_tokens",
    "errors": (
        "ConfigError ConversionError DatabaseCorruptError EmbedderUnavailableError EmbeddingError KlawError "
        "LanguageModelError ModelCorruptError ModelNotFoundError NotFoundError PluginConflictError "
        "PluginContractError PluginError PluginNotFoundError QueryError RecordError RetrievalError "
        "RetryableStoreError StoreCorruptError StoreError StoreFullError StoreLockedError StoreReadOnlyError "
        "VectorSpaceError WorkspaceError quoted"
    ),
    "cli.json_forms": "to_json",
    "files.atomic": "locked read_regular require_own_link sync_directory write_atomically",
    "files.held": "Descriptor FileLock try_lock",
    "files.layout": "own_directory",
    "holds": "Closing Flag Hold Notifier ThreadLock held_elsewhere operations shielded",
    "hookspecs": "API AutoChoice Component ComponentContext NoOptions hookimpl",
    "interfaces.components": "Chunker Embedder Fusion HeadingChunker Reranker VariantChunker",
    "interfaces.converter": "Converter",
    "interfaces.extension": (
        "AttachedExtension CheckedExtension Extension Host ListeningExtension PreferringExtension SourcedExtension "
        "StatusExtension ToolExtension"
    ),
    "interfaces.index": "Index Retriever",
    "interfaces.language_model": "LanguageModel",
    "interfaces.source": ("Divisible Folder Forgetful Forgettable Located Removable RowSource Shrinking Source"),
    "interfaces.store": "RepairableStore Snapshot Store Transaction",
    "memory": "Memory",
    "plugins.discover": "discover",
    "plugins.installing": "install_extras reinstall_command uninstall_command update_command",
    "plugins.registry": "LiveComponent",
    "values.candidates": "Candidate Preference RerankScore",
    "values.collections": "check_collection_name",
    "values.config": "Config",
    "values.documents": "Conversion Document DocumentRecord Entry Replacement",
    "values.events": "Event ForgetEvent IndexEvent MessageEvent",
    "values.findings": "Finding",
    "values.key_digest": "KeyDigest",
    "values.lazy": "Lazy",
    "values.lines": "line_starts",
    "values.metadata": "Condition Metadata MetadataValue check_metadata metadata_part",
    "values.migrations": "Migration",
    "cli.conditions": "parse_condition",
    "cli.moments": "parse_moment",
    "values.prompts": "Completion Prompt PromptMessage",
    "values.runs": "Excerpt ForgetReport IndexReport Progress SkippedEntry Status",
    "values.search": (
        "ChunkSelection CloseEvent Contribution Filters Hit KeySelection Query Ranking SearchEvent SearchRequest "
        "SearchResult SearchResults"
    ),
    "values.text": "Chunk Heading Span StoredChunk TokenCounter",
    "values.tools": "Tool",
    "values.vectors": "Keys Matrix SpaceRecord Vector VectorSpace",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}
# What programs pass to features of `Memory`: the feature's library defines it.
_OF_FEATURES = {"klaw_journals": ("Chat", "Message", "NewDocument")}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605  # a list; type checkers read the stub


def __getattr__(name: str) -> object:
    library = next((library for library, names in _OF_FEATURES.items() if name in names), None)
    if library is None and name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(library or f"klaw_core.{_MODULE_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        from klaw_core.plugins.catalogue import install_command

        raise ImportError(f"{name} is of {library}, which is not installed: {install_command(['default'])}") from error
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
