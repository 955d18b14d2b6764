"""The words of properties."""

from __future__ import annotations

from datetime import UTC, datetime

from klaw_core import Chunk, StoredChunk
from klaw_words.properties import described
from klaw_words.searching import columns


def test_keys_and_values_are_words_except_names_days_and_long_texts() -> None:
    metadata = {
        "title": "Jaana",
        "aliases": ("Jaa",),
        "email": "jaana@example.net",
        "tags": ("person", "energy/heating"),
        "isbn": 9780300078152,
        "publish": True,
        "date": "2024-05-01",
        "abstract": "long " * 100,
    }
    assert described(metadata) == "email jaana@example.net person energy/heating isbn 9780300078152"


def test_only_documents_with_a_name_are_found_by_their_properties() -> None:
    chunk = Chunk("1", "Met in Oslo.", 0, 12, 1, 1, context="before")
    named = StoredChunk(1, chunk, "n/a.md", "a.md", datetime(2026, 1, 1, tzinfo=UTC), metadata={"email": "a@b.net"})
    assert columns(named)[2] == "before"
    titled = StoredChunk(
        1, Chunk("1", "Met.", 0, 4, 1, 1, context="before", title="A"), "n/a.md", "a.md", named.created_at,
        metadata=named.metadata,
    )  # fmt: skip
    assert columns(titled)[2] == "email a@b.net before"
