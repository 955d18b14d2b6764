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
        "retrieval": [{"type": "sqlite-vec", "weight": 0.5}, {"type": "fts5", "weight": 1.0}],
        "fusion": {"type": "rrf"},
        "sources": [],
        "conversations": {
            "include_roles": ["user", "assistant"],
            "redact": [],
            "redact_secrets": True,
            "max_tokens": 256,
            "overlap_tokens": 32,
        },
    },
    "plugins": {"disabled": []},
    "trusted_projects": [],
}

#: The tables under ``memory`` that name one component each, and the kind of that component.
COMPONENTS: Mapping[str, str] = {
    "store": "store",
    "chunking": "chunker",
    "embedding": "embedder",
    "fusion": "fusion",
    "reranking": "reranker",
}


@frozen
class Selection:
    """One table that picks a component: its ``type``, its options as written, and where it stands."""

    kind: str
    type: str
    place: str  # dotted, as in the file: memory.embedding, memory.retrieval[0]
    options: Mapping[str, Any] = field(factory=dict)
    weight: float = 1.0


@frozen
class ConversationSettings:
    """The table ``memory.conversations``: what of the journals reaches klaw.db.

    Of messages whose role is in ``include_roles`` passages are made, of at most ``max_tokens``, that repeat at
    most ``overlap_tokens``. What matches a pattern in ``redact`` (of the library ``regex``) is struck out of
    everything, and so are keys and tokens of known shapes while ``redact_secrets`` is true.
    """

    include_roles: tuple[str, ...] = ("user", "assistant")
    redact: tuple[str, ...] = ()
    redact_secrets: bool = True
    max_tokens: int = 256
    overlap_tokens: int = 32


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
    reranking: Selection | None = None
    sources: tuple[Selection, ...] = ()
    conversations: ConversationSettings = ConversationSettings()
    disabled_plugins: tuple[str, ...] = ()
    offline: bool = False
    files: tuple[Path, ...] = ()
    table: Mapping[str, Any] = field(factory=dict, eq=False, repr=False)  # merged, as `klaw config list` shows it
