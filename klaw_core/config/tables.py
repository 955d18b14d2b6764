"""Which tables a configuration has, and what an empty file means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from klaw_core.kinds import EXTENSION, KINDS, Kind
from klaw_core.values.config import CacheSettings, ConversationSettings, Selection, SyncSettings


def _table(settings: attrs.AttrsInstance) -> dict[str, Any]:
    """Return settings as a table of TOML has them."""
    values = attrs.asdict(settings, recurse=False)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


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
        "formats": {},
        "converters": {},
        "conversations": _table(ConversationSettings()),
        "cache": _table(CacheSettings()),
        "sync": _table(SyncSettings()),
    },
    "extensions": {},
    "plugins": {"disabled": []},
    "trusted_projects": [],
    "project_memories": [],
}

#: The ``type`` of an embedder that stands for the first that works among those installed.
AUTO = "auto"

#: The tables under ``memory`` that pick one component each, by name.
COMPONENTS: Mapping[str, Kind[Any]] = {kind.table: kind for kind in KINDS.values() if kind.table and not kind.many}

#: The arrays of tables under ``memory`` that pick one component each, by name.
COMPONENT_ARRAYS: Mapping[str, Kind[Any]] = {kind.table: kind for kind in KINDS.values() if kind.many}

#: What else stands under ``memory``.
OTHER_TABLES = ("formats", "converters", "conversations", "cache", "sync")


def extension_selection(name: str, options: Mapping[str, Any] | None = None) -> Selection:
    """Return the selection of an extension, which is configured by its name."""
    return Selection(EXTENSION.name, name, f"extensions.{name}", options or {})
