"""The embedder ``llamacpp``: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from klaw_core import (
    EmbeddingError,
    Lazy,
    VectorSpace,
    embed_in_windows,
    estimate_tokens,
    halves,
    pool_windows,
    unit_rows,
)
from klaw_embed_llamacpp.runtime import Runtime, TooLongError

if TYPE_CHECKING:
    from klaw_core import Matrix, Vector
    from klaw_embed_llamacpp.model import GgufModel

# Texts per request. llama.cpp computes them one by one; after an error, they are also requested one by one.
_BATCH = 16


class LlamaCppEmbedder:
    """Embeds with a GGUF model in this process; implements ``klaw_core.Embedder``. Safe to use from several threads.

    The constructor reads nothing; the model loads when the first text is embedded. A model without a manifest is tried
    when its vector space is needed for the first time. Token counts are estimates, rather too high than too low, so
    that counting needs no model; a text that is still too long is halved until it fits.
    """

    #: Few, because a text may take a tenth of a second or more: progress is shown, and vectors are stored, per call.
    texts_per_call = 16

    def __init__(self, model: GgufModel) -> None:
        self._model = model
        self._runtime = Lazy(partial(_load, model))

    def __repr__(self) -> str:
        return f"LlamaCppEmbedder({str(self._model)!r})"

    @cached_property
    def space(self) -> VectorSpace:
        """The vector space; its revision is the SHA-256 of the file.

        Raise ModelNotFoundError, ModelCorruptError, EmbedderUnavailableError, EmbeddingError.
        """
        model, identity = self._model, self._model.identity
        kept = model.options.dimension or identity.dimension
        if kept > identity.dimension:
            raise EmbeddingError(
                f"{model.name} returns vectors of {identity.dimension} dimensions, expected {kept}",
                hint="lower memory.embedding.dimension",
            )
        pooled = "" if model.pooling == "mean" else f"{model.pooling}, "
        after = f", after {model.document_prefix!r}" if model.document_prefix else ""
        return VectorSpace(
            model.name, identity.sha256, kept, pooling=f"{pooled}mean/{model.max_tokens} estimated{after}"
        )

    @property
    def max_tokens(self) -> int:
        """Return the maximum number of a text's tokens in one window. Raise ModelNotFoundError, ModelCorruptError."""
        return self._model.max_tokens

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError."""
        return self._embed(texts, self._model.document_prefix)

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""
        vector: Vector = self._embed([text], self._model.query_prefix)[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> list[int]:
        """Return the estimated number of tokens of each text, without loading the model."""
        return estimate_tokens(texts)

    def _embed(self, texts: Sequence[str], prefix: str) -> Matrix:
        if not texts:
            return np.empty((0, self.space.dimension), np.float32)

        def rows(windows: Sequence[str]) -> Matrix:
            batches = (windows[start : start + _BATCH] for start in range(0, len(windows), _BATCH))
            return np.concatenate([self._rows(batch, prefix) for batch in batches])

        return embed_in_windows(texts, self.max_tokens, rows)

    def _rows(self, windows: Sequence[str], prefix: str) -> Matrix:
        """Return one row of unit length per window; halve windows with more tokens than estimated."""
        try:
            vectors = self._runtime.get().embed([prefix + window for window in windows])
        except TooLongError:
            if len(windows) > 1:  # llama.cpp does not say which text was too long
                return np.concatenate([self._rows([window], prefix) for window in windows])
            if len(windows[0]) < 2:  # noqa: PLR2004  # one character cannot be cut
                raise
            parts = halves(windows[0])
            return pool_windows(self._rows(parts, prefix), estimate_tokens(parts))[np.newaxis]
        return unit_rows(vectors[:, : self.space.dimension], f"llama.cpp with {self._model}")


def _load(model: GgufModel) -> Runtime:
    _ = model.verified  # because loading a damaged file may end the process
    return Runtime.load(model.path, model.settings)
