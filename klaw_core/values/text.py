"""Spans, chunks and their identifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, TypeAlias

from attrs import field, frozen

from klaw_core.values.metadata import Metadata

#: The format of a note. ``[memory.chunking]`` configures its chunker.
DEFAULT_FORMAT = "markdown"

#: The format of text without markup.
PLAIN_FORMAT = "plain"

#: The format of a conversation: one message per line.
TRANSCRIPT_FORMAT = "transcript"

#: Counts the tokens of each text, without the model's special tokens; one call for many texts.
TokenCounter: TypeAlias = Callable[[Sequence[str]], Sequence[int]]


@frozen
class Heading:
    """A heading at ``line``, from 1. Its section ends before the next one of its ``level``, from 1, or a higher level.

    ``names`` are what people call it, the best to show first: its visible text, its source, an explicit id.
    """

    line: int
    level: int
    names: tuple[str, ...]


@frozen
class Span:
    """A part of a text: ``text[start:end]``, in characters, with the headings above it, outermost first.

    ``continues`` names the element (``"code"``, ``"table"``, ``"list item"``, ``"paragraph"`` …) if it was larger than
    the limit and this span is not its first piece; otherwise None. ``context`` is the offset where the text begins that
    a reader needs before the span; that text ends at ``start``. It is None if the span needs none.
    """

    start: int
    end: int
    heading: tuple[str, ...] = ()
    continues: str | None = None
    context: int | None = None


@frozen
class Chunk:
    """A chunk of a document: the unit that is embedded, indexed and found.

    ``start`` and ``end`` are character offsets into the document's text, lines count from 1 and include both ends.
    ``context`` is the text just before the chunk; it is not part of it, but indexes of words also match it, with less
    weight. ``title`` is the document's. ``created_at`` is the time when the end of the chunk was written, None if the
    document has no times for its parts. ``chunk_id`` is derived from path, heading, context
    and text, so it survives a rebuild.
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
    title: str = ""
    created_at: datetime | None = field(default=None, eq=False)  # a store writes it into the row and does not return it

    def says_the_same(self, other: Chunk) -> bool:
        """Return whether another chunk has the same text, heading and context, as chunks with the same id should."""
        return (self.text, self.heading, self.context) == (other.text, other.heading, other.context)

    @property
    def embedding_text(self) -> str:
        """The text that is embedded: the heading path, unless the chunk begins with it, then the text.

        Without a heading, the document's title is used, unless it is meaningless, such as a number.
        """
        if not self.heading:
            telling = any(character.isalpha() for character in self.title)
            return f"{self.title}\n{self.text}" if telling else self.text
        opens_with_heading = self.text.lstrip("# \t").startswith(self.heading[-1])
        above = self.heading[:-1] if opens_with_heading else self.heading
        return "\n".join((" > ".join(above), self.text)) if above else self.text

    @cached_property
    def embedding_hash(self) -> str:
        """SHA-256 of :attr:`embedding_text`, in hex: with the vector space, the key of the embedding cache."""
        return text_hash(self.embedding_text)


@frozen
class StoredChunk:
    """A chunk as stored. ``key`` is allocated by the store and never reused."""

    key: int
    chunk: Chunk
    path: str
    source: str
    created_at: datetime
    chat_id: str | None = None
    origin: str = ""
    metadata: Metadata = field(factory=dict)


def text_hash(text: str) -> str:
    """Return the SHA-256 of ``text`` in UTF-8, in hex."""
    digest: str = _sha256()(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digest


@cache
def _sha256() -> Callable[[bytes], Any]:
    from hashlib import sha256  # imported at the first hash because it loads OpenSSL, which a search does not need

    return sha256
