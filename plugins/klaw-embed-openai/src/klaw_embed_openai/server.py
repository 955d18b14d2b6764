"""The protocol of OpenAI's API: ``POST /embeddings``.

https://platform.openai.com/docs/api-reference/embeddings. The server of llama.cpp, vLLM, LM Studio, Ollama (below
``/v1``) and others implement it. They reject different parameters, and some do not support base64.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from klaw_core import EmbedderUnavailableError, EmbeddingError
from klaw_embed_openai.options import OPENAI_URL, OpenAIOptions, environment_url
from klaw_http import HttpClient, server_name
from klaw_http.embedding import ModelProperties, client_for, embedding_errors, member, rows_of

if TYPE_CHECKING:
    from klaw_core import Matrix

# https://platform.openai.com/docs/guides/embeddings
_DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_OPENAI_TOKENS = 8191
# Less than any usual window, because a server with an unknown window may truncate silently.
_UNKNOWN_TOKENS = 254
_KEY = "export OPENAI_API_KEY=…, or set memory.embedding.api_key"


@frozen(eq=False)
class OpenAIServer:
    """One model on one server."""

    options: OpenAIOptions

    def properties(self) -> ModelProperties:
        """Return the properties of the model, without a request. Raise EmbedderUnavailableError without a key.

        Servers do not say which weights they run, so the revision is the address: two servers with different models of
        the same name never share a vector.
        """
        options = self.options
        _ = self.client
        own = _DIMENSIONS.get(options.model)
        return ModelProperties(
            model=options.model,
            revision=" ".join(
                filter(None, (options.revision or server_name(options.url), options.document_input_type))
            ),
            dimension=options.dimension or own,
            max_tokens=_OPENAI_TOKENS if own else _UNKNOWN_TOKENS,
        )

    def embed(self, texts: Sequence[str], /, *, query: bool) -> Matrix:
        """Send one request; return one row per text. Raise TooLongError, EmbeddingError."""
        url = self.options.url.rstrip("/")
        with embedding_errors(
            unreachable="" if url == OPENAI_URL else "is it running? check memory.embedding.url",
            key=_KEY,
            model=f"is {self.options.model!r} a model of this server, and the path of memory.embedding.url right?",
        ):
            answer = self.client.post("/embeddings", self.body(list(texts), query=query))
        return self.rows(answer, len(texts))

    def body(self, texts: str | list[str], *, query: bool = False) -> dict[str, object]:
        """Return the body of a request for one or several texts, without parameters that are not set."""
        options = self.options
        optional = {
            "dimensions": options.dimension,
            "input_type": options.query_input_type if query else options.document_input_type,
        }
        sent = {name: value for name, value in optional.items() if value}
        return {"model": options.model, "input": texts, "encoding_format": options.encoding, **sent}

    def rows(self, answer: object, count: int) -> Matrix:
        """Return the rows of an answer, sorted in the order of the texts. Raise EmbeddingError."""
        data = member(answer, "data")
        entries: list[Any] = data if isinstance(data, list) else []
        if any(member(entry, "index") is not None for entry in entries):
            places = [member(entry, "index") for entry in entries]
            if {type(place) for place in places} != {int} or sorted(places) != list(range(count)):
                raise EmbeddingError(f"{self} returned vectors whose indexes do not match {count} texts")
            entries = [entry for _, entry in sorted(zip(places, entries, strict=True), key=lambda pair: pair[0])]
        return rows_of([self._numbers(member(entry, "embedding")) for entry in entries], count, self)

    def _numbers(self, embedding: object) -> object:
        """Return the numbers of a vector; base64 of little-endian float32 is decoded."""
        if not isinstance(embedding, str):
            return embedding
        try:
            return np.frombuffer(b64decode(embedding, validate=True), "<f4")
        except ValueError as error:  # includes binascii.Error
            raise EmbeddingError(f"{self} returned a vector that is not base64 of float32: {error}") from error

    @cached_property
    def client(self) -> HttpClient:
        """The client, with the key in its headers. Raise EmbedderUnavailableError if the key for OpenAI is missing.

        ``OPENAI_API_KEY`` is only sent to OpenAI and to ``OPENAI_BASE_URL``. A server that is only in the configuration
        gets ``api_key``, or no key.
        """
        options = self.options
        url = options.url.rstrip("/")
        key = options.api_key
        if not key and url in {OPENAI_URL, environment_url()}:
            key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and url == OPENAI_URL:
            raise EmbedderUnavailableError(f"{url} needs an API key, but none is set", hint=_KEY)
        try:
            return client_for(url, options, {"authorization": f"Bearer {key}"} if key else {})
        except ValueError as error:  # the message of this error does not contain the key
            raise EmbedderUnavailableError(f"invalid key in OPENAI_API_KEY: {error}") from error

    def __str__(self) -> str:
        return f"{self.options.url} ({self.options.model})"
