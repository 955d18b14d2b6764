r"""The values that flow through Klaw: frozen, compared by content, free of behaviour that needs a store.

A :class:`Document` is split into :class:`Span`\ s, which become :class:`Chunk`\ s, which a store turns
into :class:`StoredChunk`\ s with a key. A :class:`Query` gives one :class:`Ranking` of :class:`Hit`\ s a
leg, fusion makes one list of hits of them, and hydration makes each a :class:`SearchResult`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from attrs import field, frozen

from klaw_core.errors import QueryError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # shape (d,), unit length
    Matrix: TypeAlias = NDArray[np.float32]  # shape (n, d), rows of unit length
    Keys: TypeAlias = NDArray[np.int64]  # shape (n,), ascending, distinct
else:
    Vector = Matrix = Keys = Any  # so that `Matrix | None` can be evaluated without importing numpy

R = TypeVar("R")

#: Notes and memories, and the documentation of software; one mechanism, tables of their own.
COLLECTIONS = ("memory", "docs")

# A revision of this form is recognised by its beginning; any other, a server's address say, is not.
_DIGEST = re.compile(r"(sha256:)?[0-9a-f]{32,}")

#: Counts the tokens of each text, without the model's special tokens; one call for many texts.
TokenCounter: TypeAlias = Callable[[Sequence[str]], Sequence[int]]


@frozen
class Span:
    """A chunker's cut: ``text[start:end]``, in characters, with the headings above it, outermost first.

    ``continues`` names the element (``"code"``, ``"table"``, ``"list item"``, ``"paragraph"`` …) that was
    larger than the bound and of which this span is not the first piece; otherwise None. ``context`` is where
    the text begins without which the span is hard to understand, and which ends where the span starts; None if
    it stands for itself.
    """

    start: int
    end: int
    heading: tuple[str, ...] = ()
    continues: str | None = None
    context: int | None = None


@frozen
class Chunk:
    """A passage of a document: the unit that is embedded, indexed and found.

    ``start`` and ``end`` are character offsets into the document's text, lines count from 1 and both ends
    belong to the chunk. ``context`` is what stands right before it and is no part of it: indexes of words find
    the chunk by it too, and count it less. ``chunk_id`` is derived from path, heading, context and text, so it
    survives a rebuild.
    """

    chunk_id: str
    text: str = field(repr=False)
    start: int
    end: int
    start_line: int
    end_line: int
    heading: tuple[str, ...] = ()
    continues: str | None = None
    context: str = field(default="", repr=False)

    @property
    def passage(self) -> str:
        """The text that is embedded: the heading path, where the chunk does not begin with it, then the text."""
        opens_with_heading = self.heading and self.text.lstrip("# \t").startswith(self.heading[-1])
        above = self.heading[:-1] if opens_with_heading else self.heading
        return "\n".join((" > ".join(above), self.text)) if above else self.text

    @cached_property
    def passage_hash(self) -> str:
        """SHA-256 of :attr:`passage`, in hex: with the vector space, the key of the embedding cache."""
        return text_hash(self.passage)


@frozen
class StoredChunk:
    """A chunk as the store holds it. ``key`` is allocated by the store and never reused."""

    key: int
    chunk: Chunk
    path: str
    source: str
    created_at: datetime
    chat_id: str | None = None
    origin: str = ""


@frozen
class VectorSpace:
    """What must agree before two vectors may be compared.

    ``revision`` identifies the weights, ``pooling`` how tokens become one vector (``mean/256``: mean over
    windows of 256 tokens). ``metric`` is ``"cosine"``: vectors have unit length.
    """

    model: str
    revision: str
    dimension: int
    metric: str = "cosine"
    pooling: str = "mean"

    def __str__(self) -> str:
        revision = self.revision[:12] if _DIGEST.fullmatch(self.revision) else self.revision
        return f"{self.model}@{revision} ({self.dimension}-d, {self.metric}, {self.pooling})"

    @property
    def identity(self) -> str:
        """One line that equals another space's exactly when the spaces are equal."""
        return "\t".join((self.model, self.revision, str(self.dimension), self.metric, self.pooling))


@frozen
class Filters:
    """Which chunks may be found at all; applied inside each leg, never after the cut.

    ``path`` is a prefix (``notes/2024/``), ``chat_id`` the name of a chat (``telegram_123456``); ``since`` is inclusive
    and ``until`` exclusive, both aware.
    """

    source: str | None = None
    path: str | None = None
    chat_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        """Whether anything is left out: every path begins with an empty one, but no chat is called so."""
        return bool(self.path) or any(
            value is not None for value in (self.source, self.chat_id, self.since, self.until)
        )


@frozen
class Query:
    """What a retriever is asked: text, its vector if the retriever needs one, and where to look.

    ``within`` holds the only keys that may be returned, or is None for no restriction.
    """

    text: str
    collection: str = "memory"
    vector: Vector | None = field(default=None, eq=False, repr=False)
    within: Keys | None = field(default=None, eq=False, repr=False)


@frozen
class Contribution:
    """One leg's part in a fused score. ``rank`` counts from 1; ``raw`` is the leg's own score."""

    leg: str
    rank: int
    raw: float
    weight: float
    value: float


@frozen
class Hit:
    """A key and its score, higher is better. After fusion the contributions add up to the score."""

    key: int
    score: float
    contributions: tuple[Contribution, ...] = ()


@frozen
class Ranking:
    """One leg's hits, best first, with the weight that the configuration gives the leg."""

    leg: str
    hits: tuple[Hit, ...]
    weight: float = 1.0


@frozen
class SearchResult:
    """A passage that was found, where it stands and why it ranked. ``context`` is what was said just before it."""

    content: str
    path: str
    start_line: int
    end_line: int
    heading: tuple[str, ...]
    score: float
    source: str
    created_at: datetime
    chunk_id: str
    chat_id: str | None = None
    explain: tuple[Contribution, ...] = ()
    context: str = ""


@frozen
class SearchResults(Sequence[SearchResult]):
    """Results, best first, and the notices a person should see (a leg that failed, an empty index)."""

    results: tuple[SearchResult, ...] = ()
    notices: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> SearchResult: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SearchResult, ...]: ...
    def __getitem__(self, index: int | slice) -> SearchResult | tuple[SearchResult, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[SearchResult]:
        return iter(self.results)


@frozen
class Migration(Generic[R]):
    """One named step of a schema. Steps are append-only; a store records (owner, name) as it applies them."""

    name: str
    apply: Callable[[R], None]


@frozen
class SpaceRecord:
    """The vector space of a collection, and the probe sentence's vector that proves it."""

    space: VectorSpace
    probe: Vector = field(eq=False, repr=False)


def check_filters(filters: Filters) -> None:
    """Raise QueryError if a filter is a text that nothing can be named by."""
    for name in ("source", "path", "chat_id"):
        value: str | None = getattr(filters, name)
        if value is not None and has_surrogates(value):
            raise QueryError(f"the filter {name} is not text: {value!a}", hint="give it in UTF-8")


def has_surrogates(text: str) -> bool:
    """Return whether the text holds a lone surrogate, which no file and no database can."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def text_hash(text: str) -> str:
    """Return the SHA-256 of ``text`` in UTF-8, in hex."""
    from hashlib import sha256  # loads OpenSSL, of which a search has no need

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
