from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from klaw_core import Candidate, ComponentContext, Contribution, Hit, StoredChunk
from klaw_rerank_http.options import HttpRerankerOptions
from klaw_rerank_http.plugin import klaw_rerankers
from klaw_rerank_http.reranker import HttpReranker
from klaw_testing.values import cut_lines, make_document

Connect = Callable[..., HttpReranker]


@define
class FakeServer:
    """A reranking server on a real socket: it scores a document by the question's words in it, as Jina would answer."""

    url: str
    requests: list[dict[str, Any]] = field(factory=list)
    headers: list[dict[str, str]] = field(factory=list)

    def answer(self, request: Request) -> Response:
        body = json.loads(request.data)
        self.requests.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        words = set(body["query"].lower().split())
        scores = [len(words & set(text.lower().split())) / (1 + len(text)) for text in body["documents"]]
        best = sorted(range(len(scores)), key=lambda index: -scores[index])[: body["top_n"]]
        results = [{"index": index, "relevance_score": scores[index], "document": {"text": "…"}} for index in best]
        return Response(json.dumps({"model": body["model"], "results": results, "usage": {"total_tokens": 1}}))


@pytest.fixture
def server(httpserver: HTTPServer) -> FakeServer:
    fake = FakeServer(httpserver.url_for("/v1"))
    httpserver.expect_request("/v1/rerank", method="POST").respond_with_handler(fake.answer)
    return fake


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """Build a reranker the way Klaw does: through the hook, with no patience."""

    def build(url: str, *, offline: bool = False, **options: Any) -> HttpReranker:
        (component,) = klaw_rerankers()
        values = {"retries": 0, "timeout_seconds": 5.0, "bypass": False, **options}
        place = ComponentContext(data_dir=tmp_path, cache_dir=tmp_path, offline=offline)
        return component.factory(HttpRerankerOptions(url, **values), place)

    return build


def make_candidates(*texts: str) -> list[Candidate]:
    """Return candidates with the keys 1, 2, …, in this order, all found close to each other."""
    found = []
    for key, text in enumerate(texts, start=1):
        document = make_document(f"notes/{key}.md", text)
        stored = StoredChunk(key, cut_lines(document)[0], document.path, document.source, document.created_at)
        part = Contribution("fts5", key, 10.0 - key / 100, 1.0, 1 / key)
        found.append(Candidate(stored, Hit(key, 1 / key, (part,))))
    return found


@pytest.fixture
def found() -> list[Candidate]:
    return make_candidates("the cat sat", "the dog ran", "which pet ran", "a boat")
