"""The options of the reranker ``http``."""

from __future__ import annotations

from attrs import field, frozen, validators

from klaw_http import SECONDS, http_url


def _base(url: str) -> str:
    """Return the base URL. Many servers document their URL with ``/rerank`` at the end, which is removed."""
    return url.rstrip("/").removesuffix("/rerank")


@frozen
class HttpRerankerOptions:
    """Options of the reranker ``http``.

    ``url``: the server's base URL, to which ``/rerank`` is appended.
    ``model``: the name of the model on the server.
    ``dialect``: ``jina`` (Jina, Cohere, vLLM, llama.cpp), or ``tei`` (Hugging Face's Text Embeddings Inference).
    ``api_key``: the key, best as ``"${RERANK_API_KEY}"``; it is sent in a header and never shown.
    ``timeout_seconds``: the maximum time that a search waits for the server, including retries.
    ``retries``: the maximum number of retries if the server is busy or the connection breaks.
    ``max_candidates``: the number of best chunks that are sent.
    ``top_n``: the number of chunks that are put first, in the server's order.
    ``bypass``: whether the server is not asked if a result is clearly the best.
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
