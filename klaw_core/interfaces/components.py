"""Protocols of the components of a pipeline: embedder, chunker, fusion, reranker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from klaw_core.values.candidates import Candidate, RerankScore
    from klaw_core.values.search import Hit, Query, Ranking
    from klaw_core.values.text import Heading, Span, TokenCounter
    from klaw_core.values.vectors import Matrix, Vector, VectorSpace


class Embedder(Protocol):
    """Turns texts into vectors of unit length.

    ``max_tokens`` is the model's window without special tokens: a longer text is embedded in windows and
    pooled, never silently truncated. Constructing an embedder is cheap; the model loads at the first call.

    Three attributes are optional. ``model``: the model's name as ``space`` will say it, where that is known without
    asking a server; words are then indexed before the server is asked. ``texts_per_call`` (64): how many texts one call
    of ``embed_documents`` holds at most; to a local model 80,000 characters as well. ``remote`` (False): it asks a
    server. The answers of a server are stored before the next call, because they may have cost money; those of a local
    model once a second. A question waits at most a minute for a server, but longer for a local model, which may be
    loading.

    EmbedderUnavailableError, ModelNotFoundError and ModelCorruptError mean that the next call would fail as well: a
    run then stops asking, and a fallback takes over. Any other EmbeddingError is this call's alone.
    """

    @property
    def space(self) -> VectorSpace:
        """Return the vector space; only vectors of one space can be compared."""

    @property
    def max_tokens(self) -> int:
        """Return how many tokens the model reads at once, without special tokens."""

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError."""

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return each text's number of tokens, without special tokens.

        Counts are subadditive: those of the parts of a text, cut at line ends, at white space or after
        punctuation, sum to at least its own. A chunker counts parts and trusts that the whole is no larger.
        """


class Chunker(Protocol):
    """Splits a text into spans; it never creates new text."""

    def split(self, text: str, count_tokens: TokenCounter, /) -> Iterable[Span]:
        """Yield spans in order; together they cover every character that is not white space."""


class VariantChunker:
    """A chunker of formats that differ in details, such as the languages of source code. Optional: inherit it.

    It cuts the documents of the format ``code:python`` with the chunker ``code`` and its variant ``python``.
    """

    __slots__ = ()

    @abstractmethod
    def variant(self, name: str, /) -> Chunker:
        """Return the chunker of a variant; one for any text where the variant is not known."""


class HeadingChunker:
    """A chunker of a format with headings, so that people can name a section of a document. Optional: inherit it."""

    __slots__ = ()

    @abstractmethod
    def headings(self, text: str, /) -> Sequence[Heading]:
        """Return every heading that opens a section, in the order of the text. Its parser is that of ``split``."""


class Fusion(Protocol):
    """Merges several rankings into one."""

    def depth(self, limit: int, /) -> int:
        """Return how many hits each retriever should fetch so that ``limit`` can be chosen from them."""

    def fuse(self, rankings: Sequence[Ranking], limit: int, /) -> Sequence[Hit]:
        """Return at most ``limit`` hits, best first, ties by key, each with contributions that add up."""


class Reranker(Protocol):
    """Changes the order of the best chunks, by their text or by their attributes. A stage of ``[[memory.reranking]]``.

    Constructing one is cheap; a model loads at the first call. If a stage raises, or returns an invalid answer, the
    order is unchanged.
    """

    @property
    def needs_vectors(self) -> bool:
        """Return whether candidates should carry their vectors; ``query.vector`` is set if a retriever needed it."""

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        """Return new scores for at most ``limit`` of the candidates, best first, keys distinct; at least one.

        The scores can be on any scale. Candidates without a score come after the scored ones, in their previous
        order. Return None to change nothing.
        """
