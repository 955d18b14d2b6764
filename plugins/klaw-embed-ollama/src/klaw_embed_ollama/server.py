"""What Ollama says on the wire, and what its answers mean.

The requests are those of https://github.com/ollama/ollama/blob/main/docs/api.md: ``GET /api/tags`` names the
digest of every local model, ``POST /api/show`` its dimensions, ``POST /api/embed`` makes vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from klaw_core import EmbedderUnavailableError, EmbeddingError, ModelNotFoundError
from klaw_http import HttpClient, HttpError, NoAnswerError, StatusError

if TYPE_CHECKING:
    from klaw_core import Matrix

# Ollama: "the input length exceeds the context length" (400 or 413, by version); llama.cpp's server:
# "input is too large to process", "exceeds the available context size" (500 or 400).
_TOO_LONG = re.compile(r"context (?:length|size|window)|too (?:large|long)", re.IGNORECASE)
_NOT_FOUND = 404
_NO_DIGEST = "unknown"


class TooLongError(Exception):
    """A text of the request is longer than the model's window."""


@frozen
class ModelFacts:
    """What the server says of a model; None where it says nothing.

    ``digest`` changes with every change of the model that is pulled; ``context_tokens`` counts special tokens.
    """

    digest: str
    dimension: int | None
    context_tokens: int | None


@frozen
class OllamaServer:
    """One model on one Ollama server."""

    client: HttpClient
    model: str

    def facts(self) -> ModelFacts:
        """Ask what the model is, without loading it. Raise EmbedderUnavailableError, ModelNotFoundError."""
        with self._errors_translated():
            tags = self.client.get("/api/tags")
            shown = self.client.post("/api/show", {"model": self.model})
        info = _mapping(shown.get("model_info"))
        architecture = info.get("general.architecture")
        limits = (_positive(info.get(f"{architecture}.context_length")), _num_ctx(shown.get("parameters")))
        return ModelFacts(
            digest=self._digest(tags),
            dimension=_positive(info.get(f"{architecture}.embedding_length")),
            context_tokens=min((limit for limit in limits if limit), default=None),
        )

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one vector a text, shape (n, d), as the server made them; finite, none of them zero.

        Raise TooLongError if a text exceeds the window (Ollama would cut it in silence if it were not told
        otherwise), EmbeddingError if the answer is not what was asked for.
        """
        body = {"model": self.model, "input": list(texts), "truncate": False}
        with self._errors_translated():
            answer = self.client.post("/api/embed", body)
        return self._checked(answer.get("embeddings"), len(texts))

    def _checked(self, embeddings: object, count: int) -> Matrix:
        if not isinstance(embeddings, list) or len(embeddings) != count:
            got = f"{len(embeddings)} vectors" if isinstance(embeddings, list) else "no vectors"
            raise EmbeddingError(f"{self} answers {got} for {count} texts")
        try:
            vectors = np.array(embeddings, dtype=np.float64)
        except (ValueError, TypeError, OverflowError) as error:
            raise EmbeddingError(f"{self} answers vectors that are not rows of numbers of one length") from error
        if vectors.ndim != 2 or not vectors.size:  # noqa: PLR2004  # rows and columns
            raise EmbeddingError(f"{self} answers vectors without numbers")
        with np.errstate(over="ignore"):  # what overflows becomes an infinity, and is refused as one
            matrix: Matrix = vectors.astype(np.float32)
        if not np.isfinite(matrix).all():
            raise EmbeddingError(f"{self} answers a vector with NaN or an infinity in it")
        if not matrix.any(axis=1).all():
            raise EmbeddingError(f"{self} answers a vector of nothing but zeros")
        return matrix

    def _digest(self, tags: Mapping[str, Any]) -> str:
        """Find the model among the local ones, whose names always have a tag; names ignore case."""
        name = self.model if ":" in self.model.rpartition("/")[2] else f"{self.model}:latest"
        models = tags.get("models")
        for entry in map(_mapping, models if isinstance(models, list) else ()):
            if name.casefold() in {str(entry.get("name")).casefold(), str(entry.get("model")).casefold()}:
                return str(entry.get("digest") or _NO_DIGEST)
        return _NO_DIGEST

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        try:
            yield
        except NoAnswerError as error:
            hint = "is it running? `ollama serve` starts it; memory.embedding.url says where it is"
            raise EmbedderUnavailableError(error.message, hint=hint) from error
        except StatusError as error:
            if error.status == _NOT_FOUND and "model" in error.detail:
                hint = f"`ollama pull {self.model}` fetches it"
                raise ModelNotFoundError(f"{self.client.base_url} has no model {self.model!r}", hint=hint) from error
            if error.status == _NOT_FOUND:
                hint = "/api/embed needs Ollama 0.3 or newer"
                raise EmbeddingError(f"{error.message}: no Ollama server of today", hint=hint) from error
            if _TOO_LONG.search(error.detail):
                raise TooLongError from error
            raise EmbeddingError(error.message) from error
        except HttpError as error:
            raise EmbeddingError(error.message) from error

    def __str__(self) -> str:
        return f"{self.client.base_url} ({self.model})"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _num_ctx(parameters: object) -> int | None:
    """Read the window a Modelfile sets: ``all-minilm`` has 512 positions and says ``num_ctx 256``."""
    found = re.search(r"^num_ctx\s+([1-9]\d{0,8})\s*$", str(parameters), re.MULTILINE)
    return int(found[1]) if found else None
