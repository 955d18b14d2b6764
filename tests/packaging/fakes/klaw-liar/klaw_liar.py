"""Components that break their Protocols: ``lie`` chooses how.

Each is honest in everything but its lie, so that a test sees what exactly is caught.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen, validators

from klaw_core import (
    Chunker,
    Component,
    Embedder,
    Hit,
    Query,
    Retriever,
    Span,
    TokenCounter,
    VectorSpace,
    estimate_tokens,
    hookimpl,
)

DIMENSION = 8
EMBEDDER_LIES = ("nan", "infinity", "zero", "length", "too few", "too many", "dimension", "dtype", "list", "none")
RETRIEVER_LIES = ("unsorted", "repeated", "too many", "nan")
CHUNKER_LIES = ("beyond the end", "before the start", "backwards", "empty", "out of order")


@frozen
class LiarEmbedder:
    """Says it embeds, and returns ``Any`` for a reason."""

    lie: str = field(default="nan", validator=validators.in_(EMBEDDER_LIES))
    max_tokens = 1_000_000
    space = VectorSpace("liar", revision="1", dimension=DIMENSION)

    def embed_documents(self, texts: Sequence[str], /) -> Any:
        import numpy as np

        honest = np.zeros((len(texts), DIMENSION), np.float32)
        honest[:, 0] = 1
        wrong = {"nan": np.nan, "infinity": np.inf, "zero": 0, "length": 2}
        if self.lie in wrong:
            honest[-1:, 0] = wrong[self.lie]
            return honest
        return {
            "too few": honest[1:],
            "too many": np.concatenate([honest, honest[:1]]),
            "dimension": honest[:, : DIMENSION // 2],
            "dtype": honest.astype(np.float64),
            "list": honest.tolist(),
            "none": None,
        }[self.lie]

    def embed_query(self, text: str, /) -> Any:
        """Lie about one vector; what lies about many has nothing to say of one, and is honest."""
        import numpy as np

        if self.lie in {"too few", "too many"}:
            return np.eye(1, DIMENSION, dtype=np.float32)[0]
        matrix = self.embed_documents([text])
        return None if matrix is None else matrix[0]

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        return estimate_tokens(texts)


@frozen
class LiarRetriever(Retriever[object]):
    """Joins every store, since it reads none; its keys are the first ones a store gives."""

    lie: str = field(default="unsorted", validator=validators.in_(RETRIEVER_LIES))
    joins = object
    needs_vectors = False

    def search(self, _resource: object, _query: Query, limit: int, /) -> Sequence[Hit]:
        return {
            "unsorted": [Hit(1, 1.0), Hit(2, 2.0)],
            "repeated": [Hit(1, 1.0), Hit(1, 1.0)],
            "too many": [Hit(key, 1.0) for key in range(1, limit + 2)],
            "nan": [Hit(1, float("nan"))],
        }[self.lie]


@frozen
class LiarChunker:
    """Cuts where there is no text."""

    lie: str = field(default="beyond the end", validator=validators.in_(CHUNKER_LIES))

    def split(self, text: str, _count_tokens: TokenCounter, /) -> Iterable[Span]:
        end, middle = len(text), len(text) // 2
        return {
            "beyond the end": [Span(0, end + 1)],
            "before the start": [Span(-1, end)],
            "backwards": [Span(end, 0)],
            "empty": [Span(0, end), Span(end, end)],
            "out of order": [Span(middle, end), Span(0, middle)],
        }[self.lie]


@hookimpl
def klaw_embedders() -> Iterable[Component[LiarEmbedder, Embedder]]:
    yield Component("liar", LiarEmbedder, factory=lambda options, _: options, api=2)


@hookimpl
def klaw_retrievers() -> Iterable[Component[LiarRetriever, Retriever[object]]]:
    yield Component("liar", LiarRetriever, factory=lambda options, _: options, api=2)


@hookimpl
def klaw_chunkers() -> Iterable[Component[LiarChunker, Chunker]]:
    yield Component("liar", LiarChunker, factory=lambda options, _: options, api=2)
