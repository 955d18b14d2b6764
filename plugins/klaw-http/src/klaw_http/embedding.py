"""The common part of remote embedders: windows, batches, splitting of long texts, and checks of the answers.

A provider's plugin implements :class:`EmbeddingServer`, the protocol on the wire; :class:`RemoteEmbedder` is the
embedder for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from attrs import frozen

from klaw_core import (
    EmbedderUnavailableError,
    EmbeddingError,
    ModelNotFoundError,
    VectorSpace,
    embed_in_windows,
    estimate_tokens,
    halves,
    pool_windows,
    unit_rows,
)
from klaw_http.client import HttpClient
from klaw_http.errors import HttpError, NoAnswerError, StatusError
from klaw_http.options import RemoteOptions

if TYPE_CHECKING:
    from klaw_core import Matrix, Vector

# OpenAI: "maximum context length is 8192 tokens", "max 300000 tokens per request"; Ollama: "the input length exceeds
# the context length"; llama.cpp's server: "input is too large to process", "exceeds the available context size";
# text-embeddings-inference: "must have less than 512 tokens"; Gemini: "payload size exceeds the limit".
_TOO_LONG = re.compile(
    r"context (?:length|size|window)|too (?:large|long)|less than \d+ tokens|tokens per request|payload size",
    re.IGNORECASE,
)
_KEY_REFUSED = frozenset({401, 402, 403})
_NOT_FOUND = 404
_SERVER_FAILED = 500


class TooLongError(Exception):
    """A text of the request exceeds the model's window, or all texts together exceed the size of a request."""


@frozen
class ModelProperties:
    """Properties of a model. ``dimension`` is None if only a vector can show it.

    ``revision`` changes whenever the same text would get another vector. ``max_tokens`` is the window without special
    tokens.
    """

    model: str
    revision: str
    dimension: int | None
    max_tokens: int


class EmbeddingServer(Protocol):
    """One embedding model on one server. Its ``str`` names both, for messages."""

    def properties(self) -> ModelProperties:
        """Return the properties of the model; call the server if necessary. Raise EmbeddingError."""

    def embed(self, texts: Sequence[str], /, *, query: bool) -> Matrix:
        """Send one request; return one row per text, as :func:`rows_of` does. Raise TooLongError, EmbeddingError."""


class Bulk(Protocol):
    """A cheaper and slower way to get vectors than requests."""

    @property
    def texts_per_call(self) -> int:
        """Return how many texts to collect for one call."""

    def rows(self, texts: Sequence[str], /) -> Mapping[str, Vector]:
        """Return the vectors of some of these texts, float32 of unit length. Raise EmbeddingError."""


@frozen(eq=False)
class RemoteEmbedder:
    """Embeds with a model on a server; implements ``klaw_core.Embedder``. Safe to use from several threads.

    Nothing is sent before the vector space, the window or a vector is needed. Token counts are estimates, rather too
    high than too low, because these servers offer no tokenizer; a text that is still too long for the server is halved
    until it fits. One call is one request, so that a caller that stores each result loses no paid answer. ``remote``
    makes the core wait for a question as for a server.
    """

    options: RemoteOptions
    server: EmbeddingServer
    bulk: Bulk | None = None
    remote: ClassVar[bool] = True

    @property
    def model(self) -> str:
        """The model's name, as in ``space``. This makes no call."""
        return str(getattr(self.options, "model", ""))

    @cached_property
    def space(self) -> VectorSpace:
        """The vector space. Raise EmbeddingError."""
        prefix = self.options.document_prefix
        return VectorSpace(
            model=self._properties.model,
            revision=self._properties.revision,
            dimension=self._properties.dimension or self.server.embed(["a"], query=False).shape[1],
            pooling=f"mean/{self.max_tokens} estimated" + (f", after {prefix!r}" if prefix else ""),
        )

    @property
    def max_tokens(self) -> int:
        """The model's window for a document in tokens, without the prefix. Raise EmbeddingError."""
        return self._room(self.options.document_prefix)

    @property
    def texts_per_call(self) -> int:
        """How many texts to collect for one call."""
        return self.bulk.texts_per_call if self.bulk else self.options.batch_size

    @cached_property
    def _properties(self) -> ModelProperties:
        return self.server.properties()

    def embed_documents(self, texts: Sequence[str], /) -> Matrix:
        """Return float32 of shape (n, d), row i for text i, each of unit length. Raise EmbeddingError.

        Each distinct text is sent once. If one request fails, nothing is returned.
        """
        return self._embed(texts, self.options.document_prefix, query=False)

    def embed_query(self, text: str, /) -> Vector:
        """Return float32 of shape (d,), unit length. Raise EmbeddingError."""
        vector: Vector = self._embed([text], self.options.query_prefix, query=True)[0]
        return vector

    def count_tokens(self, texts: Sequence[str], /) -> Sequence[int]:
        """Return the estimated token count of each text, without calling the server."""
        return estimate_tokens(texts)

    def _room(self, prefix: str) -> int:
        return max(1, (self.options.max_tokens or self._properties.max_tokens) - estimate_tokens([prefix])[0])

    def _embed(self, texts: Sequence[str], prefix: str, *, query: bool) -> Matrix:
        if not texts:
            return np.empty((0, self.space.dimension), np.float32)
        return embed_in_windows(texts, self._room(prefix), partial(self._rows, prefix=prefix, query=query))

    def _rows(self, windows: Sequence[str], prefix: str, *, query: bool) -> Matrix:
        """Return one row of unit length per window: from the bulk job if it has them, otherwise by requests."""
        sent = {window: _as_sent(prefix + window) for window in windows}
        held = {} if query else self._held(list(sent.values()))
        rest = [window for window in windows if sent[window] not in held]
        batches = _batches(rest, self.options.batch_size)
        asked = [row for batch in batches for row in self._ask(batch, prefix, query=query)]
        row_of = dict(zip(rest, asked, strict=True))
        return np.stack([row_of[window] if window in row_of else held[sent[window]] for window in windows])

    def _held(self, texts: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of the bulk job with the right dimension; a request reports a wrong dimension."""
        rows = self.bulk.rows(texts) if self.bulk else {}
        return {text: row for text, row in rows.items() if row.shape == (self.space.dimension,)}

    def _ask(self, windows: Sequence[str], prefix: str, *, query: bool) -> Matrix:
        """Return one row of unit length per window; split windows that are too long for the server."""
        try:
            rows = self.server.embed([_as_sent(prefix + window) for window in windows], query=query)
        except TooLongError as error:
            if len(windows) > 1:  # the server does not say which window was too long
                middle = len(windows) // 2
                parts = (windows[:middle], windows[middle:])
                return np.concatenate([self._ask(part, prefix, query=query) for part in parts])
            if len(windows[0]) < 2:  # noqa: PLR2004  # one character cannot be cut
                raise EmbeddingError(f"{self.server} rejects a single character as too long") from error
            pieces = halves(windows[0])
            return pool_windows(self._ask(pieces, prefix, query=query), estimate_tokens(pieces))[np.newaxis]
        return self._unit(rows)

    def _unit(self, rows: Matrix) -> Matrix:
        if rows.shape[1] != self.space.dimension:
            raise EmbeddingError(
                f"{self.server} returned vectors of {rows.shape[1]} dimensions, not {self.space.dimension}",
                hint="the server runs another model than before, or one that cannot shorten its vectors",
            )
        return unit_rows(rows, str(self.server))


def rows_of(embeddings: object, count: int, server: object) -> Matrix:
    """Return a server's rows of numbers as float32 of shape (count, d). Raise EmbeddingError, naming the server."""
    if not isinstance(embeddings, Sequence) or isinstance(embeddings, str) or len(embeddings) != count:
        got = f"{len(embeddings)} vectors" if isinstance(embeddings, list) else "no vectors"
        raise EmbeddingError(f"{server} returned {got} for {count} texts")
    try:
        wide = np.array(embeddings, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise EmbeddingError(f"{server} returned vectors that are not rows of numbers of one length") from error
    if wide.ndim != 2 or not wide.size:  # noqa: PLR2004  # rows and columns
        raise EmbeddingError(f"{server} returned vectors without numbers")
    with np.errstate(over="ignore"):  # an overflow becomes infinity, which is refused
        rows: Matrix = wide.astype(np.float32)
    return rows


def member(value: object, key: str) -> Any:
    """Return an object's member; None if the value is not an object or has no such member."""
    return value.get(key) if isinstance(value, Mapping) else None


def client_for(url: str, options: RemoteOptions, headers: Mapping[str, str]) -> HttpClient:
    """Return a client with these options, which also retries after a 500 that does not mean "too long"."""
    return HttpClient(
        url,
        headers=headers,
        read_timeout_seconds=options.timeout_seconds,
        deadline_seconds=options.deadline_seconds,
        retries=options.retries,
        is_final=lambda refusal: refusal.status != _SERVER_FAILED or bool(_TOO_LONG.search(refusal.detail)),
    )


@contextmanager
def embedding_errors(*, unreachable: str = "", key: str, model: str) -> Iterator[None]:
    """Convert HttpErrors to errors of embedders, or to TooLongError. The arguments are hints for each case."""
    try:
        yield
    except NoAnswerError as error:
        raise EmbedderUnavailableError(error.message, hint="" if error.status else unreachable) from error
    except StatusError as error:
        if error.status in _KEY_REFUSED or "api key" in error.detail.lower():  # Gemini answers a wrong key with 400
            raise EmbedderUnavailableError(error.message, hint=key) from error
        if error.status == _NOT_FOUND:
            raise ModelNotFoundError(error.message, hint=model) from error
        if _TOO_LONG.search(error.detail):
            raise TooLongError from error
        if error.status >= _SERVER_FAILED:
            raise EmbedderUnavailableError(error.message) from error
        raise EmbeddingError(error.message) from error
    except HttpError as error:
        raise EmbeddingError(error.message) from error


def _as_sent(text: str) -> str:
    """Return a text that servers accept.

    No server accepts an empty text, and a lone surrogate cannot be sent (RFC 8259, 8.2).
    """
    return text.encode("utf-8", "replace").decode() or " "


def _batches(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (texts[start : start + size] for start in range(0, len(texts), size))
