"""The hook implementations of klaw-rerank-http: the reranker ``http``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klaw_core import Component, ComponentContext, hookimpl
from klaw_http import HttpClient, NoAnswerError, require_network
from klaw_rerank_http.options import HttpRerankerOptions

if TYPE_CHECKING:
    from klaw_rerank_http.reranker import HttpReranker


def _http(options: HttpRerankerOptions, context: ComponentContext) -> HttpReranker:
    require_network(options.url, context, "the url in [[memory.reranking]]", NoAnswerError)
    from klaw_rerank_http.reranker import HttpReranker

    client = HttpClient(
        options.url,
        headers={"authorization": f"Bearer {options.api_key}"} if options.api_key else {},
        read_timeout_seconds=options.timeout_seconds,
        deadline_seconds=options.timeout_seconds,
        retries=options.retries,
    )
    return HttpReranker(options, client)


@hookimpl
def klaw_rerankers() -> Iterable[Component[HttpRerankerOptions, HttpReranker]]:
    """Yield the reranker ``http``."""
    summary = "a reranking model on a server that speaks /rerank"
    yield Component("http", options=HttpRerankerOptions, factory=_http, api=2, summary=summary)
