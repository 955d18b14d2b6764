"""The configuration as a value, and the configuration that an empty file means."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

#: What an empty file means. Component options are not repeated here: each component has its own defaults.
DEFAULTS: Mapping[str, Any] = {
    "memory": {
        "store": {"type": "sqlite"},
        "chunking": {"type": "markdown"},
        "embedding": {"type": "onnx"},
        "retrieval": [{"type": "sqlite-vec", "weight": 1.0}, {"type": "fts5", "weight": 1.0}],
        "fusion": {"type": "rrf"},
        "reranking": [],
        "sources": [],
        "conversations": {
            "include_roles": ["user", "assistant"],
            "redact": [],
            "redact_secrets": True,
            "max_tokens": 256,
            "packed_tokens": 64,
            "context_tokens": 96,
        },
        "cache": {"max_entries": 250_000},
    },
    "plugins": {"disabled": []},
    "trusted_projects": [],
}

#: The ``type`` of an embedder that stands for the first that works among those installed.
AUTO = "auto"

#: The tables under ``memory`` that name one component each, and the kind of that component.
COMPONENTS: Mapping[str, str] = {
    "store": "store",
    "chunking": "chunker",
    "embedding": "embedder",
    "fusion": "fusion",
}

#: The arrays of tables under ``memory`` that name one component each, and the kind of those components.
COMPONENT_ARRAYS: Mapping[str, str] = {
    "retrieval": "retriever",
    "reranking": "reranker",
    "sources": "source",
}


@frozen
class Selection:
    """One table that picks a component: its ``type``, its options as written, and where it stands."""

    kind: str
    type: str
    place: str  # dotted, as in the file: memory.embedding, memory.retrieval[0]
    options: Mapping[str, Any] = field(factory=dict, repr=False)  # keys among them, with ${VAR} expanded
    weight: float = 1.0
    fallback: tuple["Selection", ...] = ()  # of an embedder: what serves in its place, in this order


def named_embedding(text: str, current: Selection) -> Selection:
    """Return the selection that ``TYPE`` or ``TYPE:MODEL`` means where ``current`` is configured.

    Other options of the same type stay as they are; those of another type mean nothing to it.
    """
    kind, _, model = text.partition(":")
    kept = kind == current.type
    options = {**(current.options if kept else {}), **({"model": model} if model else {})}
    return Selection("embedder", kind, "memory.embedding", options, fallback=current.fallback if kept else ())


@frozen
class CacheSettings:
    """The table ``memory.cache``: how many vectors the embedding cache keeps, the least recently used leaving first."""

    max_entries: int = 250_000


@frozen
class ConversationSettings:
    """The table ``memory.conversations``: what of the journals reaches klaw.db.

    Of messages whose role is in ``include_roles`` chunks are made, of at most ``max_tokens``. Messages share one
    while together they have at most ``packed_tokens``, and each is found also by the ``context_tokens`` said before
    it. What matches a pattern in ``redact`` (of the library ``regex``) is struck out of
    everything, and so are keys and tokens of known shapes while ``redact_secrets`` is true.
    """

    include_roles: tuple[str, ...] = ("user", "assistant")
    redact: tuple[str, ...] = ()
    redact_secrets: bool = True
    max_tokens: int = 256
    packed_tokens: int = 64
    context_tokens: int = 96


@frozen
class Config:
    """Everything that was configured, frozen. ``files`` are those that were read, in order."""

    data_dir: Path
    cache_dir: Path
    store: Selection
    chunking: Selection
    embedding: Selection
    retrieval: tuple[Selection, ...]
    fusion: Selection
    reranking: tuple[Selection, ...] = ()  # stages, in the order in which they are applied
    sources: tuple[Selection, ...] = ()
    conversations: ConversationSettings = ConversationSettings()
    cache: CacheSettings = CacheSettings()
    disabled_plugins: tuple[str, ...] = ()
    offline: bool = False
    files: tuple[Path, ...] = ()
    table: Mapping[str, Any] = field(factory=dict, eq=False, repr=False)  # merged, as `klaw config list` shows it

    def selections(self) -> list[Selection]:
        """Return every table that picks a component."""
        single = (self.store, self.chunking, self.embedding, self.fusion)
        return [*single, *self.embedding.fallback, *self.retrieval, *self.reranking, *self.sources]
