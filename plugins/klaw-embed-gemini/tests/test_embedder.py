"""The embedder against a server that keeps the Gemini API's promises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pytest_httpserver import HTTPServer

from klaw_core import EmbedderUnavailableError, ModelNotFoundError, VectorSpace
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.gemini import KEY, FakeGemini

Connect = Callable[..., RemoteEmbedder]
WORDS = [f"word{number}" for number in range(4000)]


def test_a_request_has_the_documented_form(gemini: FakeGemini, connect: Connect, httpserver: HTTPServer) -> None:
    embedder = connect()
    embedder.embed_documents(["a"])
    embedder.embed_query("b")
    common = {"model": "models/gemini-embedding-001", "outputDimensionality": 64}
    assert gemini.requests == [
        [{**common, "taskType": "RETRIEVAL_DOCUMENT", "content": {"parts": [{"text": "a"}]}}],
        [{**common, "taskType": "RETRIEVAL_QUERY", "content": {"parts": [{"text": "b"}]}}],
    ]
    assert {request.path for request, _ in httpserver.log} == {"/v1beta/models/gemini-embedding-001:batchEmbedContents"}
    assert {request.query_string for request, _ in httpserver.log} == {b""}


def test_shortened_vectors_get_unit_length(connect: Connect) -> None:
    np.testing.assert_allclose(np.linalg.norm(connect().embed_documents(WORDS[:3]), axis=1), 1, atol=1e-6)


def test_dimensions_are_sent_only_if_set(gemini: FakeGemini, connect: Connect) -> None:
    gemini.model.dimension = 3072
    assert connect(dimension=None).embed_query("a").shape == (3072,)
    assert "outputDimensionality" not in gemini.requests[0][0]


def test_a_batch_holds_a_hundred_texts(gemini: FakeGemini, connect: Connect) -> None:
    connect().embed_documents(WORDS[:250])
    assert [len(requests) for requests in gemini.requests] == [100, 100, 50]
    assert gemini.answered.total() == 250


def test_no_sent_text_exceeds_the_limit_of_the_server(gemini: FakeGemini, connect: Connect) -> None:
    text = " ".join(WORDS)
    connect().embed_query(text)
    sent = [request["content"]["parts"][0]["text"] for requests in gemini.requests for request in requests]
    assert "".join(sent) == text
    assert not any(gemini.model.too_long(piece) for piece in sent)


def test_the_space_of_a_known_model_needs_no_request(gemini: FakeGemini, connect: Connect) -> None:
    space = connect(dimension=None, url="https://generativelanguage.googleapis.com/v1beta").space
    expected = ("gemini-embedding-001", "generativelanguage.googleapis.com/v1beta", 3072)
    assert space == VectorSpace(*expected, "cosine", "mean/1900 estimated")
    assert gemini.requests == []


def test_without_a_key_it_is_unavailable_with_a_hint(connect: Connect) -> None:
    embedder = connect(url="https://generativelanguage.googleapis.com/v1beta", api_key="")
    for use in (lambda: embedder.space, lambda: embedder.embed_query("a")):
        with pytest.raises(EmbedderUnavailableError, match=r"needs an API key.*export GEMINI_API_KEY=…"):
            use()


@pytest.mark.parametrize("name", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
def test_the_key_of_the_environment_is_sent_only_to_google(
    gemini: FakeGemini, connect: Connect, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, KEY)
    assert connect(url="https://generativelanguage.googleapis.com/v1beta/", api_key="").space.dimension == 64
    with pytest.raises(EmbedderUnavailableError, match="needs an API key"):
        connect(api_key="").embed_query("a")
    assert gemini.requests == []


def test_a_model_with_the_task_in_the_text_gets_no_task_type(gemini: FakeGemini, connect: Connect) -> None:
    gemini.name = "gemini-embedding-2"
    embedder = connect(model=gemini.name, query_prefix="task: search result | query: ", dimension=None)
    assert embedder.embed_query("a").shape == (128,)
    assert gemini.requests[0] == [
        {"model": f"models/{gemini.name}", "content": {"parts": [{"text": "task: search result | query: a"}]}}
    ]


def test_a_requested_pause_is_obeyed(gemini: FakeGemini, connect: Connect, httpserver: HTTPServer) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    busy = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}}
    path = f"/v1beta/models/{gemini.name}:batchEmbedContents"
    httpserver.expect_oneshot_request(path).respond_with_json(busy, status=429)
    with pytest.raises(EmbedderUnavailableError, match="429: quota; a retry after 34 s would exceed the deadline"):
        connect(retries=1, deadline_seconds=9.0).embed_query("a")


def test_a_wrong_key_is_unavailable_and_not_shown(connect: Connect) -> None:
    with pytest.raises(EmbedderUnavailableError, match=r"400: API key not valid.*GEMINI_API_KEY") as caught:
        connect(api_key="AIza-wrong-key").embed_query("a")
    assert "AIza-wrong-key" not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_not_shown(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", f"{KEY}…")
    with pytest.raises(EmbedderUnavailableError, match="GEMINI_API_KEY") as caught:
        connect(url="https://generativelanguage.googleapis.com/v1beta", api_key="").embed_query("a")
    assert KEY not in str(caught.value)


def test_a_missing_model_is_named(connect: Connect) -> None:
    with pytest.raises(ModelNotFoundError, match="models/nope is not found"):
        connect(model="nope").embed_query("a")


def test_empty_texts_are_sent_in_an_accepted_form(connect: Connect) -> None:
    assert connect().embed_documents(["", "a"]).shape == (2, 64)


def test_the_options_of_all_remote_embedders_apply(gemini: FakeGemini, connect: Connect) -> None:
    embedder = connect(max_tokens=20, query_prefix="query: ", document_prefix="passage: ", timeout_seconds=30.0)
    assert embedder.max_tokens < 20, "the prefix takes some of them"
    assert embedder.space.pooling == "mean/17 estimated, after 'passage: '"
    embedder.embed_query("tides")
    embedder.embed_documents(["tides"])
    sent = [each["content"]["parts"][0]["text"] for request in gemini.requests for each in request]
    assert sent == ["query: tides", "passage: tides"]
