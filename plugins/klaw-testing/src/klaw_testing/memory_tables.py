"""The rows of the store ``memory``, in dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from attrs import define, field

from klaw_core import Document, SpaceRecord, StoredChunk, Vector
from klaw_journals import JournalFileState, StoredMessage, Summary


@define
class Tables:
    """All the rows. Indexes keep theirs in ``indexes``, by (owner, collection); values are replaced, not mutated.

    ``collections`` were ever written to; ``chunks`` are by collection, then by key.
    """

    documents: dict[tuple[str, str], Document] = field(factory=dict)
    chunks: dict[str, dict[int, StoredChunk]] = field(factory=dict)
    spaces: dict[str, SpaceRecord] = field(factory=dict)
    vectors: dict[tuple[str, str], Vector] = field(factory=dict)
    indexes: dict[tuple[str, str], Mapping[int, Any]] = field(factory=dict)
    migrations: set[tuple[str, str]] = field(factory=set)
    next_key: int = 1
    messages: dict[tuple[str, str], StoredMessage] = field(factory=dict)
    message_files: dict[tuple[str, date], JournalFileState] = field(factory=dict)
    summaries: dict[str, tuple[Summary, ...]] = field(factory=dict)
    collections: set[str] = field(factory=set)
    noted: dict[tuple[str, str], frozenset[tuple[str, str]]] = field(factory=dict)
    seen: dict[tuple[str, str], str] = field(factory=dict)

    def copy(self) -> Tables:
        """Return tables whose changes do not show in these."""
        return Tables(
            dict(self.documents),
            {collection: dict(chunks) for collection, chunks in self.chunks.items()},
            dict(self.spaces),
            dict(self.vectors),
            dict(self.indexes),
            set(self.migrations),
            self.next_key,
            dict(self.messages),
            dict(self.message_files),
            dict(self.summaries),
            set(self.collections),
            dict(self.noted),
            dict(self.seen),
        )
