"""The embedder ``ollama``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from klaw_core import EmbeddingError, VectorSpace, estimate_tokens
from klaw_embed_ollama.server import ModelFacts, OllamaServer, TooLongError
from klaw_embed_ollama.windows import halves, pool, windows
from klaw_http import HttpClient

if TYPE_CHECKING:
    from klaw_core import Matrix, Vector
    from klaw_embed_ollama.plugin import OllamaOptions

_SPECIAL_TOKENS = 2  # what a model puts around a text: [CLS] and [SEP], or their like
_LARGEST_CONTEXT = 2048  # what a server gives, at the least, to a model that could read more
_UNKNOWN_CONTEXT = 256  # a server that names no window may also cut in silence: stay below any usual one


@frozen(eq=False)
class OllamaEmbedder:
    """Embeds with a model on an Ollama server; implements ``klaw_core.Embedder``.

    The server is first asked when the vector space, the window or a vector is. What it says of the model is
    kept for the life of the embedder. Tokens are estimated, on the high side, because Ollama has no
    tokenizer to ask; a text that is still too long for the server is halved until it fits.
    """

    options: OllamaOptions
    server: OllamaServer

    @classmethod
    def connect(cls, options: OllamaOptions) -> OllamaEmbedder:
        """Return the embedder the options describe. Nothing is sent yet."""
        client = HttpClient(
            options.url,
            read_timeout_seconds=options.timeout_seconds,
            deadline_seconds=options.deadline_seconds,
            retries=options.retries,
        )
        return cls(options, OllamaServer(client, options.model))

    @cached_property
    def space(self) -> VectorSpace:
        """What these vectors may be compared with; the revision is the model's digest on the server.

        Raise EmbedderUnavailableError, ModelNotFoundError.
        """
        return VectorSpace(
            model=self.options.model,
            revision=self._facts.digest,
            dimension=self.options.dimension or self._facts.dimension or self.server.embed(["a"]).shape[1],
            pooling=f"mean/{self.max_tokens} estimated",
        )

    @cached_property
    def max_tokens(self) -> int:
        """How many tokens the model reads at once. Raise EmbedderUnavailableError, ModelNotFoundError."""
        if self.options.max_tokens:
            return self.options.max_tokens
        context = min(self._facts.context_tokens or _UNKNOWN_CONTEXT, _LARGEST_CONTEXT)
        return max(1, context - _SPECIAL_TOKENS)

    @cached_property
    def _facts(self) -> ModelFacts:
        return self.server.facts()

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError.

        Each distinct text is sent once. If one request fails, nothing is returned.
        """
        if not texts:
            return np.empty((0, self.space.dimension), np.float32)
        pieces = {text: self._windows(text) for text in texts}
        distinct = list(dict.fromkeys(chain.from_iterable(pieces.values())))
        rows = np.concatenate([self._embed(batch) for batch in _batches(distinct, self.options.batch_size)])
        row_of = {piece: row for row, piece in enumerate(distinct)}
        pooled = {text: pool(rows[[row_of[piece] for piece in parts]], parts) for text, parts in pieces.items()}
        return _unit(np.stack([pooled[text] for text in texts]))

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return each text's estimated number of tokens; the server is not asked."""
        return estimate_tokens(texts)

    def _windows(self, text: str) -> list[str]:
        """Cut a text into windows; those of nothing but white space say nothing and are left out."""
        parts = windows(text, self.max_tokens)
        return [part for part in parts if part.strip()] or parts[:1]

    def _embed(self, texts: Sequence[str]) -> Matrix:
        """Return one row of unit length a text, splitting what the server finds too long."""
        try:
            vectors = self.server.embed(texts)
        except TooLongError as error:
            if len(texts) > 1:  # the server does not say which text it was
                middle = len(texts) // 2
                return np.concatenate([self._embed(texts[:middle]), self._embed(texts[middle:])])
            if len(texts[0]) < 2:  # noqa: PLR2004  # one character cannot be cut
                raise EmbeddingError(f"{self.server} finds a single character too long") from error
            parts = halves(texts[0])
            vectors = pool(self._embed(parts), parts)[np.newaxis]
        if vectors.shape[1] != self.space.dimension:
            raise EmbeddingError(
                f"{self.server} answers vectors of {vectors.shape[1]} dimensions, not {self.space.dimension}",
                hint=f"set memory.embedding.dimension = {vectors.shape[1]} if that is right",
            )
        return _unit(vectors)


def _batches(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (texts[start : start + size] for start in range(0, len(texts), size))


def _unit(vectors: Matrix) -> Matrix:
    """Scale each row to length 1, in double precision: a float32 square may overflow. Raise EmbeddingError."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not lengths.all():
        raise EmbeddingError("the vectors of a text's windows cancel out")
    unit: Matrix = (wide / lengths).astype(np.float32)
    return unit
