"""Documents: a source finds an :class:`Entry` and reads it as a :class:`Document`; the manifest has its record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from attrs import field, frozen

from klaw_core.values.metadata import Metadata
from klaw_core.values.text import DEFAULT_FORMAT, Chunk, StoredChunk, text_hash


@frozen
class Entry:
    """A document that a scan has found and that can be read. ``size`` is in bytes (for progress only).

    ``fingerprint`` changes whenever the document changes, and is cheaper than reading: for a file its inode, size and
    times. It is empty if the source cannot promise that; then each index run reads the document.
    """

    path: str
    size: int = 0
    fingerprint: str = field(default="", eq=False)


@frozen
class Conversion:
    """The text of a file. Lines of results, and of ``klaw get``, are lines of this text.

    ``format`` names the chunker of the text; ``code:python`` is the variant ``python`` of the chunker ``code``.
    ``metadata`` is what searches can filter by; its ``title`` becomes part of the document's. ``created_at`` (aware) is
    the date that the file itself states. ``is_original``: the text is the decoded file, so it is not cached.
    """

    text: str = field(repr=False)
    format: str = DEFAULT_FORMAT
    metadata: Metadata = field(factory=dict)
    created_at: datetime | None = None
    is_original: bool = False


def is_path_of(path: str, origin: str) -> bool:
    """Return whether a path begins with its origin, so that no source can replace another source's document."""
    return len(path) > len(origin) + 1 and path.startswith(f"{origin}/")


@frozen
class Document:
    """One text to index, and its source.

    ``path`` is unique in its collection and portable (``notes/a.md``: workspace name, then the relative
    path); ``origin`` names the source instance that owns it (``notes``), ``source`` is the label that
    results show (``MEMORY.md``, ``conversation``, ``manual``). ``created_at`` is aware, in UTC. The core sets
    ``recipe``: which chunker, options and token counter cut the text. ``version`` is the version of the software that a
    text of the collection ``docs`` describes. ``format`` names the chunker; ``heading`` applies to the whole text,
    outermost first. ``title`` is the name of the document outside its text, such as its file name and folders: search
    by words finds every chunk by it, and a chunk without a heading is embedded with it. ``times`` are pairs of a line
    and the moment when the text from that line on was written, in order of lines, if known. ``is_note``: it is a
    person's own file, in which secrets are redacted only if that is configured. ``is_redacted``: its source has
    redacted the text and the labels, so they are indexed as they are. ``digest`` identifies the bytes that it was read
    from, for ``Source.read_changed``. ``trust`` is the class of its writer, which the source sets: ``owner``, ``agent``
    or ``foreign``.
    """

    path: str
    text: str = field(repr=False)
    source: str
    origin: str
    created_at: datetime
    chat_id: str | None = None
    version: str = ""
    recipe: str = field(default="", repr=False)
    format: str = DEFAULT_FORMAT
    heading: tuple[str, ...] = ()
    metadata: Metadata = field(factory=dict)
    title: str = ""
    times: tuple[tuple[int, datetime], ...] = field(default=(), repr=False)
    is_note: bool = False
    digest: str = field(default="", repr=False)
    is_redacted: bool = False
    trust: str = "owner"

    @property
    def content_hash(self) -> str:
        """SHA-256, in hex, of the recipe and all that chunks are made from; it shows whether the document changed."""
        above = "".join(f"{heading}\0" for heading in self.heading)
        # An absent field does not change the hash, so that documents from before that field keep theirs.
        above += f"\x1d{self.title}\0" if self.title else ""
        above += "".join(f"\x1e{line} {moment.isoformat()}\0" for line, moment in self.times)
        described = f"{json.dumps(self.metadata, sort_keys=True)}\0" if self.metadata else ""
        return text_hash(f"{self.recipe}\0{self.version}\0{described}{above}{self.text}")


@frozen
class DocumentRecord:
    """What a store records of an indexed document: a row of the manifest.

    ``seen`` is what an index run stored to recognise the document without reading it; see ``Transaction.remember``.
    """

    path: str
    origin: str
    content_hash: str
    created_at: datetime
    seen: str = field(default="", eq=False, repr=False)


@frozen
class ListedDocument:
    """A row of a list: ``title`` is the document's outermost heading, if any; ``preview`` is the start of its text."""

    path: str
    origin: str
    collection: str
    created_at: datetime
    source: str
    chat_id: str | None
    title: str
    preview: str = field(repr=False)
    chunks: int


@frozen(eq=False)
class RecordedDocuments(Mapping[str, DocumentRecord]):
    """Records by path, built on access: an index run needs only :meth:`seen` of most.

    ``make`` builds a record from a path and its row in ``rows``, whose last item is ``seen``.
    """

    rows: Mapping[str, Sequence[Any]]
    make: Callable[[str, Sequence[Any]], DocumentRecord]

    def __getitem__(self, path: str) -> DocumentRecord:
        return self.make(path, self.rows[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, path: object) -> bool:
        return path in self.rows

    def __eq__(self, other: object) -> bool:
        return dict(self) == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as for every mapping that is compared by its content

    def seen(self, path: str) -> str:
        """Return the ``seen`` of a document; empty if there is none."""
        row = self.rows.get(path)
        return row[-1] if row is not None and isinstance(row[-1], str) else ""


@frozen
class Replacement:
    """The result of replacing one document: removed keys and new chunks; ``kept`` are the other keys.

    ``renewed`` are also kept, but the document's title or metadata has changed: indexes must add them again.
    ``is_new``: the document did not exist. ``refused``: its record was not the expected one, and nothing was changed.
    """

    removed: tuple[int, ...] = ()
    added: tuple[StoredChunk, ...] = ()
    renewed: tuple[StoredChunk, ...] = ()
    kept: tuple[int, ...] = ()
    is_new: bool = False
    refused: bool = False

    @staticmethod
    def compare(
        chunks: Iterable[Chunk], held: Sequence[tuple[int, str]], stays: Callable[[int, Chunk], bool]
    ) -> tuple[list[tuple[int, Chunk]], list[Chunk], tuple[int, ...]]:
        """Return which chunks of a document stay, with their keys, which are new, and the keys of those that go.

        ``held`` are the key and the id of each chunk in the store. One stays if a chunk has its id and ``stays`` says
        that its content is the same too. Of several chunks with one id, at most one stays.
        """
        keys = {chunk_id: key for key, chunk_id in held}
        kept: list[tuple[int, Chunk]] = []
        new: list[Chunk] = []
        for chunk in chunks:
            key = keys.get(chunk.chunk_id)
            if key is None or not stays(key, chunk):
                new.append(chunk)
                continue
            kept.append((key, chunk))
            del keys[chunk.chunk_id]
        staying = {key for key, _ in kept}
        return kept, new, tuple(sorted(key for key, _ in held if key not in staying))
