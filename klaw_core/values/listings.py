"""What lists show: documents, one value a row."""

from __future__ import annotations

from datetime import datetime

from attrs import field, frozen


@frozen
class ListedDocument:
    """An indexed document. ``title`` is its outermost heading, if any; ``preview`` is the start of its text."""

    path: str
    origin: str
    collection: str
    created_at: datetime
    source: str
    chat_id: str | None
    title: str
    preview: str = field(repr=False)
    chunks: int
