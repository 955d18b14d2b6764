"""The tables of a configuration and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klaw_core.config.settings import SETTINGS, table_of
from klaw_core.kinds import EXTENSION, KINDS, Kind
from klaw_core.values.config import Selection

_OF_MESSAGES = "aider claude-code cline codex conversations copilot-cli cursor gemini-cli jsonl opencode"

#: The defaults. Component options are not repeated here: each component has its own defaults.
DEFAULTS: Mapping[str, Any] = {
    "memory": {
        "store": {"type": "sqlite"},
        "chunking": {"type": "markdown"},
        "embedding": {"type": "onnx"},
        "retrieval": [{"type": "sqlite-vec", "weight": 1.0}, {"type": "fts5", "weight": 1.0}],
        "fusion": {"type": "rrf"},
        "reranking": [{"type": "chat", "paths": [f"{name}/" for name in _OF_MESSAGES.split()]}],
        "sources": [],
        "formats": {},
        "converters": {},
        **{name: table_of(kind()) for name, kind in SETTINGS.items()},
    },
    "extensions": {},
    "plugins": {"disabled": []},
    "trusted_projects": [],
    "project_memories": [],
    "agents": {},
}

#: The embedder ``type`` that selects the first installed embedder that works.
AUTO = "auto"

#: The tables under ``memory`` that select one component each, by table name.
COMPONENTS: Mapping[str, Kind[Any]] = {kind.table: kind for kind in KINDS.values() if kind.table and not kind.many}

#: The arrays of tables under ``memory`` in which each table selects one component, by array name.
COMPONENT_ARRAYS: Mapping[str, Kind[Any]] = {kind.table: kind for kind in KINDS.values() if kind.many}

#: The other tables under ``memory``.
OTHER_TABLES = ("formats", "converters", *SETTINGS)


def extension_selection(name: str, options: Mapping[str, Any] | None = None) -> Selection:
    """Return the selection of an extension; its table is ``extensions.NAME``."""
    return Selection(EXTENSION.name, name, f"extensions.{name}", options or {})
