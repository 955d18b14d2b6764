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
    disabled_plugins: tuple[str, ...] = ()
    offline: bool = False
    files: tuple[Path, ...] = ()
    table: Mapping[str, Any] = field(factory=dict, eq=False, repr=False)  # merged, as `klaw config list` shows it
