"""The options of the reranker ``http``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_http import SECONDS, http_url


def _base(url: str) -> str:
    """Return the address that paths are appended to: many servers document theirs with ``/rerank`` at its end."""
    return url.rstrip("/").removesuffix("/rerank")


@frozen
class HttpRerankerOptions:
    """Options of the reranker ``http``.

    ``url``: the server's base URL, to which ``/rerank`` is appended.
    ``model``: the model's name there.
    ``dialect``: ``jina`` (Jina, Cohere, vLLM, llama.cpp), or ``tei`` (Hugging Face's Text Embeddings Inference).
    ``api_key``: the key, best as ``"${RERANK_API_KEY}"``; it is sent in a header and shown nowhere.
    ``timeout_seconds``: how long one search may wait for the server in all, retries included.
    ``retries``: how often a request is tried again when the server is busy or the connection breaks.
    ``max_candidates``: how many of the best chunks are sent.
    ``top_n``: how many of them are put in the server's order, in front of the others.
    ``bypass``: whether questions with a clear winner skip the server.
    """

    url: str = field(converter=_base, validator=http_url)
    model: str = field(default="bge-reranker-v2-m3", validator=validators.min_len(1))
    dialect: str = field(default="jina", validator=validators.in_(("jina", "tei")))
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = field(default=30.0, validator=SECONDS)
    retries: int = field(default=1, validator=validators.ge(0))
    max_candidates: int = field(default=40, validator=validators.ge(1))
    top_n: int = field(default=8, validator=validators.ge(1))
    bypass: bool = True
