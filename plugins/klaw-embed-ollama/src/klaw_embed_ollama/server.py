"""The protocol of Ollama (https://github.com/ollama/ollama/blob/main/docs/api.md).

``GET /api/tags`` returns the digests of the local models, ``POST /api/show`` the dimension of one, and ``POST
/api/embed`` vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import frozen

from klaw_core import EmbeddingError, ModelNotFoundError
from klaw_http import HttpClient, StatusError, server_name
from klaw_http.embedding import ModelProperties, client_for, embedding_errors, member, rows_of

if TYPE_CHECKING:
    from klaw_core import Matrix
    from klaw_embed_ollama.options import OllamaOptions

_SPECIAL_TOKENS = 2  # the special tokens around a text, such as [CLS] and [SEP]
_MAX_CONTEXT = 2048  # the smallest window that servers give to a model with a larger one
_UNKNOWN_CONTEXT = 256  # less than any usual window, because the server may truncate silently
_START = "is it running? start it with `ollama serve`, and check memory.embedding.url"
_KEY = "set memory.embedding.api_key to the key of the server or its proxy"


@frozen(eq=False)
class OllamaServer:
    """One model on one Ollama server."""

    options: OllamaOptions

    def properties(self) -> ModelProperties:
        """Ask for the properties of the model, without loading it. Raise EmbedderUnavailableError, ModelNotFoundError.

        The revision is the digest of the pulled model, which changes with the model, but not with the server.
        """
        options = self.options
        with self._errors():
            tags = self._client.get("/api/tags")
            shown = self._client.post("/api/show", {"model": options.model})
        info = shown.get("model_info")
        architecture = member(info, "general.architecture")
        limits = (_positive(member(info, f"{architecture}.context_length")), _num_ctx(shown.get("parameters")))
        context = min((limit for limit in limits if limit), default=_UNKNOWN_CONTEXT)
        return ModelProperties(
            model=options.model,
            revision=self._digest(tags) or server_name(options.url),
            dimension=options.dimension or _positive(member(info, f"{architecture}.embedding_length")),
            max_tokens=max(1, min(context, _MAX_CONTEXT) - _SPECIAL_TOKENS),
        )

    def embed(self, texts: Sequence[str], /, *, query: bool) -> Matrix:
        """Return one row per text, shape (n, d), as the server computed them; queries and documents are treated alike.

        Raise TooLongError if a text exceeds the window (with default settings Ollama would truncate it silently), and
        EmbeddingError for an unexpected answer.
        """
        del query
        body: dict[str, object] = {"model": self.options.model, "input": list(texts), "truncate": False}
        if self.options.keep_alive:
            body["keep_alive"] = self.options.keep_alive
        with self._errors():
            answer = self._client.post("/api/embed", body)
        return rows_of(answer.get("embeddings"), len(texts), self)

    def _digest(self, tags: Mapping[str, Any]) -> str:
        """Return the digest of the model among the local ones, whose names always have a tag; case is ignored."""
        model = self.options.model
        name = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
        models = tags.get("models")
        for entry in models if isinstance(models, list) else ():
            if name.casefold() in {str(member(entry, key)).casefold() for key in ("name", "model")}:
                return str(member(entry, "digest") or "")
        return ""

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with embedding_errors(unreachable=_START, key=_KEY, model=f"run `ollama pull {self.options.model}`"):
                yield
        except ModelNotFoundError as error:
            refusal = error.__cause__
            if isinstance(refusal, StatusError) and "model" not in refusal.detail:
                raise EmbeddingError(
                    f"{refusal.message}: the server is not Ollama, or older than 0.3",
                    hint="update Ollama, or correct memory.embedding.url",
                ) from error
            raise ModelNotFoundError(
                f"{self.options.url} has no model {self.options.model!r}", hint=error.hint
            ) from refusal

    @cached_property
    def _client(self) -> HttpClient:
        key = self.options.api_key
        return client_for(self.options.url, self.options, {"authorization": f"Bearer {key}"} if key else {})

    def __str__(self) -> str:
        return f"{self.options.url} ({self.options.model})"


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _num_ctx(parameters: object) -> int | None:
    """Return the window that a Modelfile sets: ``all-minilm`` has 512 positions and ``num_ctx 256``."""
    found = re.search(r"^num_ctx\s+([1-9]\d{0,8})\s*$", str(parameters), re.MULTILINE)
    return int(found[1]) if found else None
