"""What Klaw registers: the embedder ``ollama`` and its options."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from attrs import field, frozen, validators

from klaw_core import Component, EmbedderUnavailableError, Place, hookimpl
from klaw_http import http_url, is_loopback

if TYPE_CHECKING:
    from klaw_embed_ollama.embedder import OllamaEmbedder

_PORT = 11434
# What a server listens on is not always what a client can connect to.
_REACHABLE = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # read here, not bound to


def server_url() -> str:
    """Return the server's address: ``OLLAMA_HOST`` as Ollama's own clients read it, or ``http://localhost:11434``.

    The variable may lack the scheme, the host or the port (ollama ``envconfig.Host``). What makes no sense
    is returned as it is, for the option's validator to refuse.
    """
    host = os.environ.get("OLLAMA_HOST", "").strip().strip("\"'")
    url = host if "://" in host else f"http://{host}"
    try:
        parts = urlsplit(url)
        port = parts.port or (None if "://" in host else _PORT)
    except ValueError:
        return url
    if parts.username is not None or (not parts.hostname and "://" in host):
        return url
    name = _REACHABLE.get(parts.hostname or "", parts.hostname)
    address = f"[{name}]" if name and ":" in name else name
    return f"{parts.scheme}://{address}{f':{port}' if port else ''}{parts.path}".rstrip("/")


@frozen
class OllamaOptions:
    """Options of the embedder ``ollama``.

    ``url``: the server (default: ``OLLAMA_HOST``, else ``http://localhost:11434``).
    ``model``: a model that ``ollama pull`` has fetched.
    ``timeout_seconds``: how long the server may be silent; the first request waits for it to load the model.
    ``deadline_seconds``: how long one request may take in all, with its retries.
    ``retries``: how often a request is tried again when the server is busy or the connection breaks.
    ``batch_size``: how many texts one request holds.
    ``dimension``, ``max_tokens``: the vectors' length and the model's window in tokens, where the server
    does not say.
    """

    url: str = field(factory=server_url, validator=http_url)
    model: str = field(default="all-minilm:l6-v2", validator=validators.min_len(1))
    timeout_seconds: float = field(default=60.0, validator=validators.gt(0))
    deadline_seconds: float = field(default=120.0, validator=validators.gt(0))
    retries: int = field(default=2, validator=validators.ge(0))
    batch_size: int = field(default=16, validator=validators.ge(1))
    dimension: int | None = field(default=None, validator=validators.optional(validators.ge(1)))
    max_tokens: int | None = field(default=None, validator=validators.optional(validators.ge(1)))


def _ollama(options: OllamaOptions, place: Place) -> OllamaEmbedder:
    if place.offline and not is_loopback(options.url):
        raise EmbedderUnavailableError(
            f"{options.url} is another machine, and Klaw is offline",
            hint="unset KLAW_OFFLINE, or set memory.embedding.url to this machine",
        )
    from klaw_embed_ollama.embedder import OllamaEmbedder

    return OllamaEmbedder.connect(options)


@hookimpl
def klaw_embedders() -> Iterable[Component[OllamaOptions, OllamaEmbedder]]:
    """Yield the embedder ``ollama``."""
    yield Component("ollama", options=OllamaOptions, factory=_ollama, api=1, summary="embeddings from an Ollama server")
