"""The embedder against a server that keeps OpenAI's promises."""

from __future__ import annotations

import socket
from collections.abc import Callable

import numpy as np
import pytest
from pytest_httpserver import HTTPServer

from klaw_core import EmbedderUnavailableError, EmbeddingError, ModelNotFoundError, VectorSpace
from klaw_http.embedding import RemoteEmbedder
from klaw_testing.doubles.openai import KEY, FakeOpenAI, error

Connect = Callable[..., RemoteEmbedder]
WORDS = [f"word{number}" for number in range(2000)]


def test_vectors_have_unit_length_and_the_order_of_the_texts(connect: Connect) -> None:
    embedder = connect()
    texts = ["why is the sky blue", "грачи прилетели", "北京大学", "", "  \n", "C++ \ud800"]
    matrix = embedder.embed_documents(texts)
    assert (matrix.shape, matrix.dtype) == ((6, 64), np.dtype(np.float32))
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-6)
    for row, text in zip(matrix, texts, strict=True):
        np.testing.assert_allclose(row, embedder.embed_query(text), atol=1e-6)


def test_a_request_has_the_documented_form(openai: FakeOpenAI, connect: Connect) -> None:
    connect(batch_size=2).embed_documents(["a", "b", "c"])
    common = {"model": "text-embedding-3-small", "encoding_format": "base64", "dimensions": 64}
    assert openai.requests == [{**common, "input": ["a", "b"]}, {**common, "input": ["c"]}]


def test_dimensions_are_sent_only_if_set(openai: FakeOpenAI, connect: Connect) -> None:
    openai.model.dimension = 1536
    assert connect(dimension=None).embed_query("a").shape == (1536,)
    assert "dimensions" not in openai.requests[0]


def test_a_batch_holds_a_hundred_texts(openai: FakeOpenAI, connect: Connect) -> None:
    connect().embed_documents(WORDS[:250])
    assert [len(request["input"]) for request in openai.requests] == [100, 100, 50]
    assert openai.answered.total() == 250


def test_base64_and_floats_are_the_same_vectors(openai: FakeOpenAI, connect: Connect) -> None:
    packed = connect().embed_documents(WORDS[:5])
    np.testing.assert_allclose(connect(encoding="float").embed_documents(WORDS[:5]), packed, atol=1e-6)
    openai.knows_base64 = False
    np.testing.assert_allclose(connect().embed_documents(WORDS[:5]), packed, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "dimension", "max_tokens"),
    [("text-embedding-3-small", 1536, 8191), ("text-embedding-3-large", 3072, 8191)],
)
def test_the_spaces_of_openais_models_need_no_request(
    openai: FakeOpenAI, connect: Connect, model: str, dimension: int, max_tokens: int
) -> None:
    embedder = connect(model=model, dimension=None, url="https://api.openai.com/v1/", api_key=KEY)
    expected = VectorSpace(model, "api.openai.com/v1", dimension, "cosine", f"mean/{max_tokens} estimated")
    assert embedder.space == expected
    assert openai.asked == []


def test_the_dimension_of_an_unknown_model_is_found_by_a_request(openai: FakeOpenAI, connect: Connect) -> None:
    openai.name = "bge-m3"
    embedder = connect(model="bge-m3", dimension=None)
    assert (embedder.space.dimension, embedder.max_tokens) == (64, 254)
    assert openai.asked == ["POST /v1/embeddings"]


def test_servers_have_separate_spaces_unless_the_weights_are_named(connect: Connect) -> None:
    here, there = (connect(url=f"http://{host}:8080/v1").space for host in ("localhost", "gpu-box"))
    assert here != there
    named = [connect(url=f"http://{host}:8080/v1", revision="q8").space for host in ("localhost", "gpu-box")]
    assert named[0] == named[1]
    assert named[0] != connect(url="http://localhost:8080/v1", revision="q4").space


def test_a_prefix_is_sent_and_changes_the_space(openai: FakeOpenAI, connect: Connect) -> None:
    embedder = connect(query_prefix="query: ", document_prefix="passage: ")
    embedder.embed_documents(["a"])
    embedder.embed_query("b")
    assert [request["input"] for request in openai.requests] == [["passage: a"], ["query: b"]]
    assert embedder.space != connect().space
    assert embedder.space != connect(document_prefix="article: ").space
    assert connect(query_prefix="other: ").space == connect().space  # documents are embedded as before


def test_an_input_type_is_sent_and_changes_the_space(openai: FakeOpenAI, connect: Connect) -> None:
    embedder = connect(query_input_type="query", document_input_type="passage")
    embedder.embed_documents(["a"])
    embedder.embed_query("b")
    assert [request["input_type"] for request in openai.requests] == ["passage", "query"]
    assert embedder.space != connect().space


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens, however you requested 9001 tokens",
        "Requested 309209 tokens, max 300000 tokens per request",
    ],
)
def test_a_text_that_openai_rejects_as_too_long_is_divided(
    openai: FakeOpenAI, connect: Connect, httpserver: HTTPServer, message: str
) -> None:
    embedder = connect()
    expected = embedder.embed_documents(WORDS[:8])
    openai.requests.clear()
    httpserver.expect_oneshot_request("/v1/embeddings").respond_with_response(error(400, message))
    np.testing.assert_allclose(embedder.embed_documents(WORDS[:8]), expected, atol=1e-6)
    assert [len(request["input"]) for request in openai.requests] == [4, 4]


def test_a_text_that_llama_cpp_rejects_as_too_long_is_not_sent_again_unchanged(
    openai: FakeOpenAI, connect: Connect, httpserver: HTTPServer
) -> None:
    refusal = error(500, "input (3000 tokens) is too large to process. increase the physical batch size")
    httpserver.expect_oneshot_request("/v1/embeddings").respond_with_response(refusal)
    connect(retries=5).embed_documents(["a b", "c"])
    assert [request["input"] for request in openai.requests] == [["a b"], ["c"]]


def test_a_long_text_is_sent_whole_in_windows(openai: FakeOpenAI, connect: Connect) -> None:
    text = " ".join(WORDS[:900])
    embedder = connect(max_tokens=100)
    embedder.embed_query(text)
    sent = [piece for request in openai.requests for piece in request["input"]]
    assert "".join(sent) == text
    assert max(embedder.count_tokens(sent)) <= 100


def test_no_texts_need_no_request(openai: FakeOpenAI, connect: Connect) -> None:
    assert connect().embed_documents([]).shape == (0, 64)
    assert openai.asked == []


def test_without_a_key_openai_is_unavailable_with_a_hint(connect: Connect) -> None:
    embedder = connect(url="https://api.openai.com/v1")
    for use in (lambda: embedder.space, lambda: embedder.embed_query("a"), lambda: embedder.max_tokens):
        with pytest.raises(EmbedderUnavailableError, match=r"needs an API key.*export OPENAI_API_KEY=…"):
            use()
    assert list(embedder.count_tokens(["a"])) == [1]


def test_the_key_is_read_when_it_is_needed(
    openai: FakeOpenAI, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai.key = KEY
    monkeypatch.setenv("OPENAI_BASE_URL", openai.url)
    embedder = connect(url=openai.url)
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    embedder.embed_query("a")
    assert openai.answered.total() == 1


def test_the_key_of_the_environment_is_sent_only_to_openai(
    openai: FakeOpenAI, connect: Connect, monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    connect().embed_query("a")
    connect(api_key="its-own-key").embed_query("b")
    sent = [request.headers.get("authorization") for request, _ in httpserver.log]
    assert sent == [None, "Bearer its-own-key"]
    assert openai.answered.total() == 2


def test_a_key_that_cannot_be_sent_is_not_shown(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}…")
    with pytest.raises(EmbedderUnavailableError, match="OPENAI_API_KEY") as caught:
        connect(url="https://api.openai.com/v1").embed_query("a")
    assert KEY not in str(caught.value)


def test_a_wrong_key_is_refused_with_a_hint_and_not_shown(openai: FakeOpenAI, connect: Connect) -> None:
    openai.key = KEY
    with pytest.raises(EmbedderUnavailableError, match=r"401: Incorrect API key provided: \*\*\*.*OPENAI_API_KEY"):
        connect(api_key="sk-wrong-0123").embed_query("a")


def test_a_missing_model_is_named(openai: FakeOpenAI, connect: Connect) -> None:
    del openai  # only to be there
    with pytest.raises(ModelNotFoundError, match=r"The model `nope` does not exist.*'nope'"):
        connect(model="nope").embed_query("a")


def test_an_unreachable_server_is_named_with_its_address(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    with pytest.raises(EmbedderUnavailableError, match=rf"{url}.*memory\.embedding\.url"):
        connect(url=url).embed_query("a")


def test_a_model_that_cannot_shorten_its_vectors_is_reported(connect: Connect, httpserver: HTTPServer) -> None:
    row = {"data": [{"index": 0, "embedding": [0.5] * 384}]}
    httpserver.expect_oneshot_request("/v1/embeddings").respond_with_json(row)
    with pytest.raises(EmbeddingError, match="384 dimensions, not 64"):
        connect().embed_query("a")
