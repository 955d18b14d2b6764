"""The embedder ``none``: no vectors; searches use words alone."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from klaw_core.embedding.token_estimate import estimate_tokens
from klaw_core.errors import EmbeddingError
from klaw_core.values.vectors import Matrix, Vector, VectorSpace


@frozen
class NoEmbedder:
    """Estimates token counts and refuses to embed. Retrievers that need vectors are not used."""

    @property
    def space(self) -> VectorSpace:
        """Return a space of no dimensions."""
        return VectorSpace("none", "", 0)

    @property
    def max_tokens(self) -> int:
        """Return a window larger than any text."""
        return 2**31

    def embed_documents(self, _texts: Sequence[str], /) -> Matrix:
        """Raise EmbeddingError."""
        raise EmbeddingError('memory.embedding.type is "none"')

    def embed_query(self, _text: str, /) -> Vector:
        """Raise EmbeddingError."""
        raise EmbeddingError('memory.embedding.type is "none"')

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return estimates."""
        return estimate_tokens(texts)
