"""An embedder in under thirty lines: every word adds one to the dimension it hashes to."""

from collections.abc import Iterable, Sequence
from zlib import crc32

from attrs import field, frozen, validators

from klaw_core import Component, Embedder, Matrix, Vector, VectorSpace, estimate_tokens, hookimpl


@frozen
class HashingEmbedder:
    dimension: int = field(default=64, validator=validators.ge(1))
    max_tokens = 1_000_000

    @property
    def space(self) -> VectorSpace:
        return VectorSpace("hashing", revision="1", dimension=self.dimension)

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        import numpy as np  # heavy: not before it is needed

        matrix = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(matrix, texts, strict=True):
            for word in text.lower().split() or [""]:
                row[crc32(word.encode("utf-8", "replace")) % self.dimension] += 1
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix

    def embed_query(self, text: str, /) -> Vector:
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        return estimate_tokens(texts)


@hookimpl
def klaw_embedders() -> Iterable[Component[HashingEmbedder, Embedder]]:
    yield Component("hashing", HashingEmbedder, factory=lambda options, _: options, api=2)
