"""The embedder ``onnx``: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from klaw_core import Matrix, Vector, VectorSpace
from klaw_embed_onnx.session import ModelSession
from klaw_embed_onnx.tokenizer import Ids, TextTokenizer
from klaw_embed_onnx.windows import pool
from klaw_models import OnnxEmbedderManifest

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value made at its first use, once, whichever thread comes first. A failure is tried again."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: T | None = None

    def get(self) -> T:
        """Return the value, making it if need be."""
        made = self._made
        if made is None:
            with self._lock:
                made = self._made
                if made is None:
                    made = self._made = self._make()
        return made


class OnnxEmbedder:
    """Embeds with a model that ONNX Runtime runs. Safe to use from several threads.

    Constructing reads nothing. The tokenizer loads at the first call, the model at the first text to embed;
    both raise EmbedderUnavailableError, ModelCorruptError. A text longer than the window is embedded in
    windows (:mod:`klaw_embed_onnx.windows`); a text without any token has the vector of the special tokens.
    A text's vector does not depend on what else is in the call.
    """

    def __init__(self, manifest: OnnxEmbedderManifest, *, threads: int = 0, batch_tokens: int = 512) -> None:
        self._manifest = manifest
        self._tokenizer = Lazy(lambda: TextTokenizer.load(manifest))
        self._session = Lazy(lambda: ModelSession.load(manifest, threads=threads, batch_tokens=batch_tokens))

    def __repr__(self) -> str:
        return f"OnnxEmbedder({self.space})"

    @property
    def space(self) -> VectorSpace:
        """Return what these vectors may be compared with."""
        return self._manifest.space

    @property
    def max_tokens(self) -> int:
        """Return how many tokens of a text the model reads at once."""
        return self._manifest.max_tokens

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError."""
        return self._embed(texts, query=False)

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""
        vector: Vector = self._embed([text], query=True)[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> list[int]:
        """Return each text's number of tokens, without special tokens. Raise EmbeddingError."""
        return self._tokenizer.get().count(texts) if texts else []

    def _embed(self, texts: Sequence[str], *, query: bool) -> Matrix:
        if not texts:
            return np.empty((0, self._manifest.dimension), np.float32)
        texts_windows = self._tokenizer.get().windows(texts, query=query)
        rows: dict[Ids, int] = {}  # equal windows, and so equal texts, are embedded once
        for windows in texts_windows:
            for window in windows:
                rows.setdefault(window.ids, len(rows))
        vectors = self._session.get().embed(list(rows))
        return np.stack(
            [
                pool(vectors[[rows[window.ids] for window in windows]], [window.tokens for window in windows])
                for windows in texts_windows
            ]
        )
