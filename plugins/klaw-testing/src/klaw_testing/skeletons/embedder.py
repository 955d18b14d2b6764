"""An embedder: every word of a text counts in one dimension. It has no model, but it is complete."""

from collections.abc import Iterable, Sequence
from zlib import crc32

from attrs import field, frozen, validators

from klaw_core import Component, Embedder, Matrix, Vector, VectorSpace, estimate_tokens, hookimpl


@frozen
class SkeletonEmbedder:
    """Its fields are the keys next to ``type = "skeleton"``."""

    dimension: int = field(default=64, validator=validators.ge(1))
    max_tokens = 1_000_000

    @property
    def space(self) -> VectorSpace:
        """Return the vector space. Change its revision whenever a text would get another vector."""
        return VectorSpace("skeleton", revision="1", dimension=self.dimension)

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 vectors of unit length."""
        import numpy as np  # heavy: not before it is needed

        matrix = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(matrix, texts, strict=True):
            for word in text.lower().split() or [""]:
                row[crc32(word.encode("utf-8", "replace")) % self.dimension] += 1
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix

    def embed_query(self, text: str, /) -> Vector:
        """Return the vector of a question."""
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return the number of tokens of each text."""
        return estimate_tokens(texts)


@hookimpl
def klaw_embedders() -> Iterable[Component[SkeletonEmbedder, Embedder]]:
    """Yield the embedder; its options are the embedder itself."""
    yield Component("skeleton", SkeletonEmbedder, lambda options, _context: options, api=2)
