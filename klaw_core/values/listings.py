"""What lists show: documents and workspaces, one value a row."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

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


@frozen
class ListedWorkspace:
    """A directory of notes. ``include`` are patterns of file names, ``exclude`` of paths below ``root``.

    ``configured``: it is in ``[[memory.sources]]``. ``is_there``: the directory exists.
    """

    name: str
    root: Path
    collection: str
    version: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    documents: int
    chunks: int
    configured: bool
    is_there: bool
