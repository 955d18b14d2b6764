"""The protocol of the Gemini API: ``batchEmbedContents``, https://ai.google.dev/api/embeddings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core import EmbedderUnavailableError
from klaw_embed_gemini.options import GEMINI_URL, GeminiOptions
from klaw_http import HttpClient, server_name
from klaw_http.embedding import ModelProperties, client_for, embedding_errors, member, rows_of

if TYPE_CHECKING:
    from klaw_core import Matrix

_DIMENSIONS = {"gemini-embedding-001": 3072}
_TASK_TYPES = {"gemini-embedding-001"}  # later models expect the task in the text, as a prefix
# The model reads 2,048 tokens and truncates longer texts silently (https://ai.google.dev/gemini-api/docs/embeddings).
# This is less, because token counts are estimates, which may be too low for unusual scripts.
_MAX_TOKENS = 1900
_NAMES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")  # the variables of Google's own clients, in their order
_KEY = "export GEMINI_API_KEY=…, or set memory.embedding.api_key"


@frozen(eq=False)
class GeminiServer:
    """One model of the Gemini API."""

    options: GeminiOptions

    def properties(self) -> ModelProperties:
        """Return the properties of the model, without a request. Raise EmbedderUnavailableError without a key."""
        options = self.options
        _ = self._client
        return ModelProperties(
            model=options.model,
            revision=server_name(options.url),
            dimension=options.dimension or _DIMENSIONS.get(options.model),
            max_tokens=_MAX_TOKENS,
        )

    def embed(self, texts: Sequence[str], /, *, query: bool) -> Matrix:
        """Send one request; return one row per text, of unit length only at full dimension. Raise EmbeddingError."""
        model = f"models/{self.options.model}"
        common: dict[str, object] = {"model": model}
        if self.options.model in _TASK_TYPES:
            common["taskType"] = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        if self.options.dimension:
            common["outputDimensionality"] = self.options.dimension
        requests = [{**common, "content": {"parts": [{"text": text}]}} for text in texts]
        with embedding_errors(key=_KEY, model=f"is {self.options.model!r} an embedding model of the Gemini API?"):
            answer = self._client.post(f"/{model}:batchEmbedContents", {"requests": requests})
        embeddings = answer.get("embeddings")
        listed = embeddings if isinstance(embeddings, list) else []
        return rows_of([member(entry, "values") for entry in listed], len(texts), self)

    @cached_property
    def _client(self) -> HttpClient:
        """The client, with the key in ``x-goog-api-key``, never in a URL. Raise EmbedderUnavailableError without a key.

        A key from the environment is only sent to Google, not to an address from the configuration.
        """
        url = self.options.url.rstrip("/")
        found = (os.environ.get(name, "").strip() for name in _NAMES if url == GEMINI_URL)
        key = self.options.api_key or next(filter(None, found), "")
        if not key:
            raise EmbedderUnavailableError(f"{url} needs an API key, but none is set", hint=_KEY)
        try:
            return client_for(url, self.options, {"x-goog-api-key": key})
        except ValueError as error:  # the message of this error does not contain the key
            raise EmbedderUnavailableError(f"invalid key in {' or '.join(_NAMES)}: {error}") from error

    def __str__(self) -> str:
        return f"{self.options.url} ({self.options.model})"
