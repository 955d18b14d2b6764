"""Reports of the methods of ``Memory``: progress, counts, skipped entries, forgotten documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import field, fields, frozen

from klaw_core.values.vectors import VectorSpace

#: The reason for an entry whose document no longer exists.
VANISHED = "vanished"
#: The reason for a file without text.
EMPTY = "is empty"


@frozen
class SkippedEntry:
    """An entry that a source found and skipped, and the reason.

    ``keep``: the documents indexed from ``path`` (or below it) stay, because the entry could not be examined; False
    means that there is no longer anything to index.
    """

    path: str
    reason: str
    keep: bool = field(kw_only=True)


@frozen
class Progress:
    """The progress of a run.

    In the stages ``index`` and ``ahead`` (vectors for another index than the one in use), ``done`` and ``total`` are
    bytes of the documents found by the scan; in the stage ``embed`` they are chunks. In the stage ``wait`` the run
    waits, for an unknown time, for another one that embeds; ``left`` means that the missing vectors are left to that
    run. ``documents`` and ``chunks`` count what is done so far.
    """

    stage: str
    done: int
    total: int
    documents: int = 0
    chunks: int = 0


@frozen
class IndexReport:
    """The result of an index run. ``embedded`` counts texts sent to the model, ``cached`` texts found in the cache.

    ``lacking`` chunks are found by words alone until they have a vector; ``notices`` say why.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: tuple[SkippedEntry, ...] = ()
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
class Excerpt:
    """Lines of a document, both ends included. ``file`` is their file, None for a saved memory.

    ``notice`` is a message for the user although the call succeeded, for example that the file is gone and this is its
    indexed text; usually it is empty. ``trust`` is the class of its writer, as of its results.
    """

    path: str
    content: str
    start_line: int
    end_line: int
    file: Path | None = None
    notice: str = ""
    trust: str = "owner"


@frozen
class ForgetReport:
    """The forgotten documents, and the number of their chunks."""

    paths: tuple[str, ...]
    chunks: int


@frozen
class SourceStatus:
    """A source of documents. ``root`` is its directory, None if it has none.

    ``can_forget``: single documents can be forgotten. ``configured``: it is in ``[[memory.sources]]``.
    """

    origin: str
    collection: str
    root: Path | None
    can_forget: bool
    configured: bool


@frozen
class Status:
    """What is indexed, the model in use, and any problems.

    These map an origin: ``origins`` to the numbers of documents and chunks, ``collections`` to names of collections,
    ``workspaces`` to a directory, ``excluded`` to the numbers of forgotten notes and of patterns, ``skipped`` to the
    entries that the last run could not index, ``elsewhere`` to the machine and directory of a source that only another
    machine of a shared store indexes.
    """

    location: str
    embedder: str
    space: VectorSpace | None
    retrievers: tuple[str, ...]
    fusion: str
    origins: Mapping[str, tuple[int, int]]
    collections: Mapping[str, tuple[str, ...]]
    workspaces: Mapping[str, str]
    excluded: Mapping[str, int]
    statistics: Mapping[str, int | str]
    problems: tuple[str, ...] = ()
    skipped: Mapping[str, tuple[SkippedEntry, ...]] = field(factory=dict)
    elsewhere: Mapping[str, str] = field(factory=dict)
