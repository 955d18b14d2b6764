"""The values of an index run: what a source finds, what a store keeps of it, and what is reported.

A source's :class:`Entry` is read into a :class:`Document`, of which the manifest keeps a :class:`DocumentRecord`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from attrs import field, fields, frozen

from klaw_core.values import StoredChunk, VectorSpace, text_hash


@frozen
class Entry:
    """What a source's scan found: a document that can be read. ``size`` is in bytes (for progress only)."""

    path: str
    size: int = 0


@frozen
class Skipped:
    """What a source found and left out, and why.

    ``keep`` says that what was indexed from ``path`` (or below it) before stays, because it could not be
    looked at; False means that there is nothing to index there any more.
    """

    path: str
    reason: str
    keep: bool = field(kw_only=True)


@frozen
class Document:
    """One text to remember, with where it came from.

    ``path`` is unique in its collection and portable (``notes/a.md``: workspace name, then the relative
    path); ``origin`` names the source instance that owns it (``notes``), ``source`` is the label that
    results show (``MEMORY.md``, ``conversation``, ``manual``). ``created_at`` is aware, in UTC. The core sets
    ``recipe``: which chunker, options and token counter cut the text. ``version`` is that of the software a
    text of the collection ``docs`` describes. ``format`` says what the text is, and so which chunker cuts it;
    ``heading`` stands above all of it, outermost first.
    """

    path: str
    text: str = field(repr=False)
    source: str
    origin: str
    created_at: datetime
    chat_id: str | None = None
    version: str = ""
    recipe: str = field(default="", repr=False)
    format: str = "markdown"
    heading: tuple[str, ...] = ()

    @property
    def content_hash(self) -> str:
        """SHA-256, in hex, of the text, its headings, its version and its recipe: decides whether it has changed."""
        above = "".join(f"{title}\0" for title in self.heading)
        return text_hash(f"{self.recipe}\0{self.version}\0{above}{self.text}")


@frozen
class DocumentRecord:
    """What a store remembers of an indexed document: the manifest's row."""

    path: str
    origin: str
    content_hash: str
    created_at: datetime


@frozen
class Replacement:
    """What replacing one document changed: keys that are gone and chunks that are new; the rest was kept."""

    removed: tuple[int, ...] = ()
    added: tuple[StoredChunk, ...] = ()


@frozen
class Progress:
    """How far a run has come.

    In the stages ``index`` and ``ahead`` (vectors for another index than the one in use), ``done`` and ``total`` are
    bytes of the documents found by the scan; in the stage ``embed`` they are chunks. The stage ``wait`` is for another
    run that embeds, and has no end that is known. ``documents`` and ``chunks`` count what has been dealt with so far.
    """

    stage: str
    done: int
    total: int
    documents: int = 0
    chunks: int = 0


@frozen
class IndexReport:
    """What an index run did. ``embedded`` counts texts sent to the model, ``cached`` those found already embedded.

    ``lacking`` chunks are found by words alone until they have a vector; ``notices`` say why.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: tuple[Skipped, ...] = ()
    chunks: int = 0
    embedded: int = 0
    cached: int = 0
    lacking: int = 0
    notices: tuple[str, ...] = ()
    seconds: float = 0.0

    def __add__(self, other: IndexReport) -> IndexReport:
        return IndexReport(
            **{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(IndexReport)}
        )


@frozen
class Passage:
    """Lines of a document, both ends included. ``file`` is where they stand, None for a saved memory.

    ``notice`` says what a person should know though the call succeeded; usually it is empty.
    """

    path: str
    content: str
    start_line: int
    end_line: int
    file: Path | None = None
    notice: str = ""


@frozen
class Forgotten:
    """The documents that are gone, and how many chunks they had."""

    paths: tuple[str, ...]
    chunks: int


@frozen
class Status:
    """What is indexed, with what, and what does not work.

    By origin: ``origins`` counts (documents, chunks), ``collections`` names the collection, ``workspaces`` the
    directory, ``excluded`` counts the notes of a workspace that were forgotten and are left out since.
    """

    location: str
    embedder: str
    space: VectorSpace | None
    retrievers: tuple[str, ...]
    fusion: str
    origins: Mapping[str, tuple[int, int]]
    collections: Mapping[str, str]
    workspaces: Mapping[str, str]
    excluded: Mapping[str, int]
    statistics: Mapping[str, int | str]
    problems: tuple[str, ...] = ()
